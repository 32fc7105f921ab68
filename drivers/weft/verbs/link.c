// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * `rdma link add NAME type weft netdev DEV`. Deleting needs nothing of us: the
 * core unregisters any device that says IBK_ALLOW_USER_UNREG.
 */
#include "verbs/link.h"

#include <linux/module.h>
#include <rdma/rdma_netlink.h>

#include "verbs/device.h"

static struct rdma_link_ops link_ops = {
	.type = "weft",
	.newlink = weft_device_add,
};

void weft_link_register(void)
{
	rdma_link_register(&link_ops);
}

void weft_link_unregister(void)
{
	rdma_link_unregister(&link_ops);
}

MODULE_ALIAS_RDMA_LINK("weft");
