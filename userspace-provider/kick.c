// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The kick, as a driver's own method of the QP object. */
#include "kick.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include <rdma/ib_user_ioctl_cmds.h>

#include "uapi/weft-abi.h"

void weft_kick_init(struct weft_kick *kick, int cmd_fd, uint32_t qp_handle)
{
	const struct ib_uverbs_ioctl_hdr hdr = {
		.length = sizeof(kick->request),
		.object_id = UVERBS_OBJECT_QP,
		.method_id = WEFT_METHOD_QP_KICK,
		.num_attrs = 1,
		.driver_id = WEFT_DRIVER_ID,
	};
	const struct ib_uverbs_attr handle = {
		.attr_id = WEFT_ATTR_QP_KICK_HANDLE,
		.flags = UVERBS_ATTR_F_MANDATORY,
		.data = qp_handle,
	};

	kick->fd = cmd_fd;
	memcpy(kick->request, &hdr, sizeof(hdr));
	memcpy((uint8_t *)kick->request + sizeof(hdr), &handle, sizeof(handle));
}

int weft_kick(const struct weft_kick *kick)
{
	int ret;

	/* A signal that came first is no answer; the queue still waits. */
	do
		ret = ioctl(kick->fd, RDMA_VERBS_IOCTL, kick->request);
	while (ret < 0 && errno == EINTR);

	return ret < 0 ? errno : 0;
}
