/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Which process a device file and all objects made through it belong to. Children inherit the
 * file; what they close or destroy is their parent's while that lives.
 */
#ifndef WEFT_VERBS_OWNER_H
#define WEFT_VERBS_OWNER_H

#include <linux/spinlock.h>
#include <rdma/uverbs_ioctl.h>

struct mm_struct;

/**
 * struct weft_owner - the address space a device file belongs to
 * @mm: kept as a name, not as memory: it may be gone
 * @lock: protects @mm
 */
struct weft_owner {
	struct mm_struct *mm;
	spinlock_t lock; /* mm */
};

extern const struct uapi_definition weft_owner_defs[];

void weft_owner_init(struct weft_owner *owner);
void weft_owner_destroy(struct weft_owner *owner);

#endif
