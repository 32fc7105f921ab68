// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Event counters: storage, sums and names.
 */
#include "base/counters.h"

#include <linux/errno.h>

static const char *const counter_names[WEFT_CTR_COUNT] = {
	[WEFT_CTR_TX_MSGS] = "tx_messages",
	[WEFT_CTR_TX_SEGS] = "tx_segments",
	[WEFT_CTR_TX_BYTES] = "tx_bytes",
	[WEFT_CTR_TX_PUSHES] = "tx_pushes",
	[WEFT_CTR_TX_FULL] = "tx_socket_full",
	[WEFT_CTR_RX_MSGS] = "rx_messages",
	[WEFT_CTR_RX_SEGS] = "rx_segments",
	[WEFT_CTR_RX_BYTES] = "rx_bytes",
	[WEFT_CTR_RX_GATHERED] = "rx_gathered",
	[WEFT_CTR_RX_CRC_ERRORS] = "rx_crc_errors",
	[WEFT_CTR_RX_MARKER_ERRORS] = "rx_marker_errors",
	[WEFT_CTR_RX_FAULTS] = "rx_faults",
	[WEFT_CTR_TERM_SENT] = "terminates_sent",
	[WEFT_CTR_TERM_RECEIVED] = "terminates_received",
	[WEFT_CTR_KICKS_INLINE] = "kicks_inline",
	[WEFT_CTR_KICKS_QUEUED] = "kicks_queued",
	[WEFT_CTR_KICKS_MERGED] = "kicks_merged",
	[WEFT_CTR_CQ_EVENTS] = "cq_events",
	[WEFT_CTR_CQ_OVERFLOWS] = "cq_overflows",
	[WEFT_CTR_CONN_ACTIVE] = "connections_active",
	[WEFT_CTR_CONN_PASSIVE] = "connections_passive",
	[WEFT_CTR_CONN_REFUSED] = "connections_refused",
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
 * weft_counters_read - sum of one counter over all CPUs
 * @c: counters of a device
 * @which: the counter
 *
 * Context: any. Not a snapshot: adds of other CPUs may be missed by a moment.
 */
u64 weft_counters_read(const struct weft_counters *c, enum weft_counter which)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu_ptr(c->cpu, cpu)->v[0][which] +
		       per_cpu_ptr(c->cpu, cpu)->v[1][which];
	return sum;
}

const char *weft_counter_name(enum weft_counter which)
{
	return counter_names[which];
}
