// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What happens when the module comes and goes. `rdma link add` is opened last
 * and shut first; between the two, devices come and go.
 */
#include "verbs/module.h"

#include <linux/module.h>
#include <linux/netdevice.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_netlink.h>

#include "engine/life/stream.h"
#include "mem/odp.h"
#include "uapi/weft-abi.h"
#include "verbs/device.h"
#include "verbs/gid.h"
#include "verbs/netdev.h"
#include "verbs/sysfs.h"
#include "verbs/stats.h"

/*
 * `rdma link add NAME type weft netdev DEV`. Deleting needs nothing of us: the
 * core unregisters any device that says IBK_ALLOW_USER_UNREG.
 */
static struct rdma_link_ops link_ops = {
	.type = "weft",
	.newlink = weft_device_add,
};

MODULE_ALIAS_RDMA_LINK("weft");

int weft_verbs_init(void)
{
	int ret;

	weft_stats_init();
	weft_sysfs_init();
	ret = weft_odp_module_init();
	if (ret)
		return ret;
	ret = weft_stream_module_init();
	if (ret)
		goto odp_exit;
	ret = register_netdevice_notifier(&weft_netdev_notifier);
	if (ret)
		goto stream_exit;
	ret = weft_gids_watch();
	if (ret)
		goto unregister_netdev;
	rdma_link_register(&link_ops);
	return 0;

unregister_netdev:
	unregister_netdevice_notifier(&weft_netdev_notifier);
stream_exit:
	weft_stream_module_exit();
odp_exit:
	weft_odp_module_exit();
	return ret;
}

void weft_verbs_exit(void)
{
	rdma_link_unregister(&link_ops);
	/* Waits for those, too, that are already on their way out. */
	ib_unregister_driver((enum rdma_driver_id)WEFT_DRIVER_ID);
	/* This tells us that all netdevs go, which would cut living connections. */
	weft_gids_unwatch();
	unregister_netdevice_notifier(&weft_netdev_notifier);
	weft_odp_module_exit(); /* streams that are gone are kept by faults */
	weft_stream_module_exit();
}
