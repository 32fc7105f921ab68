// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Event counters: storage, sums and names.
 */
#include "base/counters.h"

#include <linux/errno.h>

/* clang-format off */
#define KINDS(_dir, _name)								\
	[WEFT_CTR_##_dir##_KIND + WEFT_MSG_SEND] = #_name "_sends",			\
	[WEFT_CTR_##_dir##_KIND + WEFT_MSG_WRITE] = #_name "_writes",			\
	[WEFT_CTR_##_dir##_KIND + WEFT_MSG_READ_REQ] = #_name "_read_requests",	\
	[WEFT_CTR_##_dir##_KIND + WEFT_MSG_READ_RESP] = #_name "_read_responses",	\
	[WEFT_CTR_##_dir##_KIND + WEFT_MSG_ATOMIC_REQ] = #_name "_atomic_requests",	\
	[WEFT_CTR_##_dir##_KIND + WEFT_MSG_ATOMIC_RESP] = #_name "_atomic_responses",	\
	[WEFT_CTR_##_dir##_KIND + WEFT_MSG_IMM] = #_name "_immediates"

#define REASONS(_dir, _name)							\
	[WEFT_CTR_##_dir##_TERM_FOR + WEFT_TERM_CRC] = #_name "_term_crc", \
	[WEFT_CTR_##_dir##_TERM_FOR + WEFT_TERM_MPA] = #_name "_term_mpa", \
	[WEFT_CTR_##_dir##_TERM_FOR + WEFT_TERM_ACCESS] = #_name "_term_access", \
	[WEFT_CTR_##_dir##_TERM_FOR + WEFT_TERM_RQ_EMPTY] = #_name "_term_rq_empty", \
	[WEFT_CTR_##_dir##_TERM_FOR + WEFT_TERM_RQ_TOO_SMALL] = #_name "_term_rq_too_small", \
	[WEFT_CTR_##_dir##_TERM_FOR + WEFT_TERM_SEQUENCE] = #_name "_term_sequence", \
	[WEFT_CTR_##_dir##_TERM_FOR + WEFT_TERM_PROTOCOL] = #_name "_term_protocol", \
	[WEFT_CTR_##_dir##_TERM_FOR + WEFT_TERM_LOCAL_ERROR] = #_name "_term_local_error"

/* clang-format on */

static const char *const counter_names[WEFT_CTR_COUNT] = {
	[WEFT_CTR_TX_MSGS] = "tx_messages",
	[WEFT_CTR_TX_SEGS] = "tx_segments",
	[WEFT_CTR_TX_BYTES] = "tx_bytes",
	[WEFT_CTR_TX_SOCKET_SENDS] = "tx_socket_sends",
	[WEFT_CTR_TX_FULL] = "tx_socket_full",
	[WEFT_CTR_LOOPBACK_TX_SEGS] = "loopback_tx_segments",
	[WEFT_CTR_LOOPBACK_TX_BYTES] = "loopback_tx_bytes",
	[WEFT_CTR_RX_MSGS] = "rx_messages",
	[WEFT_CTR_RX_SEGS] = "rx_segments",
	[WEFT_CTR_RX_BYTES] = "rx_bytes",
	[WEFT_CTR_RX_BATCHED] = "rx_batched_segments",
	[WEFT_CTR_RX_REASSEMBLED] = "rx_reassembled_fpdus",
	[WEFT_CTR_RX_CRC_ERRORS] = "rx_crc_errors",
	[WEFT_CTR_RX_MARKER_ERRORS] = "rx_marker_errors",
	[WEFT_CTR_RX_PROTOCOL_ERRORS] = "rx_protocol_errors",
	KINDS(TX, tx),
	KINDS(RX, rx),
	[WEFT_CTR_TX_TERM] = "tx_terminates",
	REASONS(TX, tx),
	[WEFT_CTR_RX_TERM] = "rx_terminates",
	REASONS(RX, rx),
	[WEFT_CTR_TX_DOORBELLS] = "tx_doorbells",
	[WEFT_CTR_TX_WORK_QUEUED] = "tx_work_queued",
	[WEFT_CTR_TX_SOFTIRQ] = "tx_softirq_runs",
	[WEFT_CTR_TX_WORK_MERGED] = "tx_work_merged",
	[WEFT_CTR_SQ_POLL_HITS] = "sq_poll_hits",
	[WEFT_CTR_SK_WRITE_SPACE] = "sk_write_space_calls",
	[WEFT_CTR_SK_DATA_READY] = "sk_data_ready_calls",
	[WEFT_CTR_RX_WORK_QUEUED] = "rx_work_queued",
	[WEFT_CTR_RNR_WAITS] = "rnr_waits",
	[WEFT_CTR_RNR_TIMEOUTS] = "rnr_timeouts",
	[WEFT_CTR_ODP_PAGE_WAITS] = "odp_page_waits",
	[WEFT_CTR_CQ_EVENTS] = "cq_events",
	[WEFT_CTR_CQ_OVERFLOWS] = "cq_overflows",
	[WEFT_CTR_WR_ERRORS] = "wr_errors",
	[WEFT_CTR_WR_FLUSHES] = "wr_flushes",
	[WEFT_CTR_CONN_ACTIVE] = "connections_active",
	[WEFT_CTR_CONN_PASSIVE] = "connections_passive",
	[WEFT_CTR_CONN_REFUSED] = "connections_refused",
	[WEFT_CTR_CONN_UNREACHABLE] = "connections_unreachable",
	[WEFT_CTR_CONN_LOST] = "connections_lost",
	[WEFT_CTR_TCP_RETRANS] = "tcp_retransmits",
	[WEFT_CTR_TCP_RETRANS_BYTES] = "tcp_retransmit_bytes",
	[WEFT_CTR_TCP_DSACKS] = "tcp_dsacks",
	[WEFT_CTR_TCP_REORDERED] = "tcp_reordered",
	[WEFT_CTR_TCP_OUT_OF_ORDER] = "tcp_out_of_order",
	[WEFT_CTR_TCP_ECN_MARKS] = "tcp_ecn_marks",
};

/**
 * weft_counters_init - allocate the per-cpu blocks, all zero
 * @c: counters of a device
 *
 * Context: may sleep. Return: 0 or -ENOMEM.
 */
int weft_counters_init(struct weft_counters *c)
{
	c->cpu = alloc_percpu(struct weft_counter_block);
	return c->cpu ? 0 : -ENOMEM;
}

void weft_counters_free(struct weft_counters *c)
{
	free_percpu(c->cpu);
	c->cpu = NULL;
}

/**
 * weft_counters_redirect - count somewhere else from now on
 * @c: counters of a stream
 * @to: whose block to add to
 *
 * Context: any. Adds under way may still go to the block before; after a grace
 * period of RCU none does.
 */
void weft_counters_redirect(struct weft_counters *c, const struct weft_counters *to)
{
	WRITE_ONCE(c->cpu, to->cpu);
}

/**
 * weft_counters_read - sum of one counter over all CPUs
 * @c: counters of a device
 * @which: the counter
 *
 * Context: any. Not a snapshot: adds of other CPUs may be missed by a moment, and a 32-bit CPU
 * may see half of one that carries.
 */
u64 weft_counters_read(const struct weft_counters *c, enum weft_counter which)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		/* Other CPUs add meanwhile, which only their own adds would see. */
		sum += data_race(per_cpu_ptr(c->cpu, cpu)->v[0][which] +
				 per_cpu_ptr(c->cpu, cpu)->v[1][which]);
	return sum;
}

const char *weft_counter_name(enum weft_counter which)
{
	return counter_names[which];
}
