/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Memory of others that TCP sends from as it is: until the peer has acknowledged it, TCP
 * may read it again, and on one host it may be in the peer's queue for long. The kernel
 * says when the last buffer is gone, and whether it had to make copies.
 */
#ifndef WEFT_NET_ZEROCOPY_H
#define WEFT_NET_ZEROCOPY_H

#include <linux/skbuff.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct sock;

/**
 * struct weft_loan - what belongs to one message of an application's
 * @ubuf: by which the kernel counts the buffers that point into it
 * @copied: the kernel made copies
 * @back: told once, when nobody reads the memory any more; frees the loan. Context: any
 *	but with interrupts off; the socket lock may be held
 * @late: tells @back where that is not allowed
 *
 * Owner: who took it out, until weft_loan_put(); then whoever holds the last buffer.
 */
struct weft_loan {
	struct ubuf_info ubuf;
	bool copied;
	void (*back)(struct weft_loan *loan);
	struct work_struct late;
};

void weft_loan_init(struct weft_loan *loan, void (*back)(struct weft_loan *loan));
void weft_loan_put(struct weft_loan *loan);

bool weft_route_takes_pages(const struct sock *sk);

#endif
