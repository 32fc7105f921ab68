// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Counters of single QPs. A QP that is bound to one counts in its block instead
 * of the device's, so it costs nothing, and nothing is counted twice: what the
 * core shows for a port is the device's block plus all counters, those that are
 * gone included.
 */
#include "verbs/counter.h"

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "base/counters.h"
#include "engine/life/introspect.h"
#include "verbs/device.h"
#include "verbs/qp.h"
#include "verbs/stats.h"

/* The core asks each counter once per value when it sums them up for a port. */
#define TCP_COUNT_AGE	(HZ / 10)

/**
 * struct counter - what stands behind a counter of the core
 * @list: in weft_device.qp_counters
 * @core: whose
 * @counters: the block
 *
 * Found by its owner's address: older cores give a driver no place of its own in
 * theirs, and no number before the first QP is bound.
 */
struct counter {
	struct list_head list;
	struct rdma_counter *core;
	struct weft_counters counters;
};

static struct counter *find_counter(struct weft_device *dev, const struct rdma_counter *core)
	__must_hold(&dev->qp_counters_lock)
{
	struct counter *c;

	lockdep_assert_held(&dev->qp_counters_lock);
	list_for_each_entry(c, &dev->qp_counters, list)
		if (c->core == core)
			return c;
	return NULL;
}

/*
 * By its number the core tracks a counter, and tells whose a QP is, so each has its own; 0 is none.
 * It is not given out again at once, as the core forgets a counter after weft_counter_dealloc().
 */
static u32 new_number(struct weft_device *dev) __must_hold(&dev->qp_counters_lock)
{
	struct counter *c;
	bool is_used;

	lockdep_assert_held(&dev->qp_counters_lock);
	do {
		dev->qp_counter_number++;
		is_used = !dev->qp_counter_number;
		list_for_each_entry(c, &dev->qp_counters, list)
			is_used |= c->core->id == dev->qp_counter_number;
	} while (is_used);
	return dev->qp_counter_number;
}

static struct counter *find_or_make(struct weft_device *dev, struct rdma_counter *core)
	__must_hold(&dev->qp_counters_lock)
{
	struct counter *c = find_counter(dev, core);

	lockdep_assert_held(&dev->qp_counters_lock);
	if (c)
		return c;
	c = kzalloc(sizeof(*c), GFP_KERNEL);
	if (!c)
		return NULL;
	if (weft_counters_init(&c->counters)) {
		kfree(c);
		return NULL;
	}
	core->id = new_number(dev);
	c->core = core;
	list_add(&c->list, &dev->qp_counters);
	return c;
}

/**
 * weft_counter_bind_qp - count a QP apart from now on
 * @counter: new, or with other QPs already
 * @ib: bound to none
 *
 * Context: process; the core holds a lock of @counter. Return: 0, -ENOMEM, or -EINVAL for a
 * QP that is being destroyed.
 */
int weft_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ib)
{
	struct weft_device *dev = to_weft_dev(ib->device);
	struct weft_qp *qp = to_weft_qp(ib);
	struct counter *c;

	if (!weft_tracked_get(&qp->tracked))
		return -EINVAL;
	mutex_lock(&dev->qp_counters_lock);
	c = find_or_make(dev, counter);
	if (c)
		weft_stream_count_in(qp->stream, &c->counters);
	mutex_unlock(&dev->qp_counters_lock);
	weft_tracked_put(&qp->tracked);
	if (!c)
		return -ENOMEM;
	ib->counter = counter;
	return 0;
}

/**
 * weft_counter_unbind_qp - count a QP with all others again
 * @ib: bound
 *
 * When it returns the counter no longer counts for this QP. One that is being
 * destroyed counts until its end. Context: process. Return: 0.
 */
int weft_counter_unbind_qp(struct ib_qp *ib)
{
	struct weft_device *dev = to_weft_dev(ib->device);
	struct weft_qp *qp = to_weft_qp(ib);

	ib->counter = NULL;
	if (!weft_tracked_get_hidden(&qp->tracked))
		return 0;
	weft_stream_count_in(qp->stream, &dev->counters);
	weft_tracked_put(&qp->tracked);
	synchronize_rcu();
	return 0;
}

/**
 * weft_counter_port_sum - a value of the port, with what QPs count apart
 * @dev: the device
 * @which: the value
 *
 * For readers that the core does not add the counters up for. Context: process.
 */
u64 weft_counter_port_sum(struct weft_device *dev, enum weft_counter which)
{
	struct counter *c;
	u64 sum;

	mutex_lock(&dev->qp_counters_lock);
	sum = weft_counters_read(&dev->counters, which) + dev->past_qp_counters[which];
	list_for_each_entry(c, &dev->qp_counters, list)
		sum += weft_counters_read(&c->counters, which);
	mutex_unlock(&dev->qp_counters_lock);
	return sum;
}

/**
 * weft_counter_dealloc - the last QP is gone, and the values were read
 * @counter: of the core
 *
 * Context: process. Return: 0.
 */
int weft_counter_dealloc(struct rdma_counter *counter)
{
	struct weft_device *dev = to_weft_dev(counter->device);
	struct counter *c;
	unsigned int i;

	mutex_lock(&dev->qp_counters_lock);
	c = find_counter(dev, counter);
	if (c) {
		list_del(&c->list);
		for (i = 0; i < WEFT_CTR_COUNT; i++)
			dev->past_qp_counters[i] += weft_counters_read(&c->counters, i);
	}
	mutex_unlock(&dev->qp_counters_lock);
	if (!c)
		return 0;
	weft_counters_free(&c->counters);
	kfree(c);
	return 0;
}

struct rdma_hw_stats *weft_counter_alloc_stats(struct rdma_counter *counter)
{
	return weft_alloc_hw_port_stats(counter->device, counter->port);
}

/**
 * weft_counter_update_stats - what a counter stands at
 * @counter: of the core; its values are written
 *
 * Context: process. Return: 0, or -ENOENT for one that no QP was bound to.
 */
int weft_counter_update_stats(struct rdma_counter *counter)
{
	struct weft_device *dev = to_weft_dev(counter->device);
	struct counter *c;

	weft_stream_count_tcp_all(&dev->streams, TCP_COUNT_AGE);
	mutex_lock(&dev->qp_counters_lock);
	c = find_counter(dev, counter);
	if (c)
		weft_stats_fill(counter->stats, &c->counters);
	mutex_unlock(&dev->qp_counters_lock);
	return c ? 0 : -ENOENT;
}
