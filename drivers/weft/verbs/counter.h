/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Counters of single QPs: `rdma statistic qp bind`, and the automatic kind.
 */
#ifndef WEFT_VERBS_COUNTER_H
#define WEFT_VERBS_COUNTER_H

#include <rdma/ib_verbs.h>
#include <rdma/rdma_counter.h>

#include "base/compat.h"
#include "base/counters.h"

struct weft_device;

int weft_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ib);
int weft_counter_unbind_qp(struct ib_qp *ib);
int weft_counter_dealloc(struct rdma_counter *counter);
struct rdma_hw_stats *weft_counter_alloc_stats(struct rdma_counter *counter);
int weft_counter_update_stats(struct rdma_counter *counter);
u64 weft_counter_port_sum(struct weft_device *dev, enum weft_counter which);

#endif
