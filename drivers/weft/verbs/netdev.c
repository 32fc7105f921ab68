// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The network device below: which kinds carry a weft, what its events mean.
 *
 * rdma_cm compares 16 bytes of a network device's address buffer with the GIDs
 * of all devices, first match wins, and a GID of zeros never matches. (The newest
 * one asks for the interface number as well.) That leaves out the loopback device and
 * confuses network devices that share a MAC: a VLAN or a bridge with the device
 * whose MAC it borrows, a bond with its members. On those we write random bytes behind
 * the MAC, into the part of the buffer that is not used otherwise.
 */
#include "verbs/netdev.h"

#include <linux/delay.h>
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/jiffies.h>
#include <linux/netdevice.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <rdma/ib_cache.h>

#include "base/compat.h"
#include "uapi/weft-abi.h"
#include "verbs/device.h"

/* How long consumers may take to let go of connections that have ended. */
#define LEAVE_TIME HZ

/**
 * weft_netdev_suitable - can TCP over this network device carry a weft?
 * @netdev: from `rdma link add`
 */
bool weft_netdev_suitable(const struct net_device *netdev)
{
	switch (netdev->type) {
	case ARPHRD_ETHER:
	case ARPHRD_LOOPBACK:
	case ARPHRD_NONE: /* tun and WireGuard have no address */
	case ARPHRD_TUNNEL: /* the address of these is that of their own end, for IPv4 */
	case ARPHRD_SIT:
	case ARPHRD_IPGRE:
		return netdev->addr_len <= ETH_ALEN;
	default:
		return false;
	}
}

/**
 * weft_netdev_needs_tag - is the address buffer empty, or a MAC that is another's as a rule?
 * @netdev: suitable
 *
 * Context: any.
 */
bool weft_netdev_needs_tag(const struct net_device *netdev)
{
	union ib_gid gid;

	memcpy(gid.raw, netdev->dev_addr, sizeof(gid.raw));
	return rdma_is_zero_gid(&gid) || netdev->addr_len < ETH_ALEN || is_vlan_dev(netdev) ||
	       netif_is_bridge_master(netdev);
}

/**
 * weft_netdev_tag - make the address buffer findable and unique
 * @netdev: suitable
 *
 * Context: process, takes RTNL. weft_netdev_untag() is owed.
 */
void weft_netdev_tag(struct net_device *netdev)
{
	u8 tag[sizeof(union ib_gid)];

	get_random_bytes(tag, sizeof(tag));
	rtnl_lock();
	dev_addr_mod(netdev, netdev->addr_len, tag, sizeof(tag) - netdev->addr_len);
	rtnl_unlock();
}

void weft_netdev_untag(struct net_device *netdev)
{
	static const u8 zeros[sizeof(union ib_gid)];

	rtnl_lock();
	dev_addr_mod(netdev, netdev->addr_len, zeros, sizeof(zeros) - netdev->addr_len);
	rtnl_unlock();
}

enum ib_port_state weft_netdev_port_state(const struct net_device *netdev)
{
	return netif_running(netdev) && netif_carrier_ok(netdev) ? IB_PORT_ACTIVE : IB_PORT_DOWN;
}

static void on_link(struct weft_device *dev)
{
	enum ib_port_state state = weft_netdev_port_state(dev->netdev);
	struct ib_event event = {
		.device = &dev->ib,
		.element.port_num = 1,
		.event = state == IB_PORT_ACTIVE ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
	};

	if (state == dev->port_state)
		return;
	dev->port_state = state;
	if (!compat_core_raises_port_events(dev->netdev))
		ib_dispatch_event(&event);
}

/**
 * weft_netdev_leave - the network device goes, so does this one
 * @work: of a device that is kept registered by a reference
 *
 * First the consumers get some time to learn that their connections have ended, and to
 * destroy their QPs. Some that learned of the removal at once would disconnect from their
 * peers, and wait a minute for answers that cannot come any more.
 *
 * Context: process.
 */
void weft_netdev_leave(struct work_struct *work)
{
	struct weft_device *dev = container_of(work, struct weft_device, leaving);
	unsigned long end = jiffies + LEAVE_TIME;

	while (atomic_read(&dev->num_qp) && time_before(jiffies, end))
		msleep(20);
	ib_unregister_device_queued(&dev->ib);
	ib_device_put(&dev->ib);
}

static int netdev_event(struct notifier_block *nb, unsigned long event, void *arg)
{
	struct net_device *netdev = netdev_notifier_info_to_dev(arg);
	struct ib_device *ib = ib_device_get_by_netdev(netdev, (enum rdma_driver_id)WEFT_DRIVER_ID);
	struct weft_device *dev;

	if (!ib)
		return NOTIFY_DONE;
	dev = to_weft_dev(ib);
	switch (event) {
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		on_link(dev);
		break;
	case NETDEV_CHANGEADDR:
		weft_gids_refresh(dev);
		break;
	case NETDEV_CHANGENAME:
		strscpy(ib->iw_ifname, netdev->name, sizeof(ib->iw_ifname));
		break;
	case NETDEV_UNREGISTER:
		/*
		 * Goes on in a worker: here RTNL is held. Handshakes are cut short, or it would
		 * sit their deadlines out.
		 */
		weft_cm_abort(&dev->cm);
		if (ib_device_try_get(ib) && !queue_work(dev->cm.wq, &dev->leaving))
			ib_device_put(ib);
		break;
	}
	ib_device_put(ib);
	return NOTIFY_DONE;
}

struct notifier_block weft_netdev_notifier = {
	.notifier_call = netdev_event,
};
