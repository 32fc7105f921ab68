/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The memory that TCP may fill with a socket's buffers comes from an account of all
 * sockets, in pages. By itself a socket takes what it needs for a buffer, and gives it
 * back with the buffer; here it has an allotment that it keeps while it is in use.
 */
#ifndef WEFT_NET_TCP_MEM_RESERVE_H
#define WEFT_NET_TCP_MEM_RESERVE_H

#include <linux/list.h>
#include <linux/types.h>

#include "net/tcp_internals.h"

/**
 * struct weft_allot - of a connection; under the socket lock
 * @node: among those that have one; under the lock of that list, too
 * @moved: segments in and out at the last look
 * @not_before: jiffies before which it does not grow
 */
struct weft_allot {
	struct list_head node;
	u32 moved;
	unsigned long not_before;
};

void weft_allot_init(struct weft_allot *allot);
void weft_allot_grow(struct sock *sk, u32 used);
void weft_allot_end(struct weft_allot *allot, struct sock *sk);
void weft_allot_module_exit(void);

/**
 * weft_allot_check - see whether the allotment does for what is in the buffers now
 * @sk: an attached connection; to be said when its buffers are full
 *
 * Context: socket lock held, any up to softirq.
 */
static inline void weft_allot_check(struct sock *sk)
{
	u32 used = weft_tcp_buffered(sk);

	if (unlikely(used > weft_tcp_reserved(sk)))
		weft_allot_grow(sk, used);
}

#endif
