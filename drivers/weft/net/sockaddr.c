// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Questions about socket addresses whose answer differs between IPv4 and IPv6.
 */
#include "net/sockaddr.h"

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/string.h>
#include <net/addrconf.h>
#include <net/ip.h>
#include <net/ipv6.h>

/**
 * weft_addr_port - the TCP port
 * @addr: stands at the same place in both families
 */
__be16 weft_addr_port(const struct sockaddr_storage *addr)
{
	return ((const struct sockaddr_in *)addr)->sin_port;
}

/**
 * weft_addr_set_port - replace the TCP port
 * @addr: changed
 * @port: 0 for any that is free
 */
void weft_addr_set_port(struct sockaddr_storage *addr, __be16 port)
{
	((struct sockaddr_in *)addr)->sin_port = port;
}

/**
 * weft_addr_is_any - is it the unspecified address?
 * @addr: of either family
 */
bool weft_addr_is_any(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *sin = (const struct sockaddr_in *)addr;

	if (addr->ss_family == AF_INET6)
		return ipv6_addr_any(&sin6->sin6_addr);
	return sin->sin_addr.s_addr == htonl(INADDR_ANY);
}

/**
 * weft_addr_is_unicast - can it be the address of a host?
 * @addr: of either family
 */
bool weft_addr_is_unicast(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *sin = (const struct sockaddr_in *)addr;
	__be32 ip = sin->sin_addr.s_addr;

	if (weft_addr_is_any(addr))
		return false;
	if (addr->ss_family == AF_INET6)
		return !ipv6_addr_is_multicast(&sin6->sin6_addr);
	return !ipv4_is_multicast(ip) && !ipv4_is_lbcast(ip) && !ipv4_is_zeronet(ip);
}

/**
 * weft_addr_equal - are they the same host?
 * @a: of either family
 * @b: likewise; ports and scopes are not compared
 */
bool weft_addr_equal(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)b;
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in *b4 = (const struct sockaddr_in *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET6)
		return ipv6_addr_equal(&a6->sin6_addr, &b6->sin6_addr);
	return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
}

/**
 * weft_addr_from_ip6 - make a socket address
 * @addr: written; of IPv4 if @ip6 is IPv4-mapped
 * @ip6: address
 * @port: TCP port, 0: whichever is free
 */
void weft_addr_from_ip6(struct sockaddr_storage *addr, const struct in6_addr *ip6, __be16 port)
{
	struct sockaddr_in6 plain = {
		.sin6_family = AF_INET6,
		.sin6_port = port,
		.sin6_addr = *ip6,
	};

	memset(addr, 0, sizeof(*addr));
	memcpy(addr, &plain, sizeof(plain));
	weft_addr_unmap(addr);
}

/**
 * weft_addr_is_loopback - is it an address of the loopback?
 * @addr: of either family
 */
bool weft_addr_is_loopback(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *sin = (const struct sockaddr_in *)addr;

	if (addr->ss_family == AF_INET6)
		return ipv6_addr_loopback(&sin6->sin6_addr);
	return ipv4_is_loopback(sin->sin_addr.s_addr);
}

/**
 * weft_addr_unmap - make an IPv4 address of an IPv4-mapped one
 * @addr: changed if it is one
 *
 * An IPv4 peer of a dual-stack listener is an IPv4 peer to everybody above.
 */
void weft_addr_unmap(struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)addr;
	struct sockaddr_in plain = { .sin_family = AF_INET };

	if (addr->ss_family != AF_INET6 || !ipv6_addr_v4mapped(&sin6->sin6_addr))
		return;
	plain.sin_port = sin6->sin6_port;
	plain.sin_addr.s_addr = sin6->sin6_addr.s6_addr32[3];
	memset(addr, 0, sizeof(*addr));
	memcpy(addr, &plain, sizeof(plain));
}

/**
 * weft_addr_set_scope - say which link a link-local address is on
 * @addr: changed if it is link-local and does not say so itself
 * @ifindex: the link
 */
void weft_addr_set_scope(struct sockaddr_storage *addr, int ifindex)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)addr;

	if (addr->ss_family == AF_INET6 && !sin6->sin6_scope_id &&
	    ipv6_addr_type(&sin6->sin6_addr) & IPV6_ADDR_LINKLOCAL)
		sin6->sin6_scope_id = ifindex;
}

/**
 * weft_addr_find_netdev - the network device that has an address
 * @net: where
 * @addr: of this host
 *
 * As rdma_cm looks for it: the first that has it, also if it is a link-local one. Context: RCU
 * read lock held. Return: NULL if there is none.
 */
struct net_device *weft_addr_find_netdev(struct net *net, const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *sin = (const struct sockaddr_in *)addr;
	struct net_device *netdev;

	if (addr->ss_family != AF_INET6)
		return __ip_dev_find(net, sin->sin_addr.s_addr, false);
	if (!IS_ENABLED(CONFIG_IPV6))
		return NULL;
	for_each_netdev_rcu(net, netdev) {
		if (ipv6_chk_addr(net, &sin6->sin6_addr, netdev, 1))
			return netdev;
	}
	return NULL;
}
