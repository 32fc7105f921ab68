// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The GID table. Index 0 is what rdma_cm finds the device by: 16 bytes of the netdev's
 * address buffer. The others are its addresses, an IPv4 address as ::ffff:a.b.c.d, for
 * programs that connect their QPs themselves. An address keeps its index as long as it is
 * there, because a QP names its own by index.
 *
 * ib_core keeps a copy of the table. For a device that is not RoCE it reads it anew on
 * IB_EVENT_GID_CHANGE, and does not pass that on; so weft does.
 */
#include "verbs/gid.h"

#include <linux/bitmap.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "uapi/weft-abi.h"
#include "verbs/device.h"
#include "verbs/netdev.h"

/* Tables of all devices, and which device is the first with a GID 0. Outside of RTNL. */
static LIST_HEAD(tables);
static DEFINE_MUTEX(tables_lock); /* tables, weft_gids.gid, weft_gids.all */

/**
 * struct address_scan - what the netdev's addresses mean to the table
 * @table: as it is
 * @present: by index: the address is still there
 * @count: of @new
 * @new: addresses without an index, each once; no more than could ever get one
 */
struct address_scan {
	const struct weft_gids *table;
	DECLARE_BITMAP(present, WEFT_GIDS);
	unsigned int count;
	union ib_gid new[WEFT_GIDS];
};

static int find_gid(const union ib_gid *gids, unsigned int count, const union ib_gid *gid)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (!memcmp(&gids[i], gid, sizeof(*gid)))
			return i;
	return -ENOENT;
}

static void scan_address(struct address_scan *scan, const struct in6_addr *addr)
{
	union ib_gid gid;
	int at;

	memcpy(gid.raw, addr, sizeof(gid.raw));
	at = find_gid(&scan->table->gid[1], WEFT_GIDS - 1, &gid);
	if (at >= 0)
		__set_bit(at + 1, scan->present);
	else if (scan->count < WEFT_GIDS && find_gid(scan->new, scan->count, &gid) < 0)
		scan->new[scan->count++] = gid;
}

static void scan_ipv4(struct net_device *netdev, struct address_scan *scan)
{
	const struct in_ifaddr *ifa;
	struct in_device *in_dev;
	struct in6_addr mapped;

	rcu_read_lock();
	in_dev = __in_dev_get_rcu(netdev);
	if (in_dev) {
		in_dev_for_each_ifa_rcu(ifa, in_dev) {
			ipv6_addr_set_v4mapped(ifa->ifa_local, &mapped);
			scan_address(scan, &mapped);
		}
	}
	rcu_read_unlock();
}

#if IS_ENABLED(CONFIG_IPV6)
static void scan_ipv6(struct net_device *netdev, struct address_scan *scan)
{
	const struct inet6_ifaddr *ifp;
	struct inet6_dev *in6_dev;

	rcu_read_lock();
	in6_dev = __in6_dev_get(netdev);
	if (in6_dev) {
		read_lock_bh(&in6_dev->lock);
		list_for_each_entry(ifp, &in6_dev->addr_list, if_list)
			scan_address(scan, &ifp->addr);
		read_unlock_bh(&in6_dev->lock);
	}
	rcu_read_unlock();
}
#else
static void scan_ipv6(struct net_device *netdev, struct address_scan *scan)
{
}
#endif

/* Addresses that are gone leave a hole, which is filled by the next new one. */
static bool update_addresses(struct weft_gids *t, const struct address_scan *scan)
	__must_hold(&t->lock)
{
	unsigned int i, used = 0;
	bool changed = false;

	lockdep_assert_held(&t->lock);
	for (i = 1; i < WEFT_GIDS; i++) {
		if (test_bit(i, scan->present) || rdma_is_zero_gid(&t->gid[i]))
			continue;
		memset(&t->gid[i], 0, sizeof(t->gid[i]));
		changed = true;
	}
	for (i = 1; i < WEFT_GIDS && used < scan->count; i++) {
		if (!rdma_is_zero_gid(&t->gid[i]))
			continue;
		t->gid[i] = scan->new[used++];
		changed = true;
	}
	return changed;
}

/* Network devices may share a MAC, and may come to do so later. */
static void make_first_unique(struct weft_device *dev) __must_hold(&tables_lock)
{
	const struct weft_gids *t;
	union ib_gid now;
	bool is_taken;

	lockdep_assert_held(&tables_lock);
	if (dev->tagged)
		return;
	/* rdma_cm compares 16 bytes of the address buffer, whatever they mean. */
	memcpy(now.raw, dev->netdev->dev_addr, sizeof(now.raw));
	is_taken = weft_netdev_needs_tag(dev->netdev);
	list_for_each_entry(t, &tables, all)
		is_taken |= t != &dev->gids && !memcmp(&t->gid[0], &now, sizeof(now));
	if (!is_taken)
		return;
	weft_netdev_tag(dev->netdev);
	dev->tagged = true;
}

static bool update_table(struct weft_device *dev)
{
	struct address_scan *scan = kzalloc(sizeof(*scan), GFP_KERNEL);
	struct weft_gids *t = &dev->gids;
	union ib_gid first;
	bool changed;

	mutex_lock(&tables_lock);
	make_first_unique(dev);
	mutex_lock(&t->lock);
	memcpy(first.raw, dev->netdev->dev_addr, sizeof(first.raw));
	changed = memcmp(&first, &t->gid[0], sizeof(first));
	t->gid[0] = first; /* others read it with @tables_lock */
	mutex_unlock(&tables_lock);
	if (scan) {
		scan->table = t;
		scan_ipv4(dev->netdev, scan);
		scan_ipv6(dev->netdev, scan);
		changed |= update_addresses(t, scan);
	}
	mutex_unlock(&t->lock);
	kfree(scan);
	return changed;
}

static void refresh_work(struct work_struct *work)
{
	struct weft_device *dev = container_of(work, struct weft_device, gids.refresh);
	struct ib_device *ib = &dev->ib;
	struct ib_event event = {
		.device = ib,
		.element.port_num = 1,
		.event = IB_EVENT_GID_CHANGE,
	};
	struct ib_event_handler *h;

	if (update_table(dev)) {
		ib_dispatch_event(&event);
		/*
		 * As ib_core does for a table that is its own. A process that gets the event and
		 * asks shall see it, so ib_core's copy comes first: that is an item of ib_wq.
		 */
		flush_workqueue(ib_wq);
		down_read(&ib->event_handler_rwsem);
		list_for_each_entry(h, &ib->event_handler_list, list)
			h->handler(h, &event);
		up_read(&ib->event_handler_rwsem);
	}
	ib_device_put(ib);
}

/**
 * weft_gids_init - fill the table of a new device
 * @dev: not yet registered
 *
 * Context: process.
 */
void weft_gids_init(struct weft_device *dev)
{
	mutex_init(&dev->gids.lock);
	INIT_WORK(&dev->gids.refresh, refresh_work);
	mutex_lock(&tables_lock);
	list_add_tail(&dev->gids.all, &tables);
	mutex_unlock(&tables_lock);
	update_table(dev);
}

/**
 * weft_gids_exit - no table any more
 * @dev: not registered any more
 *
 * Context: process.
 */
void weft_gids_exit(struct weft_device *dev)
{
	cancel_work_sync(&dev->gids.refresh);
	mutex_lock(&tables_lock);
	list_del(&dev->gids.all);
	mutex_unlock(&tables_lock);
	mutex_destroy(&dev->gids.lock);
	if (dev->tagged)
		weft_netdev_untag(dev->netdev);
}

/**
 * weft_gids_refresh - the netdev may have other addresses now
 * @dev: a registered device, a reference is held
 *
 * Context: any; a worker does it.
 */
void weft_gids_refresh(struct weft_device *dev)
{
	if (!ib_device_try_get(&dev->ib))
		return;
	if (!schedule_work(&dev->gids.refresh))
		ib_device_put(&dev->ib);
}

int weft_query_gid(struct ib_device *ib, u32 port, int index, union ib_gid *gid)
{
	struct weft_gids *t = &to_weft_dev(ib)->gids;

	if (index < 0 || index >= WEFT_GIDS)
		return -EINVAL;
	mutex_lock(&t->lock);
	*gid = t->gid[index];
	mutex_unlock(&t->lock);
	return 0;
}

/* --- notifiers: that of IPv6 is called in any context --- */

static void address_changed(struct net_device *netdev)
{
	struct ib_device *ib = ib_device_get_by_netdev(netdev, (enum rdma_driver_id)WEFT_DRIVER_ID);

	if (!ib)
		return;
	weft_gids_refresh(to_weft_dev(ib));
	ib_device_put(ib);
}

static int ipv4_event(struct notifier_block *nb, unsigned long event, void *arg)
{
	const struct in_ifaddr *ifa = arg;

	address_changed(ifa->ifa_dev->dev);
	return NOTIFY_DONE;
}

static int ipv6_event(struct notifier_block *nb, unsigned long event, void *arg)
{
	const struct inet6_ifaddr *ifa = arg;

	address_changed(ifa->idev->dev);
	return NOTIFY_DONE;
}

static struct notifier_block ipv4_block = {
	.notifier_call = ipv4_event,
};

static struct notifier_block ipv6_block = {
	.notifier_call = ipv6_event,
};

int weft_gids_watch(void)
{
	int ret = register_inetaddr_notifier(&ipv4_block);

	if (ret || !IS_ENABLED(CONFIG_IPV6))
		return ret;
	ret = register_inet6addr_notifier(&ipv6_block);
	if (ret)
		unregister_inetaddr_notifier(&ipv4_block);
	return ret;
}

void weft_gids_unwatch(void)
{
	if (IS_ENABLED(CONFIG_IPV6))
		unregister_inet6addr_notifier(&ipv6_block);
	unregister_inetaddr_notifier(&ipv4_block);
}
