/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Socket addresses, IPv4 and IPv6.
 */
#ifndef WEFT_NET_SOCKADDR_H
#define WEFT_NET_SOCKADDR_H

#include <linux/socket.h>
#include <linux/types.h>

struct in6_addr;
struct net;
struct net_device;

__be16 weft_addr_port(const struct sockaddr_storage *addr);
void weft_addr_set_port(struct sockaddr_storage *addr, __be16 port);
bool weft_addr_is_any(const struct sockaddr_storage *addr);
bool weft_addr_is_unicast(const struct sockaddr_storage *addr);
bool weft_addr_equal(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
void weft_addr_from_ip6(struct sockaddr_storage *addr, const struct in6_addr *ip6, __be16 port);
bool weft_addr_is_loopback(const struct sockaddr_storage *addr);
void weft_addr_unmap(struct sockaddr_storage *addr);
void weft_addr_set_scope(struct sockaddr_storage *addr, int ifindex);

/* RCU read lock held. */
struct net_device *weft_addr_find_netdev(struct net *net, const struct sockaddr_storage *addr);

#endif
