// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What a device and its port say about themselves.
 */
#include "verbs/attr.h"

#include <linux/etherdevice.h>
#include <linux/string.h>
#include <net/addrconf.h>
#include <rdma/ib_mad.h>

#include "base/limits.h"
#include "verbs/device.h"
#include "verbs/netdev.h"
#include "verbs/speed.h"

#define WEFT_VENDOR_ID		0x776674	/* "wft"; no OUI was bought for it */
#define WEFT_VENDOR_PART_ID	1
/* Of the module; programs show it as MAJOR.MINOR.0. */
#define WEFT_FW_VER		((u64)WEFT_VERSION_MAJOR << 32 | WEFT_VERSION_MINOR << 16)

/* What stands in a node GUID between the halves of the MAC: "wf". */
#define WEFT_GUID_MARK	0x7766
#define GUID_MARK_AT	3

/* rdma_cm and its library keep read depths in 8 bits, at either end. */
#define WEFT_CM_DEPTH_MAX	255U

/* Physical port states of the InfiniBand specification, as everybody shows them. */
#define PHYS_DISABLED		3
#define PHYS_LINK_UP		5

/**
 * weft_attr_set_guid - give the device a node GUID
 * @ib: not yet registered
 * @netdev: its network device
 * @shared: others have the same MAC
 *
 * librdmacm tells devices apart by it. What a MAC stands for by itself, with 0xfffe in the middle,
 * is what siw and rxe take for a device beside this one.
 */
void weft_attr_set_guid(struct ib_device *ib, const struct net_device *netdev, bool shared)
{
	u16 mark = shared ? netdev->ifindex : WEFT_GUID_MARK;
	u8 *guid = (u8 *)&ib->node_guid;
	u8 mac[ETH_ALEN];

	if (is_zero_ether_addr(netdev->dev_addr))
		eth_random_addr(mac);
	else
		ether_addr_copy(mac, netdev->dev_addr);
	addrconf_addr_eui48(guid, mac);
	guid[GUID_MARK_AT] = mark >> 8;
	guid[GUID_MARK_AT + 1] = mark;
}

static void fill_abilities(const struct weft_device *dev, struct ib_device_attr *attr)
{
	u32 *rc = &attr->odp_caps.per_transport_caps.rc_odp_caps;

	attr->device_cap_flags = IB_DEVICE_MEM_MGT_EXTENSIONS | IB_DEVICE_MEM_WINDOW |
				 IB_DEVICE_MEM_WINDOW_TYPE_2B | IB_DEVICE_SYS_IMAGE_GUID |
				 IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_SRQ_RESIZE;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY | IBK_ALLOW_USER_UNREG;
	/* Done by the CPU on the word itself, so it is never seen half done. */
	attr->atomic_cap = READ_ONCE(dev->streams.atomics) ? IB_ATOMIC_GLOB : IB_ATOMIC_NONE;
	attr->masked_atomic_cap = attr->atomic_cap;
	attr->page_size_cap = PAGE_SIZE;
	/* Completions carry CLOCK_MONOTONIC in nanoseconds. */
	attr->timestamp_mask = U64_MAX;
	attr->hca_core_clock = 1000 * 1000;

	/* Paging goes by ib_core's helpers, which a kernel may be built without. */
	if (!IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING))
		return;
	attr->kernel_cap_flags |= IBK_ON_DEMAND_PAGING;
	attr->odp_caps.general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT;
	*rc = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV | IB_ODP_SUPPORT_SRQ_RECV |
	      IB_ODP_SUPPORT_WRITE | IB_ODP_SUPPORT_READ;
	if (attr->atomic_cap != IB_ATOMIC_NONE)
		*rc |= IB_ODP_SUPPORT_ATOMIC;
}

static void fill_limits(struct ib_device_attr *attr)
{
	attr->max_qp = WEFT_MAX_QP;
	attr->max_qp_wr = WEFT_MAX_WR;
	attr->max_send_sge = WEFT_MAX_SGE;
	attr->max_recv_sge = WEFT_MAX_SGE;
	attr->max_sge_rd = WEFT_MAX_SGE;
	attr->max_cq = WEFT_MAX_CQ;
	attr->max_cqe = WEFT_MAX_CQE;
	attr->cq_caps.max_cq_moderation_count = U16_MAX;
	attr->cq_caps.max_cq_moderation_period = U16_MAX;
	attr->max_srq = WEFT_MAX_SRQ;
	attr->max_srq_wr = WEFT_MAX_WR;
	attr->max_srq_sge = WEFT_MAX_SGE;
	attr->max_qp_rd_atom = min(WEFT_MAX_IRD, WEFT_CM_DEPTH_MAX);
	attr->max_qp_init_rd_atom = min(WEFT_MAX_ORD, WEFT_CM_DEPTH_MAX);
	attr->max_res_rd_atom = attr->max_qp_rd_atom * attr->max_qp;
	attr->max_pd = WEFT_MAX_PD;
	attr->max_mr = WEFT_MAX_STAG;
	attr->max_mw = WEFT_MAX_STAG;
	attr->max_mr_size = WEFT_MAX_MR_SIZE;
	attr->max_fast_reg_page_list_len = WEFT_MAX_FAST_REG_PAGES;
	attr->max_pkeys = 1;
}

int weft_query_device(struct ib_device *ib, struct ib_device_attr *attr, struct ib_udata *udata)
{
	if (udata && (udata->inlen || udata->outlen))
		return -EINVAL;

	memset(attr, 0, sizeof(*attr));
	attr->fw_ver = WEFT_FW_VER;
	attr->sys_image_guid = ib->node_guid;
	attr->vendor_id = WEFT_VENDOR_ID;
	attr->vendor_part_id = WEFT_VENDOR_PART_ID;
	attr->hw_ver = 0;
	fill_abilities(to_weft_dev(ib), attr);
	fill_limits(attr);
	return 0;
}

int weft_query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr)
{
	struct net_device *netdev = to_weft_dev(ib)->netdev;

	attr->state = weft_netdev_port_state(netdev);
	attr->phys_state = attr->state == IB_PORT_ACTIVE ? PHYS_LINK_UP : PHYS_DISABLED;
	attr->max_mtu = ib_mtu_int_to_enum(netdev->max_mtu ?: ETH_MAX_MTU);
	attr->active_mtu = ib_mtu_int_to_enum(netdev->mtu);
	attr->phys_mtu = netdev->mtu;
	attr->gid_tbl_len = WEFT_GIDS;
	attr->pkey_tbl_len = 1;
	attr->max_msg_sz = WEFT_MAX_MSG;
	attr->max_vl_num = 1;
	weft_speed_of(netdev, &attr->active_speed, &attr->active_width);
	return 0;
}

/* The default key; without one rdma_cm cannot resolve the "any" address. */
int weft_query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey)
{
	if (index > 0)
		return -EINVAL;
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

int weft_get_port_immutable(struct ib_device *ib, u32 port, struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = WEFT_GIDS;
	immutable->pkey_tbl_len = 1;
	immutable->core_cap_flags = RDMA_CORE_PORT_IWARP;
	return 0;
}

void weft_get_dev_fw_str(struct ib_device *ib, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u.%u.0", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR);
}

/**
 * weft_modify_device - set the node description
 * @ib: the device
 * @mask: enum ib_device_modify_flags; the GUIDs are the netdev's and stay
 * @attr: what to set; the description may fill the array without a final NUL
 *
 * rdma-ndd writes it, through sysfs. ib_core reads it without a lock and prints no more than
 * the array holds.
 * Context: process. Return: 0, or -EOPNOTSUPP and nothing has changed.
 */
int weft_modify_device(struct ib_device *ib, int mask, struct ib_device_modify *attr)
{
	static_assert(sizeof(ib->node_desc) == sizeof(attr->node_desc));

	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	if (mask & IB_DEVICE_MODIFY_NODE_DESC)
		memcpy(ib->node_desc, attr->node_desc, sizeof(ib->node_desc));
	return 0;
}
