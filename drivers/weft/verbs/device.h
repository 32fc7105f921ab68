/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A weft device: one ib_device on one network device, and what its objects
 * share.
 */
#ifndef WEFT_VERBS_DEVICE_H
#define WEFT_VERBS_DEVICE_H

#include <linux/atomic.h>
#include <linux/idr.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "base/counters.h"
#include "base/limits.h"
#include "cm/cm.h"
#include "engine/life/stream.h"
#include "mem/stag.h"
#include "verbs/gid.h"

/**
 * struct weft_device - a registered or dying device
 * @ib: the core's part; everything is freed with it
 * @netdev: the network device, a reference held until dealloc_driver
 * @netdev_tracker: of that reference
 * @tagged: the netdev's address buffer carries a tag of ours, see netdev.c
 * @port_state: enum ib_port_state as last reported; under RTNL
 * @gids: the GID table
 * @counters: events, per cpu
 * @past_qp_counters: sums of counters of single QPs that are gone
 * @qp_counters: counters of single QPs, see counter.c
 * @qp_counter_number: the last number that was given to one
 * @qp_counters_lock: protects the list and what is in it
 * @stags: memory regions and windows
 * @streams: by QP number
 * @cm: listeners and connections
 * @pds: numbers of protection domains, from 1
 * @num_qp, @num_cq, @num_srq: objects charged against base/limits.h
 * @leaving: the netdev goes, see netdev.c
 */
struct weft_device {
	struct ib_device ib;
	struct net_device *netdev;
	netdevice_tracker netdev_tracker;
	bool tagged;
	u8 port_state;
	struct weft_gids gids;
	struct weft_counters counters;
	u64 past_qp_counters[WEFT_CTR_COUNT];
	struct list_head qp_counters;
	u32 qp_counter_number;
	struct mutex qp_counters_lock; /* qp_counters, qp_counter_number, past_qp_counters */
	struct weft_stag_table stags;
	struct weft_stream_index streams;
	struct weft_cm cm;
	struct ida pds;
	atomic_t num_qp;
	atomic_t num_cq;
	atomic_t num_srq;
	struct work_struct leaving;
};

static inline struct weft_device *to_weft_dev(struct ib_device *ib)
{
	return container_of(ib, struct weft_device, ib);
}

/**
 * weft_charge - count one more object of a kind
 * @count: one of the num_* fields
 * @limit: from base/limits.h
 *
 * Context: any. Return: 0, or -ENOMEM when the device holds @limit already.
 */
static inline int weft_charge(atomic_t *count, u32 limit)
{
	return atomic_add_unless(count, 1, limit) ? 0 : -ENOMEM;
}

static inline void weft_uncharge(atomic_t *count)
{
	atomic_dec(count);
}

int weft_device_add(const char *name, struct net_device *netdev);

#endif
