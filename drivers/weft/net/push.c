// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Pages go to TCP without a copy: by sendpage where it exists (6.1 knows
 * MSG_SPLICE_PAGES, but its TCP ignores it and copies), else by splicing.
 * Either way TCP copies by itself when the route cannot do scatter-gather.
 */
#include "net/push.h"

#include <linux/bvec.h>
#include <linux/socket.h>
#include <linux/uio.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "base/compat.h"

#define PUSH_FLAGS	(MSG_DONTWAIT | MSG_NOSIGNAL)

#ifdef HAVE_TCP_SENDPAGE

static int run_flags(bool last, bool more)
{
	if (!last)
		return PUSH_FLAGS | MSG_MORE | MSG_SENDPAGE_NOTLAST;
	return more ? PUSH_FLAGS | MSG_MORE : PUSH_FLAGS;
}

static int push(struct sock *sk, const struct bio_vec *vec, u32 count, u32 bytes, bool more)
{
	u32 done = 0;
	u32 i;

	for (i = 0; i < count; i++) {
		int n = tcp_sendpage_locked(sk, vec[i].bv_page, vec[i].bv_offset, vec[i].bv_len,
					    run_flags(i + 1 == count, more));

		if (n < 0)
			return done ?: n;
		done += n;
		if (n < vec[i].bv_len)
			break;
	}
	return done;
}

#else

static int push(struct sock *sk, const struct bio_vec *vec, u32 count, u32 bytes, bool more)
{
	struct msghdr msg = { .msg_flags = PUSH_FLAGS | MSG_SPLICE_PAGES | (more ? MSG_MORE : 0) };

	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, vec, count, bytes);
	return tcp_sendmsg_locked(sk, &msg, bytes);
}

#endif

/**
 * weft_push_pages - let TCP take pages
 * @sk: the socket, locked by the caller
 * @vec: the pages, which nobody writes any more
 * @count: of @vec
 * @bytes: in all of @vec
 * @more: a partial segment may wait for the next call
 *
 * Context: process. TCP takes its own references. Return: octets taken, -EAGAIN
 * when there is no room (the socket will say when there is), or -errno.
 */
int weft_push_pages(struct sock *sk, const struct bio_vec *vec, u32 count, u32 bytes, bool more)
{
	sock_owned_by_me(sk);
	return push(sk, vec, count, bytes, more);
}
