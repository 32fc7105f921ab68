// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The kick, as a driver's own method of the QP object and of the SRQ object. */
#include "kick.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include <rdma/ib_user_ioctl_cmds.h>

#include "uapi/weft-abi.h"

static void build(struct weft_kick *kick, int cmd_fd, const struct ib_uverbs_attr *object,
		  uint16_t object_id, uint16_t method_id)
{
	const struct ib_uverbs_ioctl_hdr hdr = {
		.length = sizeof(kick->request),
		.object_id = object_id,
		.method_id = method_id,
		.num_attrs = 1,
		.driver_id = WEFT_DRIVER_ID,
	};

	kick->fd = cmd_fd;
	memcpy(kick->request, &hdr, sizeof(hdr));
	memcpy((uint8_t *)kick->request + sizeof(hdr), object, sizeof(*object));
}

void weft_kick_init_qp(struct weft_kick *kick, int cmd_fd, uint32_t handle)
{
	const struct ib_uverbs_attr qp = {
		.attr_id = WEFT_ATTR_QP_KICK_HANDLE,
		.flags = UVERBS_ATTR_F_MANDATORY,
		.data = handle,
	};

	build(kick, cmd_fd, &qp, UVERBS_OBJECT_QP, WEFT_METHOD_QP_KICK);
}

void weft_kick_init_srq(struct weft_kick *kick, int cmd_fd, uint32_t handle)
{
	const struct ib_uverbs_attr srq = {
		.attr_id = WEFT_ATTR_SRQ_KICK_HANDLE,
		.flags = UVERBS_ATTR_F_MANDATORY,
		.data = handle,
	};

	build(kick, cmd_fd, &srq, UVERBS_OBJECT_SRQ, WEFT_METHOD_SRQ_KICK);
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
