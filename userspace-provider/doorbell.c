// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The doorbell, as a driver's own method of the QP object and of the SRQ object. */
#include "doorbell.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include <rdma/ib_user_ioctl_cmds.h>

#include "uapi/weft-abi.h"

static void build(struct weft_doorbell *doorbell, int cmd_fd, uint16_t object_id,
		  uint16_t method_id, uint16_t attr_id, uint32_t handle)
{
	const struct ib_uverbs_ioctl_hdr hdr = {
		.length = sizeof(doorbell->request),
		.object_id = object_id,
		.method_id = method_id,
		.num_attrs = 1,
		.driver_id = WEFT_DRIVER_ID,
	};
	const struct ib_uverbs_attr object = {
		.attr_id = attr_id,
		.flags = UVERBS_ATTR_F_MANDATORY,
		.data = handle,
	};

	doorbell->fd = cmd_fd;
	memcpy(doorbell->request, &hdr, sizeof(hdr));
	memcpy((uint8_t *)doorbell->request + sizeof(hdr), &object, sizeof(object));
}

void weft_doorbell_init_qp(struct weft_doorbell *doorbell, int cmd_fd, uint32_t handle)
{
	build(doorbell, cmd_fd, UVERBS_OBJECT_QP, WEFT_METHOD_QP_DOORBELL,
	      WEFT_ATTR_QP_DOORBELL_HANDLE, handle);
}

void weft_doorbell_init_srq(struct weft_doorbell *doorbell, int cmd_fd, uint32_t handle)
{
	build(doorbell, cmd_fd, UVERBS_OBJECT_SRQ, WEFT_METHOD_SRQ_DOORBELL,
	      WEFT_ATTR_SRQ_DOORBELL_HANDLE, handle);
}

int weft_doorbell(const struct weft_doorbell *doorbell)
{
	int ret;

	/* A signal that came first is no answer; the queue still waits. */
	do
		ret = ioctl(doorbell->fd, RDMA_VERBS_IOCTL, doorbell->request);
	while (ret < 0 && errno == EINTR);

	return ret < 0 ? errno : 0;
}
