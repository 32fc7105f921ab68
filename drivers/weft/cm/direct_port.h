/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Where QPs are connected directly: a TCP listener for each address that they use.
 */
#ifndef WEFT_CM_DIRECT_PORT_H
#define WEFT_CM_DIRECT_PORT_H

#include <linux/socket.h>

struct weft_cm;
struct weft_conn;
struct weft_direct_port;

/* Context: process, the lock of the device's weft_directs held. */
struct weft_direct_port *weft_direct_port_open(struct weft_cm *cm,
					       const struct sockaddr_storage *addr);
void weft_direct_port_close(struct weft_direct_port *port);

/* The worker of @conn. */
bool weft_direct_port_requested(struct weft_conn *conn);
void weft_direct_port_leave(struct weft_conn *conn);

#endif
