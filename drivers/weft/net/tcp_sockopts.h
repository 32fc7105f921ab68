/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What an operator may choose about the TCP connections of a device.
 */
#ifndef WEFT_NET_TCP_SOCKOPTS_H
#define WEFT_NET_TCP_SOCKOPTS_H

#include <linux/types.h>
#include <net/tcp.h>

struct net;
struct weft_sock;

/**
 * struct weft_sock_opts - options of a socket; 0 or empty: as TCP has it
 * @congestion: congestion control
 * @keepalive_idle: seconds of silence before TCP asks whether the peer is there;
 *	0: it never asks
 * @keepalive_interval: seconds between two questions
 * @keepalive_probes: questions without an answer that end the connection
 * @user_timeout: milliseconds without an acknowledgment that end the connection
 * @sndbuf: bytes, as SO_SNDBUF takes them; 0: TCP sizes the buffer
 * @rcvbuf: bytes, as SO_RCVBUF takes them; 0: TCP sizes the buffer
 * @tos: type of service, or traffic class, where the consumer asks for none
 */
struct weft_sock_opts {
	char congestion[TCP_CA_NAME_MAX];
	u32 keepalive_idle;
	u32 keepalive_interval;
	u32 keepalive_probes;
	u32 user_timeout;
	u32 sndbuf;
	u32 rcvbuf;
	u32 tos;
};

void weft_sock_apply_opts(struct weft_sock *s, const struct weft_sock_opts *opts);
int weft_sock_try_congestion(struct net *net, const char *name);

#endif
