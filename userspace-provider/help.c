// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Work for the kernel, done by a thread that polls in vain. */
#include "help.h"

#include <sys/ioctl.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "uapi/weft-abi.h"

void weft_help_init(struct weft_help *help, struct weft_regions *regions, int fd,
		    const struct weft_queue_map *map)
{
	help->fd = fd;
	if (!weft_queue_map(&help->queue, regions, map, 0))
		help->ctl = (void *)help->queue.base;
}

void weft_help_fini(struct weft_help *help)
{
	weft_queue_unmap(&help->queue);
}

/* What is left undone, by a signal or as the device is gone, is not for us to mend. */
void weft_help_give(struct weft_help *help)
{
	struct ib_uverbs_ioctl_hdr request = {
		.length = sizeof(request),
		.object_id = UVERBS_OBJECT_DEVICE,
		.method_id = WEFT_METHOD_HELP,
		.driver_id = WEFT_DRIVER_ID,
	};

	__atomic_store_n(&help->ctl->work, 0, __ATOMIC_RELAXED);
	(void)ioctl(help->fd, RDMA_VERBS_IOCTL, &request);
}
