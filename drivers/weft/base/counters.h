/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Event counters of a device: one enum, one name table, per-cpu adds.
 */
#ifndef WEFT_BASE_COUNTERS_H
#define WEFT_BASE_COUNTERS_H

#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/types.h>

/* Messages that are counted apart, as far as an operator tells them apart. */
enum weft_msg_kind {
	WEFT_MSG_SEND,		/* with invalidate, solicited */
	WEFT_MSG_WRITE,
	WEFT_MSG_READ_REQ,
	WEFT_MSG_READ_RESP,
	WEFT_MSG_ATOMIC_REQ,
	WEFT_MSG_ATOMIC_RESP,
	WEFT_MSG_IMM,
	WEFT_MSG_KINDS
};

/* Why a Terminate is sent: what an operator would do something about. */
enum weft_term_reason {
	WEFT_TERM_CRC,		/* bytes damaged on their way */
	WEFT_TERM_MPA,	/* markers, terms of the connection */
	WEFT_TERM_ACCESS,	/* key, bounds, rights */
	WEFT_TERM_RQ_EMPTY,	/* a message came, and nothing was posted for it */
	WEFT_TERM_RQ_TOO_SMALL,	/* a message did not fit into the receive */
	WEFT_TERM_SEQUENCE,	/* message out of order: a queue, number, offset */
	WEFT_TERM_PROTOCOL,	/* version, opcode, layout of a header */
	WEFT_TERM_LOCAL_ERROR,	/* trouble of the sender's own */
	WEFT_TERM_REASONS
};

enum weft_counter {
	WEFT_CTR_TX_MSGS, /* RDMAP messages completely handed to TCP */
	WEFT_CTR_TX_SEGS, /* DDP segments staged */
	WEFT_CTR_TX_BYTES, /* payload bytes staged */
	WEFT_CTR_TX_SOCKET_SENDS, /* calls into TCP */
	WEFT_CTR_TX_FULL, /* pushes that met a full socket */
	WEFT_CTR_LOOPBACK_TX_SEGS, /* of these, handed to a peer on this host without TCP */
	WEFT_CTR_LOOPBACK_TX_BYTES,
	WEFT_CTR_RX_MSGS, /* RDMAP messages delivered */
	WEFT_CTR_RX_SEGS, /* FPDUs accepted */
	WEFT_CTR_RX_BYTES, /* payload bytes placed */
	WEFT_CTR_RX_BATCHED, /* FPDUs placed in one go with others like them */
	WEFT_CTR_RX_REASSEMBLED, /* FPDUs that spanned socket buffers */
	WEFT_CTR_RX_CRC_ERRORS,
	WEFT_CTR_RX_MARKER_ERRORS,
	WEFT_CTR_RX_PROTOCOL_ERRORS, /* segments refused by DDP or RDMAP */
	WEFT_CTR_TX_KIND, /* the messages sent, enum weft_msg_kind */
	WEFT_CTR_TX_KIND_LAST = WEFT_CTR_TX_KIND + WEFT_MSG_KINDS - 1,
	WEFT_CTR_RX_KIND, /* the messages delivered, enum weft_msg_kind */
	WEFT_CTR_RX_KIND_LAST = WEFT_CTR_RX_KIND + WEFT_MSG_KINDS - 1,
	WEFT_CTR_TX_TERM,
	WEFT_CTR_TX_TERM_FOR, /* enum weft_term_reason */
	WEFT_CTR_TX_TERM_FOR_LAST = WEFT_CTR_TX_TERM_FOR + WEFT_TERM_REASONS - 1,
	WEFT_CTR_RX_TERM,
	WEFT_CTR_RX_TERM_FOR, /* enum weft_term_reason */
	WEFT_CTR_RX_TERM_FOR_LAST = WEFT_CTR_RX_TERM_FOR + WEFT_TERM_REASONS - 1,
	WEFT_CTR_TX_DOORBELLS, /* doorbell calls */
	WEFT_CTR_TX_WORK_QUEUED, /* runs of tx handed to a worker */
	WEFT_CTR_TX_SOFTIRQ, /* runs of tx in a callback of the socket */
	WEFT_CTR_TX_WORK_MERGED, /* the same, but tx was running */
	WEFT_CTR_SQ_POLL_HITS, /* posts without a doorbell, found by the timer */
	WEFT_CTR_SK_WRITE_SPACE, /* a full socket has room again */
	WEFT_CTR_SK_DATA_READY, /* TCP says that bytes have come */
	WEFT_CTR_RX_WORK_QUEUED, /* reading left to a worker: memory, invalidation */
	WEFT_CTR_RNR_WAITS, /* messages that waited for a receive */
	WEFT_CTR_RNR_TIMEOUTS, /* of these, without success */
	WEFT_CTR_ODP_PAGE_WAITS, /* accesses that waited for memory paged on demand */
	WEFT_CTR_CQ_EVENTS,
	WEFT_CTR_CQ_OVERFLOWS,
	WEFT_CTR_WR_ERRORS, /* work requests that failed, flushed ones apart */
	WEFT_CTR_WR_FLUSHES,
	WEFT_CTR_CONN_ACTIVE, /* connections established by connect */
	WEFT_CTR_CONN_PASSIVE, /* connections established by accept */
	WEFT_CTR_CONN_REFUSED, /* start-up frames refused or timed out */
	WEFT_CTR_CONN_UNREACHABLE, /* of those, connects to a peer that TCP could not reach */
	WEFT_CTR_CONN_LOST, /* streams that ended by reset, time-out or a torn FPDU */
	WEFT_CTR_TCP_RETRANS, /* what TCP knows; brought up to date when read */
	WEFT_CTR_TCP_RETRANS_BYTES,
	WEFT_CTR_TCP_DSACKS, /* retransmissions that were not needed */
	WEFT_CTR_TCP_REORDERED,
	WEFT_CTR_TCP_OUT_OF_ORDER, /* segments received early */
	WEFT_CTR_TCP_ECN_MARKS,
	WEFT_CTR_COUNT
};

/* One set for softirqs, one for what they interrupt: then a plain add will do. */
struct weft_counter_block {
	u64 v[2][WEFT_CTR_COUNT];
};

/**
 * struct weft_counters - where to count
 * @cpu: block to add to; read with preemption off, so that it may be exchanged
 *
 * A device owns one with its block, and outlives every object that adds to it. A
 * stream has one that points to the block of its device, or to that of the
 * counter its QP is bound to.
 */
struct weft_counters {
	struct weft_counter_block __percpu *cpu;
};

int weft_counters_init(struct weft_counters *c);
void weft_counters_free(struct weft_counters *c);
void weft_counters_redirect(struct weft_counters *c, const struct weft_counters *to);
u64 weft_counters_read(const struct weft_counters *c, enum weft_counter which);
const char *weft_counter_name(enum weft_counter which);

/*
 * Any context but hard interrupts. Not this_cpu_add(): many architectures switch
 * interrupts off for it, and a message is counted half a dozen times.
 */
static inline void weft_count_add(struct weft_counters *c, enum weft_counter which, u64 n)
{
	preempt_disable();
	raw_cpu_add(READ_ONCE(c->cpu)->v[!!in_serving_softirq()][which], n);
	preempt_enable();
}

static inline void weft_count(struct weft_counters *c, enum weft_counter which)
{
	weft_count_add(c, which, 1);
}

/* One event that two counters are about. */
static inline void weft_count_add2(struct weft_counters *c, enum weft_counter one, u64 n,
				   enum weft_counter other, u64 m)
{
	u64 *v;

	preempt_disable();
	v = raw_cpu_ptr(READ_ONCE(c->cpu))->v[!!in_serving_softirq()];
	v[one] += n;
	v[other] += m;
	preempt_enable();
}

#endif
