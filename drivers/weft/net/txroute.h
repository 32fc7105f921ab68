/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The route of a connection, as far as it matters for how to send.
 */
#ifndef WEFT_NET_TXROUTE_H
#define WEFT_NET_TXROUTE_H

#include <linux/types.h>

struct sock;

bool weft_route_takes_pages(const struct sock *sk);

#endif
