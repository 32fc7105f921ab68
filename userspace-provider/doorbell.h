/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The doorbell: one ioctl that sets the kernel to work on the queues of a QP, or an SRQ. */
#ifndef WEFT_DOORBELL_H
#define WEFT_DOORBELL_H

#include <stdint.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

/* Built with the object, read-only from then on: threads may ring at once. */
struct weft_doorbell {
	int fd;
	uint64_t request[(sizeof(struct ib_uverbs_ioctl_hdr) + sizeof(struct ib_uverbs_attr)) / 8];
};

/* @object_id: UVERBS_OBJECT_QP or UVERBS_OBJECT_SRQ */
void weft_doorbell_init(struct weft_doorbell *doorbell, int cmd_fd, uint16_t object_id,
			uint32_t handle);

/*
 * Returns 0 or an errno; the kernel has either done the work or taken it over.
 * EIO and ENODEV: the device is gone. ENOENT: so is the object, with its device.
 */
int weft_doorbell(const struct weft_doorbell *doorbell);

#endif
