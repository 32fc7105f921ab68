/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A stream of the engine, all of it, in a world that is played: memory, queues of a process or
 * of the kernel, a connection of TCP that a script moves, and a peer that looks at what comes.
 */
#ifndef WEFT_HOST_FUZZ_STREAM_H
#define WEFT_HOST_FUZZ_STREAM_H

#include "fuzz.h"

#include "base/counters.h"
#include "engine/life/introspect.h"
#include "engine/life/stream.h"
#include "engine/ops/rnr.h"
#include "engine/run/defer.h"
#include "engine/run/doorbell.h"
#include "engine/state/stream.h"
#include "mem/access.h"
#include "mem/backing.h"
#include "mem/mr_ops.h"
#include "mem/stag.h"
#include "net/tcp_internals.h"
#include "net/tcp_socket.h"
#include "proto/crc.h"
#include "ring/cq.h"
#include "ring/recvq.h"
#include "ring/sendq.h"

#define REGIONS		6U
#define SQES		16U
#define RQES		8U
#define CQES		256U
#define SGES		2U
#define INLINE_MAX	64U
#define OUR_PD		1U
#define OTHER_PD	2U
#define IOVA		0x7f0000000018ULL
#define REGION_FIRST	24U
#define REGION_PAGES	3U
#define REGION_LEN	(REGION_PAGES * PAGE_SIZE - 100)
#define REGION_FILL	0x5a
#define AWAITED_MAX	64U
#define OUT_MAX		(1U << 18)

/* What the first bytes of an input choose. */
struct choices {
	bool initiator, crc, markers_tx, markers_rx, kernel, direct, limit_access;
	u8 rtr;
	u32 ird, ord, mss, rnr_timeout, sq_poll;
	bool atomics, doorbells, defers, sudden;
};

/* A Read or Atomic Request of ours that the peer has not answered. */
struct awaited {
	bool atomic;
	u32 stag, length, done, id, msn;
	u64 to;
};

/**
 * struct peer - the other end
 * @out: what we sent and it has not taken apart, @len bytes, from stream position @pos on
 * @msn, @mo: of what it sends next on each queue
 * @seen_msn, @seen_mo: of what it has seen of us
 * @tagged_open: a tagged message of ours is open, and is to go on with @tagged_stag, @tagged_to
 * @first: it has sent an FPDU
 * @corrupted: what it has sent was mutated
 * @terminated: it has seen a Terminate
 * @sent_pos: bytes of FPDUs that it has sent, for markers
 * @asked: requests of ours, of which it has answered @answered
 * @reads: Read Requests of its own; responses to @reads_answered of them were seen to the end
 */
struct peer {
	u8 out[OUT_MAX];
	u32 len, pos;
	u32 msn[4], mo[4];
	u32 seen_msn[4], seen_mo[4];
	bool tagged_open;
	u8 tagged_op;
	u32 tagged_stag;
	u64 tagged_to;
	bool first, terminated, corrupted;
	u32 sent_pos;
	struct awaited awaited[AWAITED_MAX];
	u32 asked, answered;
	u32 reads, reads_answered;
};

/**
 * struct wire - a connection of TCP
 * @s, @sk: its ends in the driver
 * @nospace: it will say when it has space
 * @fin_sent, @fin_received, @reset, @error: how it stands
 * @backlog: received while a process has the lock
 * @written, @received: in all
 */
struct wire {
	struct weft_sock s;
	struct sock sk;
	bool nospace, fin_sent, fin_received, reset, released;
	int error;
	struct sk_buff *backlog;
	u64 written, received;
};

/**
 * struct world - all of it
 * @regions: NULL where there is none just now
 * @reader: another stream that copies
 * @posted, @received: work requests so far
 * @sent_done, @received_done: completions
 * @overwritten: the process wrote nonsense to its queues
 * @owes_doorbell: it was asked to
 * @started, @closings, @closeds: what cm was told
 */
struct world {
	struct input in;
	struct choices choice;
	struct weft_stream_index index;
	struct weft_stag_table stags;
	struct weft_counters counters;
	struct weft_db_stat db;
	struct weft_sendq sq;
	struct weft_recvq rq;
	struct weft_cq send_cq, recv_cq;
	struct weft_stream *st;
	struct wire wire;
	struct peer peer;
	struct weft_mem_region *regions[REGIONS];
	struct weft_mem_user reader;
	u32 posted, received;
	u32 sent_done, received_done;
	u32 send_cons, recv_cons;
	bool overwritten, owes_doorbell, overflowed;
	u32 started, closings, closeds;
	u32 asyncs[WEFT_STREAM_LAST_WQE + 1];
};

extern struct world world;

void world_make(struct world *w);
void world_check(struct world *w);
void world_end(struct world *w);
void world_start(struct world *w);

struct weft_mem_region *region_make(struct world *w, u32 which);
void region_destroy(struct world *w, u32 which);
u32 region_stag(const struct world *w, u32 which);
void world_poll(struct world *w);

/* The wire: what the peer does to it. */
void wire_connect(struct world *w);
void wire_deliver(struct world *w, struct sk_buff *skb);
void wire_ack(struct world *w, u32 bytes);
void wire_changed(struct world *w);
bool wire_is_up(const struct world *w);

/* The peer: looks at all there is to see, makes an FPDU from the input. */
void peer_look(struct world *w);
u32 peer_make(struct world *w, u8 *fpdu);
void peer_connect(struct world *w);

#define FPDU_MAX	8192U

#endif
