// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The doorbell, as a driver's own method of the QP object and of the SRQ object. */
#include "doorbell.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>

#include "uapi/weft-abi.h"

void weft_doorbell_init(struct weft_doorbell *doorbell, int cmd_fd, uint16_t object_id,
			uint32_t handle)
{
	const bool srq = object_id == UVERBS_OBJECT_SRQ;
	const struct ib_uverbs_ioctl_hdr hdr = {
		.length = sizeof(doorbell->request),
		.object_id = object_id,
		.method_id = srq ? WEFT_METHOD_SRQ_DOORBELL : WEFT_METHOD_QP_DOORBELL,
		.num_attrs = 1,
		.driver_id = WEFT_DRIVER_ID,
	};
	const struct ib_uverbs_attr object = {
		.attr_id = srq ? WEFT_ATTR_SRQ_DOORBELL_HANDLE : WEFT_ATTR_QP_DOORBELL_HANDLE,
		.flags = UVERBS_ATTR_F_MANDATORY,
		.data = handle,
	};

	doorbell->fd = cmd_fd;
	memcpy(doorbell->request, &hdr, sizeof(hdr));
	memcpy((uint8_t *)doorbell->request + sizeof(hdr), &object, sizeof(object));
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
