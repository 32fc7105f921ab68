/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Speed and width of the port.
 */
#ifndef WEFT_VERBS_SPEED_H
#define WEFT_VERBS_SPEED_H

#include <linux/types.h>

struct net_device;

void weft_speed_of(struct net_device *netdev, u16 *speed, u8 *width);

#endif
