// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Speed and width of the port, in the words of InfiniBand: what the network device says of its
 * link, and the slowest there is for one that says nothing. The core's ib_get_eth_speed() calls
 * that a gigabit, logs a line each time it is asked, and rounds 2.5 and 5 gigabits up to ten.
 */
#include "verbs/speed.h"

#include <linux/ethtool.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <rdma/ib_verbs.h>

/* The first that is as fast as the link. 56 is 4 lanes of FDR, and of no Ethernet but Mellanox'. */
/* clang-format off */
static const struct {
	u32 mbps;
	u16 speed;
	u8 width;
} rates[] = {
	{ SPEED_2500, IB_SPEED_SDR, IB_WIDTH_1X },
	{ SPEED_5000, IB_SPEED_DDR, IB_WIDTH_1X },
	{ SPEED_10000, IB_SPEED_FDR10, IB_WIDTH_1X },
	{ SPEED_20000, IB_SPEED_DDR, IB_WIDTH_4X },
	{ SPEED_25000, IB_SPEED_EDR, IB_WIDTH_1X },
	{ SPEED_40000, IB_SPEED_FDR10, IB_WIDTH_4X },
	{ SPEED_50000, IB_SPEED_EDR, IB_WIDTH_2X },
	{ SPEED_56000, IB_SPEED_FDR, IB_WIDTH_4X },
	{ SPEED_100000, IB_SPEED_EDR, IB_WIDTH_4X },
	{ SPEED_200000, IB_SPEED_HDR, IB_WIDTH_4X },
	{ SPEED_400000, IB_SPEED_NDR, IB_WIDTH_4X },
	{ U32_MAX, IB_SPEED_NDR, IB_WIDTH_8X },
};

/* clang-format on */

/**
 * weft_speed_of - what the port's speed and width are
 * @netdev: a reference is held
 * @speed: set, enum ib_port_speed
 * @width: set, enum ib_port_width
 *
 * Context: process, takes RTNL.
 */
void weft_speed_of(struct net_device *netdev, u16 *speed, u8 *width)
{
	struct ethtool_link_ksettings link = {};
	unsigned int i = 0;
	u32 mbps = 0;

	rtnl_lock();
	if (netdev->reg_state == NETREG_REGISTERED && !__ethtool_get_link_ksettings(netdev, &link))
		mbps = link.base.speed;
	rtnl_unlock();
	if (mbps == (u32)SPEED_UNKNOWN)
		mbps = 0;
	while (rates[i].mbps < mbps)
		i++;
	*speed = rates[i].speed;
	*width = rates[i].width;
}
