/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The network device below: which kinds carry a weft, what its events mean.
 */
#ifndef WEFT_VERBS_NETDEV_H
#define WEFT_VERBS_NETDEV_H

#include <rdma/ib_verbs.h>

struct net_device;
struct notifier_block;
struct work_struct;

extern struct notifier_block weft_netdev_notifier;

bool weft_netdev_suitable(const struct net_device *netdev);
bool weft_netdev_needs_tag(const struct net_device *netdev);
void weft_netdev_tag(struct net_device *netdev);
void weft_netdev_untag(struct net_device *netdev);
enum ib_port_state weft_netdev_port_state(const struct net_device *netdev);

void weft_netdev_leave(struct work_struct *work);

#endif
