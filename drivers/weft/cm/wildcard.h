/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * One socket for the wildcard listeners of all devices in a network namespace.
 */
#ifndef WEFT_CM_WILDCARD_H
#define WEFT_CM_WILDCARD_H

#include <linux/types.h>

struct net;
struct weft_listener;
struct weft_listener_config;
struct weft_wildcard;

int weft_wildcard_join(struct weft_listener *l, const struct weft_listener_config *cfg,
		       struct net *net);
void weft_wildcard_leave(struct weft_listener *l);
int weft_wildcard_accept(struct weft_listener *l);

#endif
