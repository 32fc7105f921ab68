// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A weft device from `rdma link add` to the last put: what the core may call,
 * and in which order things come and go.
 */
#include "verbs/device.h"

#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rtnetlink.h>
#include <linux/string.h>
#include <rdma/iw_cm.h>

#include "base/compat.h"
#include "ring/mmap.h"
#include "uapi/weft-abi.h"
#include "verbs/attr.h"
#include "verbs/counter.h"
#include "verbs/cq.h"
#include "verbs/iw.h"
#include "verbs/doorbell.h"
#include "verbs/mr.h"
#include "verbs/mw.h"
#include "verbs/netdev.h"
#include "verbs/pd.h"
#include "verbs/sysfs.h"
#include "verbs/post.h"
#include "verbs/qp.h"
#include "verbs/restrack.h"
#include "verbs/srq.h"
#include "verbs/stats.h"
#include "verbs/ucontext.h"

#define DRIVER_ID	((enum rdma_driver_id)WEFT_DRIVER_ID)

/* One link at a time is made, so that two on one netdev cannot both be first. */
static DEFINE_MUTEX(add_mutex);

static void unmake_device(struct ib_device *ib)
{
	struct weft_device *dev = to_weft_dev(ib);

	weft_cm_exit(&dev->cm);
	weft_stream_index_destroy(&dev->streams);
	weft_stag_table_destroy(&dev->stags);
	ida_destroy(&dev->pds);
	WARN_ON_ONCE(!list_empty(&dev->qp_counters));
	WARN_ON_ONCE(atomic_read(&dev->num_qp) || atomic_read(&dev->num_cq) ||
		     atomic_read(&dev->num_srq));
	mutex_destroy(&dev->qp_counters_lock);
	weft_counters_free(&dev->counters);
	weft_gids_exit(dev);
	netdev_put(dev->netdev, &dev->netdev_tracker);
}

/* Operations that look different from kernel to kernel: base/compat.h. */
static int create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
		     struct compat_cq_arg *arg)
{
	return weft_create_cq(cq, attr, compat_cq_udata(arg));
}

static int resize_cq(struct ib_cq *cq, compat_cqe entries, struct ib_udata *udata)
{
	return entries < 1 ? -EINVAL : weft_resize_cq(cq, entries, udata);
}

static struct ib_mr *reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access,
				 COMPAT_DMAH_PARAM struct ib_udata *udata)
{
	return weft_reg_user_mr(pd, start, length, iova, access, udata);
}

static struct ib_mr *reg_dmabuf_mr(struct ib_pd *pd, u64 offset, u64 length, u64 iova, int fd,
				   int access, COMPAT_DMAH_PARAM COMPAT_DMABUF_LAST)
{
	return weft_reg_dmabuf_mr(pd, offset, length, iova, fd, access);
}

static int counter_bind_qp(COMPAT_COUNTER_BIND)
{
	return weft_counter_bind_qp(counter, qp);
}

static int counter_unbind_qp(COMPAT_COUNTER_UNBIND)
{
	return weft_counter_unbind_qp(qp);
}

#ifdef COMPAT_COUNTER_IS_OURS
/* The core lets us make its counters; all of ours is elsewhere. */
struct counter_object {
	struct rdma_counter core;
};

static void counter_init(struct rdma_counter *counter)
{
}
#endif

/* clang-format off */
static const struct ib_device_ops device_ops = {
	.owner = THIS_MODULE,
	.driver_id = DRIVER_ID,
	.uverbs_abi_ver = WEFT_ABI_VERSION,
	.device_group = &weft_sysfs_group,
	.enable_driver = weft_sysfs_enable,

	.query_device = weft_query_device,
	.modify_device = weft_modify_device,
	.query_port = weft_query_port,
	.query_gid = weft_query_gid,
	.query_pkey = weft_query_pkey,
	.process_mad = weft_process_mad,
	.get_port_immutable = weft_get_port_immutable,
	.get_dev_fw_str = weft_get_dev_fw_str,
	.alloc_hw_port_stats = weft_alloc_hw_port_stats,
	.get_hw_stats = weft_get_hw_stats,
	.counter_bind_qp = counter_bind_qp,
	.counter_unbind_qp = counter_unbind_qp,
	.counter_dealloc = weft_counter_dealloc,
	.counter_alloc_stats = weft_counter_alloc_stats,
	.counter_update_stats = weft_counter_update_stats,
	COMPAT_COUNTER_INIT(counter_init)

	.fill_res_qp_entry = weft_fill_res_qp,
	.fill_res_cq_entry = weft_fill_res_cq,
	.fill_res_mr_entry = weft_fill_res_mr,
	.fill_stat_mr_entry = weft_fill_stat_mr,
	.fill_res_cm_id_entry = weft_fill_res_cm_id,
	COMPAT_FILL_RES_SRQ(weft_fill_res_srq)
	.dealloc_driver = unmake_device,

	.alloc_ucontext = weft_alloc_ucontext,
	.dealloc_ucontext = weft_dealloc_ucontext,
	.query_ucontext = weft_query_ucontext,
	.disassociate_ucontext = weft_disassociate_ucontext,
	.mmap = weft_ring_mmap,
	.mmap_free = weft_ring_mmap_free,

	.alloc_pd = weft_alloc_pd,
	.dealloc_pd = weft_dealloc_pd,

	.create_cq = create_cq,
	COMPAT_CREATE_USER_CQ(create_cq)
	COMPAT_RESIZE_CQ(resize_cq)
	.modify_cq = weft_modify_cq,
	.destroy_cq = weft_destroy_cq,
	.poll_cq = weft_poll_cq,
	.req_notify_cq = weft_req_notify_cq,

	.create_srq = weft_create_srq,
	.modify_srq = weft_modify_srq,
	.query_srq = weft_query_srq,
	.destroy_srq = weft_destroy_srq,
	.post_srq_recv = weft_post_srq_recv,

	.create_qp = weft_create_qp,
	.modify_qp = weft_modify_qp,
	.query_qp = weft_query_qp,
	.destroy_qp = weft_destroy_qp,
	.post_send = weft_post_send,
	.post_recv = weft_post_recv,

	.get_dma_mr = weft_get_dma_mr,
	.reg_user_mr = reg_user_mr,
	.reg_user_mr_dmabuf = reg_dmabuf_mr,
	.advise_mr = weft_advise_mr,
	.rereg_user_mr = weft_rereg_user_mr,
	.alloc_mr = weft_alloc_mr,
	.map_mr_sg = weft_map_mr_sg,
	.dereg_mr = weft_dereg_mr,
	.alloc_mw = weft_alloc_mw,
	.dealloc_mw = weft_dealloc_mw,

	.iw_get_qp = weft_iw_get_qp,
	.iw_add_ref = weft_iw_add_ref,
	.iw_rem_ref = weft_iw_rem_ref,
	.iw_connect = weft_iw_connect,
	.iw_accept = weft_iw_accept,
	.iw_reject = weft_iw_reject,
	.iw_create_listen = weft_iw_create_listen,
	.iw_destroy_listen = weft_iw_destroy_listen,

	COMPAT_COUNTER_SIZE(counter_object, core)
	INIT_RDMA_OBJ_SIZE(ib_cq, weft_ibcq, ib),
	INIT_RDMA_OBJ_SIZE(ib_mw, weft_mw, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, weft_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, weft_qp, ib),
	INIT_RDMA_OBJ_SIZE(ib_srq, weft_srq, ib),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, weft_ucontext, ib),
};

/* clang-format on */

static void init_ib_device(struct weft_device *dev)
{
	struct net_device *netdev = dev->netdev;
	struct ib_device *ib = &dev->ib;

	ib->node_type = RDMA_NODE_RNIC;
	ib->phys_port_cnt = 1;
	ib->num_comp_vectors = num_online_cpus();
	ib->iw_driver_flags = IW_F_NO_PORT_MAP;
	ib->driver_def = weft_uapi_defs;
	/* Programs look for the address under .../device/net; not all have one. */
	ib->dev.parent = netdev->dev.parent;
	strscpy(ib->iw_ifname, netdev->name, sizeof(ib->iw_ifname));
	strscpy(ib->node_desc, "weft software RNIC", sizeof(ib->node_desc));
	weft_attr_set_guid(ib, netdev, dev->tagged);
	dev->port_state = weft_netdev_port_state(netdev);
}

/* Until the operations are set, freeing is up to the caller of this. */
static int init_tools(struct weft_device *dev)
{
	int ret;

	ret = weft_counters_init(&dev->counters);
	if (ret)
		return ret;
	INIT_LIST_HEAD(&dev->qp_counters);
	mutex_init(&dev->qp_counters_lock);
	weft_stag_table_init(&dev->stags);
	weft_stream_index_init(&dev->streams);
	ida_init(&dev->pds);
	INIT_WORK(&dev->leaving, weft_netdev_leave);
	ret = weft_cm_init(&dev->cm, &dev->streams, dev->netdev, &dev->counters);
	if (ret)
		weft_counters_free(&dev->counters);
	return ret;
}

static struct weft_device *make_device(struct net_device *netdev)
{
	struct weft_device *dev = ib_alloc_device(weft_device, ib);
	int ret;

	if (!dev)
		return ERR_PTR(-ENOMEM);
	dev->netdev = netdev;
	ret = init_tools(dev);
	if (ret)
		goto dealloc;
	netdev_hold(netdev, &dev->netdev_tracker, GFP_KERNEL);
	weft_gids_init(dev);
	ib_set_device_ops(&dev->ib, &device_ops);
	init_ib_device(dev);
	ret = ib_device_set_netdev(&dev->ib, netdev, 1);
	if (ret)
		goto dealloc;
	return dev;

dealloc:
	ib_dealloc_device(&dev->ib);
	return ERR_PTR(ret);
}

/* While the device was not registered, its netdev may have gone, or have new addresses. */
static int check_alive(struct net_device *netdev)
{
	struct ib_device *ib;
	bool alive;

	rtnl_lock();
	alive = netdev->reg_state == NETREG_REGISTERED;
	rtnl_unlock();
	/* Where it is, the notifier is told of an unregistration from here on. */
	ib = ib_device_get_by_netdev(netdev, DRIVER_ID);
	if (ib && alive) {
		weft_gids_refresh(to_weft_dev(ib));
		ib_device_put(ib);
	} else if (ib) {
		ib_unregister_device_and_put(ib);
	}
	return alive ? 0 : -ENODEV;
}

/**
 * weft_device_add - make and register a device
 * @name: of the new device, from the user
 * @netdev: to work on; the caller holds a reference
 *
 * Context: process, without RTNL.
 * Return: 0; -EOPNOTSUPP for an unsuitable kind of network device, -EEXIST when
 * it has a weft already or the name is taken, -ENODEV when it is on its way out.
 */
int weft_device_add(const char *name, struct net_device *netdev)
{
	struct weft_device *dev;
	struct ib_device *ib;
	int ret = -EEXIST;

	if (!weft_netdev_suitable(netdev))
		return -EOPNOTSUPP;
	mutex_lock(&add_mutex);
	ib = ib_device_get_by_netdev(netdev, DRIVER_ID);
	if (ib) {
		ib_device_put(ib);
		goto unlock;
	}
	dev = make_device(netdev);
	if (IS_ERR(dev)) {
		ret = PTR_ERR(dev);
		goto unlock;
	}
	ib_mark_name_assigned_by_user(&dev->ib);
	ret = ib_register_device(&dev->ib, name, NULL);
	if (ret) {
		ib_dealloc_device(&dev->ib);
		if (ret == -ENFILE)
			ret = -EEXIST; /* the core's word for a name that is taken */
		goto unlock;
	}
	ret = check_alive(netdev);
unlock:
	mutex_unlock(&add_mutex);
	return ret;
}
