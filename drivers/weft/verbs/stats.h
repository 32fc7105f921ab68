/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The device's counters as `rdma statistic` shows them, and as those of InfiniBand devices are.
 */
#ifndef WEFT_VERBS_STATS_H
#define WEFT_VERBS_STATS_H

#include <rdma/ib_verbs.h>

struct weft_counters;

void weft_stats_init(void);
struct rdma_hw_stats *weft_alloc_hw_port_stats(struct ib_device *ib, u32 port);
void weft_stats_fill(struct rdma_hw_stats *stats, const struct weft_counters *counters);
int weft_get_hw_stats(struct ib_device *ib, struct rdma_hw_stats *stats, u32 port, int index);
int weft_process_mad(struct ib_device *ib, int flags, u32 port, const struct ib_wc *wc,
		     const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
		     size_t *out_size, u16 *out_pkey_index);

#endif
