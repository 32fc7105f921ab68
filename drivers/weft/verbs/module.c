// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What happens when the module comes and goes. `rdma link add` is opened last
 * and shut first; between the two, devices come and go.
 */
#include "verbs/module.h"

#include <rdma/ib_verbs.h>

#include "engine/life/stream.h"
#include "mem/odp.h"
#include "uapi/weft-abi.h"
#include "verbs/gid.h"
#include "verbs/link.h"
#include "verbs/netdev.h"
#include "verbs/sysfs.h"
#include "verbs/stats.h"

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
	ret = weft_netdev_watch();
	if (ret)
		goto stream_exit;
	ret = weft_gids_watch();
	if (ret)
		goto unwatch;
	weft_link_register();
	return 0;

unwatch:
	weft_netdev_unwatch();
stream_exit:
	weft_stream_module_exit();
odp_exit:
	weft_odp_module_exit();
	return ret;
}

void weft_verbs_exit(void)
{
	weft_link_unregister();
	/* Waits for those, too, that are already on their way out. */
	ib_unregister_driver((enum rdma_driver_id)WEFT_DRIVER_ID);
	/* This tells us that all netdevs go, which would cut living connections. */
	weft_gids_unwatch();
	weft_netdev_unwatch();
	weft_odp_module_exit(); /* streams that are gone are kept by faults */
	weft_stream_module_exit();
}
