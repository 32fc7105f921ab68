/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The only place that knows which kernel this is. All other files are written for
 * 6.12; what differs elsewhere is bridged here, on the answers of
 * scripts/conftest.sh, which also says when each bridge may go.
 */
#ifndef WEFT_BASE_COMPAT_H
#define WEFT_BASE_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/sched.h>
#include <linux/skbuff.h>
#include <linux/socket.h>
#include <linux/timer.h>
#include <linux/version.h>
#include <net/sock.h>
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

#ifndef HAVE_VM_FLAGS_SET
#define vm_flags_set(vma, flags) ((vma)->vm_flags |= (flags))
#endif

#ifndef HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *timer),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/* Not the task's page fragment. Before it was asked, that followed from GFP_NOIO. */
static inline void compat_use_own_frag(struct sock *sk)
{
#ifdef HAVE_SK_USE_TASK_FRAG
	sk->sk_use_task_frag = false;
#endif
}

#ifndef HAVE_NAME_ASSIGN_TYPE
static inline void ib_mark_name_assigned_by_user(struct ib_device *ib)
{
}
#endif

#ifndef HAVE_UMEM_GET_VA
#define ib_umem_get_va(dev, addr, size, access) ib_umem_get(dev, addr, size, access)
#endif

/* The core's list of the pages of on-demand memory, and how it is asked for some. */
#ifdef HAVE_ODP_MAP
#define compat_odp_pfns(umem) ((umem)->map.pfn_list)
#define COMPAT_ODP_READ 0
#define COMPAT_ODP_WRITE HMM_PFN_WRITE
#else
#define compat_odp_pfns(umem) ((umem)->pfn_list)
#define COMPAT_ODP_READ ODP_READ_ALLOWED_BIT
#define COMPAT_ODP_WRITE ODP_WRITE_ALLOWED_BIT
#endif

/* Does ib_core watch this network device's link for us? Not that of a bond. */
static inline bool compat_core_raises_port_events(const struct net_device *netdev)
{
#ifdef HAVE_CORE_PORT_EVENTS
	return !netif_is_lag_master(netdev) && !netif_is_lag_port(netdev);
#else
	return false;
#endif
}

/*
 * Does rdma_cm take network devices for the same if one is a VLAN over the other? It does since
 * it compares interface numbers; before that it compared 16 bytes of the address buffer.
 */
static inline bool compat_cma_unites_vlans(void)
{
	return LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0);
}

/* An ACK at once; the last argument says nothing special about it. */
#ifdef HAVE_SEND_ACK_FLAGS
#define compat_send_ack(sk, rcv_nxt) __tcp_send_ack(sk, rcv_nxt, 0)
#else
#define compat_send_ack(sk, rcv_nxt) __tcp_send_ack(sk, rcv_nxt)
#endif

/* The type that bind and connect of a kernel socket take. */
#ifdef HAVE_SOCKADDR_UNSIZED
#define weft_sockaddr sockaddr_unsized
#else
#define weft_sockaddr sockaddr
#endif

/* What a module says that calls into the dma-buf framework. */
#ifdef HAVE_IMPORT_NS_TOKEN
#define COMPAT_IMPORT_DMA_BUF MODULE_IMPORT_NS(DMA_BUF)
#else
#define COMPAT_IMPORT_DMA_BUF MODULE_IMPORT_NS("DMA_BUF")
#endif

#ifndef HAVE_DMA_BUF_VMAP_UNLOCKED
#define dma_buf_vmap_unlocked(buf, map) dma_buf_vmap(buf, map)
#define dma_buf_vunmap_unlocked(buf, map) dma_buf_vunmap(buf, map)
#endif

/* What create_cq gets behind the attributes, and the udata in it. */
#ifdef HAVE_CREATE_CQ_ATTRS
#define compat_cq_arg uverbs_attr_bundle
static inline struct ib_udata *compat_cq_udata(struct uverbs_attr_bundle *attrs)
{
	return attrs ? &attrs->driver_udata : NULL;
}
#else
#define compat_cq_arg ib_udata
static inline struct ib_udata *compat_cq_udata(struct ib_udata *udata)
{
	return udata;
}
#endif

/* Designated initialisers for struct ib_device_ops. */
#ifdef HAVE_CREATE_USER_CQ
#define COMPAT_CREATE_USER_CQ(fn) .create_user_cq = (fn),
#else
#define COMPAT_CREATE_USER_CQ(fn)
#endif

#ifdef HAVE_RESIZE_USER_CQ
#define COMPAT_RESIZE_CQ(fn) .resize_user_cq = (fn),
#define compat_cqe unsigned int
#else
#define COMPAT_RESIZE_CQ(fn) .resize_cq = (fn),
#define compat_cqe int
#endif

/* Counters of single QPs: a port behind the QP, objects of the driver's making. */
#ifdef HAVE_COUNTER_BIND_PORT
#define COMPAT_COUNTER_BIND struct rdma_counter *counter, struct ib_qp *qp, u32 port
#define COMPAT_COUNTER_UNBIND struct ib_qp *qp, u32 port
#else
#define COMPAT_COUNTER_BIND struct rdma_counter *counter, struct ib_qp *qp
#define COMPAT_COUNTER_UNBIND struct ib_qp *qp
#endif

#ifdef HAVE_COUNTER_INIT
#define COMPAT_COUNTER_IS_OURS 1
#define COMPAT_COUNTER_INIT(fn) .counter_init = (fn),
#define COMPAT_COUNTER_SIZE(type, member) INIT_RDMA_OBJ_SIZE(rdma_counter, type, member),
#else
#define COMPAT_COUNTER_INIT(fn)
#define COMPAT_COUNTER_SIZE(type, member)
#endif

/* Details of an SRQ for resource tracking. */
#ifdef HAVE_FILL_RES_SRQ
#define COMPAT_FILL_RES_SRQ(fn) .fill_res_srq_entry = (fn),
#else
#define COMPAT_FILL_RES_SRQ(fn)
#endif

/*
 * A parameter of reg_user_mr that others do not have: DMA hints, always NULL
 * for a device without alloc_dmah.
 */
#ifdef HAVE_REG_USER_MR_DMAH
#define COMPAT_DMAH_PARAM struct ib_dmah *dmah,
#else
#define COMPAT_DMAH_PARAM
#endif

/* What reg_user_mr_dmabuf gets at its end; nothing of ours is in it. */
#ifdef HAVE_REG_DMABUF_ATTRS
#define COMPAT_DMABUF_LAST struct uverbs_attr_bundle *attrs
#else
#define COMPAT_DMABUF_LAST struct ib_udata *udata
#endif

#endif
