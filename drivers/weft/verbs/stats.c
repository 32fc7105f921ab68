// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The device's counters as `rdma statistic` shows them.
 */
#include "verbs/stats.h"

#include "base/counters.h"
#include "engine/life/introspect.h"
#include "verbs/device.h"

/* The names again, in the core's shape; written once, before any device. */
static struct rdma_stat_desc stat_descs[WEFT_CTR_COUNT];

void weft_stats_init(void)
{
	unsigned int i;

	for (i = 0; i < WEFT_CTR_COUNT; i++)
		stat_descs[i].name = weft_counter_name(i);
}

struct rdma_hw_stats *weft_alloc_hw_port_stats(struct ib_device *ib, u32 port)
{
	return rdma_alloc_hw_stats_struct(stat_descs, WEFT_CTR_COUNT,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

/**
 * weft_stats_fill - sums of all CPUs, in the core's shape
 * @stats: made by weft_alloc_hw_port_stats()
 * @counters: of a device, or of some QPs
 */
void weft_stats_fill(struct rdma_hw_stats *stats, const struct weft_counters *counters)
{
	unsigned int i;

	for (i = 0; i < WEFT_CTR_COUNT; i++)
		stats->value[i] = weft_counters_read(counters, i);
}

int weft_get_hw_stats(struct ib_device *ib, struct rdma_hw_stats *stats, u32 port, int index)
{
	struct weft_device *dev = to_weft_dev(ib);

	if (port == 0)
		return -EOPNOTSUPP;
	weft_stream_count_tcp_all(&dev->streams, 0);
	weft_stats_fill(stats, &dev->counters);
	return WEFT_CTR_COUNT;
}
