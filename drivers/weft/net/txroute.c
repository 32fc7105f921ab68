// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What the route says of the device.
 */
#include "net/txroute.h"

#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <net/dst.h>
#include <net/sock.h>

#include "base/compat.h"

/**
 * weft_route_takes_pages - do fragments get as far as a wire, as they are?
 * @sk: a connected socket
 *
 * Those of a host that talks to itself do not. Context: any. Return: a hint.
 */
bool weft_route_takes_pages(const struct sock *sk)
{
	const struct dst_entry *dst;
	bool takes = false;

	if (!(READ_ONCE(sk->sk_route_caps) & NETIF_F_SG))
		return false;
	rcu_read_lock();
	dst = rcu_dereference(sk->sk_dst_cache);
	if (dst)
		takes = !(READ_ONCE(compat_dst_dev(dst)->flags) & IFF_LOOPBACK);
	rcu_read_unlock();
	return takes;
}
