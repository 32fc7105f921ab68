/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Memory that TCP may fill with a socket's buffers is accounted for all sockets together,
 * in pages. TCP takes what it needs for each buffer from that account, and gives it back
 * with the buffer. Here a connection in use keeps a reserve.
 */
#ifndef WEFT_NET_TCP_MEM_RESERVE_H
#define WEFT_NET_TCP_MEM_RESERVE_H

#include <linux/list.h>
#include <linux/types.h>

struct sock;

/**
 * struct weft_mem_reserve - the reserve of a connection; protected by the socket lock
 * @node: in the list of those that have one; protected by the lock of that list, too
 * @moved: segments in and out when the list was last walked
 * @not_before: jiffies before which it does not grow
 */
struct weft_mem_reserve {
	struct list_head node;
	u32 moved;
	unsigned long not_before;
};

void weft_mem_reserve_check(struct sock *sk);
void weft_mem_reserve_end(struct weft_mem_reserve *reserve, struct sock *sk);
void weft_mem_reserve_module_exit(void);

#endif
