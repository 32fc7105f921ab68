/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Inside of a stream, for the engine's own files. Grouped by owner: what tx
 * touches, what rx touches, and what both reach under a lock. On a host that talks
 * to itself the two directions run on different CPUs.
 */
#ifndef WEFT_ENGINE_STREAM_STATE_H
#define WEFT_ENGINE_STREAM_STATE_H

#include <linux/cache.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "base/counters.h"
#include "engine/down.h"
#include "engine/lend.h"
#include "engine/op.h"
#include "engine/stream.h"
#include "engine/watch.h"
#include "mem/access.h"
#include "net/mpa_rx.h"
#include "net/mpa_tx.h"
#include "net/tcp_info.h"
#include "proto/ddp.h"
#include "proto/mpa_start.h"
#include "proto/qp_fsm.h"
#include "proto/rdmap.h"
#include "proto/readq.h"
#include "proto/term.h"
#include "ring/recvq.h"
#include "uapi/weft-abi.h"

/**
 * struct weft_tx - the sending direction
 * @claim: engine/claim.h; its holder owns the rest
 * @sock: stager and pusher
 * @mem: its view of memory; holds a region while a train is staged
 * @swr: work request in hand, fetched and waiting for a credit or a fence
 * @msg, @msgs, @cur: messages in hand
 * @hdr: RDMAP header of the one that has any
 * @sent: send queue index behind the last request whose octets TCP has all
 * @ddp: next MSN per untagged queue
 * @rtr: kind of ready-to-receive message to send first, 0: none
 * @burst: answers sent since the send queue had its turn
 * @term_staged: the Terminate is out; nothing may follow
 * @drained: the send queue was found empty while closing
 */
struct weft_tx {
	unsigned long claim;
	struct weft_mpa_tx sock;
	struct weft_mem_user mem;
	struct weft_swr *swr;
	u8 msgs;
	u8 cur;
	u8 hdr[WEFT_RDMAP_HDR_MAX];
	struct weft_msg msg[WEFT_MSGS_PER_WR];
	u32 sent;
	struct weft_ddp_tx ddp;
	u8 rtr;
	u8 burst;
	bool term_staged;
	bool drained;
};

/**
 * struct weft_rx_held - a completion kept back until an STag is quiet
 * @busy: invalidated, but another stream is still copying; NULL: nothing is held
 * @swr: the read it ends, or NULL: @cqe is a receive
 */
struct weft_rx_held {
	struct weft_mem_region *busy;
	struct weft_swr *swr;
	struct weft_cqe cqe;
};

/**
 * struct weft_rx - the receiving direction; owner: the socket lock
 * @sock: deframer
 * @mem: its view of memory; holds a region while it reads
 * @rq_mem: likewise for receives, whose buffers are in the domain of the receive queue
 * @ddp: expected MSN and MO per untagged queue
 * @msgs: which messages are in progress
 * @like: header of the last segment, while others like it are expected (engine/rxrow.c)
 * @rwr: receive in hand, valid while @rwr_held
 * @rtr_kinds: a ready-to-receive message of one of these kinds must come first
 * @first_seen: the peer has sent its first FPDU
 * @atomics: the peer may ask for them
 * @rtr_send: the message in progress is the RTR Send: no receive is consumed
 * @written: bytes of the last Write, unless a Send, a Read Request, an Atomic Request or
 *	Immediate Data came after it: byte_len of Immediate Data that comes next
 * @placed: octets of the tagged message in progress
 * @kick: tx has something to do once the loop is done
 * @batch: completion queues to notify then
 * @held: reading goes on when this is settled
 */
struct weft_rx {
	struct weft_mpa_rx sock;
	struct weft_mem_user mem;
	struct weft_mem_user rq_mem;
	struct weft_ddp_rx ddp;
	struct weft_rdmap_rx msgs;
	struct weft_ddp_hdr like;
	struct weft_rwr rwr;
	bool rwr_held;
	bool first_seen;
	bool atomics;
	bool rtr_send;
	u8 rtr_kinds;
	bool kick;
	u32 written;
	u32 placed;
	struct weft_cq_batch *batch;
	struct weft_rx_held held;
};

/**
 * struct weft_stream - see engine/stream.h
 * @sock: stands among what nobody writes: both directions look at it each time
 * @lock: @state, @todo, @fault, @close_error
 * @peer_terminated, @peer_fault, @peer_term: a Terminate came, and what it says
 * @lifecycle: start against release: who attaches and detaches the socket
 * @counters: where this stream counts; @cfg.counters points here
 * @mpa, @initiator: as started; written once, before @cm_events
 * @harvested: what of TCP's counts is in @counters; under @lifecycle
 * @retire_lock: states of work requests, retirement of the send queue
 * @gate_open: we may send FPDUs (a responder waits for the initiator's first)
 * @quiet: rx will not touch the receive queue again
 * @wq: where its work is done
 */
struct weft_stream {
	struct kref ref;
	u32 qpn;
	struct rcu_head rcu;
	struct weft_stream_index *index;
	struct weft_sock *sock;
	struct weft_stream_config cfg;
	struct weft_counters counters;

	spinlock_t lock; /* state, todo, fault, close_error */
	enum weft_qp_state state;
	u32 todo;
	int close_error;
	struct weft_fault_rec fault;
	enum weft_fault peer_fault;
	struct weft_term peer_term;
	bool peer_terminated;
	bool initiator;
	bool gate_open;
	bool quiet;

	spinlock_t retire_lock; /* states of work requests, retired index */

	struct mutex lifecycle; /* attaching and detaching the socket */
	struct weft_mpa_result mpa;
	struct weft_tcp_stats harvested;
	const struct weft_stream_cm_events *cm_events;
	void *cm;
	struct weft_readq readq;
	void *readq_mem;
	u32 ird;
	u32 ord;

	struct weft_tx tx;
	struct weft_lend lend;
	struct weft_watch *watch;
	struct workqueue_struct *wq;
	struct delayed_work tx_work;
	struct weft_rx rx ____cacheline_aligned_in_smp;
	struct work_struct rx_work;
	struct weft_down down;
};

extern const struct weft_mpa_rx_events weft_rx_mpa_events;

/* Steps the state machine and sees to its actions. Any context. */
void weft_stream_step(struct weft_stream *st, enum weft_qp_event event);

/* Records why, once, with the offending headers or none, then steps. Any context. */
void weft_stream_fault(struct weft_stream *st, enum weft_fault fault, const u8 *head, u32 head_len,
		       u32 ulpdu_len);

/* Are segments still taken? Context: owner of rx. */
static inline bool weft_rx_goes_on(const struct weft_stream *st)
{
	enum weft_qp_state state = READ_ONCE(st->state);

	return state == WEFT_QP_RTS || state == WEFT_QP_CLOSING;
}

#endif
