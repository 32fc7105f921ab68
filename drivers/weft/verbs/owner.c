// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Which process a device file belongs to: the one that opened it, until its address space is
 * gone, and then the child that asks first. The kernel treats all that have the file alike. It
 * is the library that asks, before it destroys what was made before a fork (uapi/weft-abi.h):
 * it cannot know by itself whether the parent has ended.
 */
#include "verbs/owner.h"

#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>

#include "uapi/weft-abi.h"
#include "verbs/ucontext.h"

#define UVERBS_MODULE_NAME weft
#include <rdma/uverbs_named_ioctl.h>

static_assert(WEFT_METHOD_DEVICE_OWN == (1U << UVERBS_ID_NS_SHIFT) + 1);

/* Context: process that opens a device. */
void weft_owner_init(struct weft_owner *owner)
{
	spin_lock_init(&owner->lock);
	mmgrab(current->mm);
	owner->mm = current->mm;
}

/* Context: may sleep. */
void weft_owner_destroy(struct weft_owner *owner)
{
	mmdrop(owner->mm);
}

/* 0 if the file is the caller's now, -EBUSY while its owner lives. */
static int UVERBS_HANDLER(WEFT_METHOD_DEVICE_OWN)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *uctx = ib_uverbs_get_ucontext(attrs);
	struct mm_struct *mm = current->mm;
	struct mm_struct *gone = NULL;
	struct weft_owner *owner;
	int ret = 0;

	if (IS_ERR(uctx))
		return PTR_ERR(uctx);
	owner = &to_weft_ucontext(uctx)->owner;
	spin_lock(&owner->lock);
	if (owner->mm == mm) {
		ret = 0;
	} else if (atomic_read(&owner->mm->mm_users)) {
		ret = -EBUSY;
	} else {
		mmgrab(mm);
		gone = owner->mm;
		owner->mm = mm;
	}
	spin_unlock(&owner->lock);
	if (gone)
		mmdrop(gone);
	return ret;
}

DECLARE_UVERBS_NAMED_METHOD(WEFT_METHOD_DEVICE_OWN);

ADD_UVERBS_METHODS(weft_device_methods, UVERBS_OBJECT_DEVICE,
		   &UVERBS_METHOD(WEFT_METHOD_DEVICE_OWN));

const struct uapi_definition weft_owner_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &weft_device_methods),
	{},
};
