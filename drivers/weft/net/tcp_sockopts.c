// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Options of a socket that the operator of a device has chosen. They were checked
 * when they were chosen, and a connection is better than none: what a socket does
 * not take after all is left as it is.
 */
#include "net/tcp_sockopts.h"

#include <linux/cred.h>
#include <linux/init_task.h>
#include <linux/net.h>
#include <linux/sockptr.h>
#include <linux/string.h>
#include <linux/tcp.h>
#include <net/sock.h>

#include "net/tcp_socket.h"

static int set_congestion(struct weft_sock *s, const char *name)
{
	/* TCP takes the bytes and puts the end to them by itself. */
	return s->sock->ops->setsockopt(s->sock, SOL_TCP, TCP_CONGESTION,
					KERNEL_SOCKPTR((char *)name), strlen(name));
}

/*
 * The choice is the operator's, not the process's: a process may lack the right to
 * the congestion control or the size of buffer that it is given.
 */
static void set_privileged(struct weft_sock *s, const struct weft_sock_opts *opts)
{
	const struct cred *before;
	int sndbuf = opts->sndbuf;
	struct cred *ours;

	if (!opts->congestion[0] && !sndbuf)
		return;
	ours = prepare_kernel_cred(&init_task);
	if (!ours)
		return;
	before = override_creds(ours);
	if (opts->congestion[0])
		set_congestion(s, opts->congestion);
	if (sndbuf)
		sock_setsockopt(s->sock, SOL_SOCKET, SO_SNDBUFFORCE, KERNEL_SOCKPTR(&sndbuf),
				sizeof(sndbuf));
	revert_creds(before);
	put_cred(ours);
}

/**
 * weft_sock_apply_opts - give a socket what the operator has chosen
 * @s: not connected yet, so that buffers count for the window; or just accepted
 * @opts: the choice
 *
 * Context: process.
 */
void weft_sock_apply_opts(struct weft_sock *s, const struct weft_sock_opts *opts)
{
	struct sock *sk = s->sk;

	set_privileged(s, opts);
	if (opts->keepalive_idle) {
		tcp_sock_set_keepidle(sk, opts->keepalive_idle);
		if (opts->keepalive_interval)
			tcp_sock_set_keepintvl(sk, opts->keepalive_interval);
		if (opts->keepalive_probes)
			tcp_sock_set_keepcnt(sk, opts->keepalive_probes);
		sock_set_keepalive(sk);
	}
	if (opts->user_timeout)
		tcp_sock_set_user_timeout(sk, opts->user_timeout);
	if (opts->rcvbuf)
		sock_set_rcvbuf(sk, opts->rcvbuf);
	if (opts->tos)
		weft_sock_set_tos(s, opts->tos);
}

/**
 * weft_sock_try_congestion - is there a congestion control of this name?
 * @net: network namespace
 * @name: its module is loaded if there is one
 *
 * Context: process, with the rights of the caller. Return: 0 or -errno.
 */
int weft_sock_try_congestion(struct net *net, const char *name)
{
	struct weft_sock *s;
	int ret;

	ret = weft_sock_create(net, AF_INET, &s);
	if (ret)
		return ret;
	ret = set_congestion(s, name);
	weft_sock_release(s);
	return ret;
}
