/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The only place that knows which kernel this is. Everybody else writes for
 * 6.12; what differs elsewhere is bridged here, on the answers of
 * scripts/conftest.sh, which also says when each bridge may go.
 */
#ifndef WEFT_BASE_COMPAT_H
#define WEFT_BASE_COMPAT_H

#include <linux/net.h>
#include <linux/socket.h>
#include <linux/timer.h>
#include <linux/version.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "generated/have.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "weft needs Linux 6.1 or newer"
#endif

#ifdef HAVE_UNALIGNED_H
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

/* Kernels without page hand-over through sendmsg() copy instead. */
#ifndef MSG_SPLICE_PAGES
#define MSG_SPLICE_PAGES 0
#endif

#ifndef HAVE_TIMER_DELETE
#define timer_delete(t) del_timer(t)
#define timer_delete_sync(t) del_timer_sync(t)
#endif

#ifndef HAVE_TIMER_CONTAINER_OF
#define timer_container_of(var, timer, field) from_timer(var, timer, field)
#endif

#ifndef HAVE_NAME_ASSIGN_TYPE
static inline void ib_mark_name_assigned_by_user(struct ib_device *ib)
{
}
#endif

/* The type that bind and connect of a kernel socket take. */
#ifdef HAVE_SOCKADDR_UNSIZED
#define weft_sockaddr sockaddr_unsized
#else
#define weft_sockaddr sockaddr
#endif

/**
 * WEFT_CREATE_CQ_OPS - the operations behind ib_create_cq() for kernel and user
 * @impl: int (struct ib_cq *, const struct ib_cq_init_attr *, struct ib_udata *)
 *
 * Defines the adapters; WEFT_CQ_OPS names them in a struct ib_device_ops.
 */
#ifdef HAVE_CREATE_CQ_ATTRS
#define WEFT_CREATE_CQ_OPS(impl)							\
static int compat_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,	\
			    struct uverbs_attr_bundle *attrs)				\
{											\
	return impl(cq, attr, attrs ? &attrs->driver_udata : NULL);			\
}
#else
#define WEFT_CREATE_CQ_OPS(impl)							\
static int compat_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,	\
			    struct ib_udata *udata)					\
{											\
	return impl(cq, attr, udata);							\
}
#endif

#ifdef HAVE_CREATE_USER_CQ
#define WEFT_CQ_OPS	.create_cq = compat_create_cq, .create_user_cq = compat_create_cq
#else
#define WEFT_CQ_OPS	.create_cq = compat_create_cq
#endif

/**
 * WEFT_REG_USER_MR_OP - the operation behind ibv_reg_mr()
 * @impl: struct ib_mr *(struct ib_pd *, u64 start, u64 length, u64 iova, int access,
 *	struct ib_udata *)
 *
 * Defines compat_reg_user_mr().
 */
#ifdef HAVE_REG_USER_MR_DMAH
#define WEFT_REG_USER_MR_OP(impl)							\
static struct ib_mr *compat_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,	\
					u64 iova, int access, struct ib_dmah *dmah,	\
					struct ib_udata *udata)				\
{											\
	if (dmah)									\
		return ERR_PTR(-EOPNOTSUPP);						\
	return impl(pd, start, length, iova, access, udata);				\
}
#else
#define WEFT_REG_USER_MR_OP(impl)							\
static struct ib_mr *compat_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,	\
					u64 iova, int access, struct ib_udata *udata)	\
{											\
	return impl(pd, start, length, iova, access, udata);				\
}
#endif

#endif
