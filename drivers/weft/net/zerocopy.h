/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Zero-copy transmit: TCP sends from an application's memory. Until the peer has
 * acknowledged it TCP may read it again, and on one host it may be in the peer's receive
 * queue for long. The kernel says when the last buffer is freed, and whether it had to make
 * copies.
 */
#ifndef WEFT_NET_ZEROCOPY_H
#define WEFT_NET_ZEROCOPY_H

#include <linux/skbuff.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct sock;

/**
 * struct weft_zc_notif - memory of one message that TCP sends from
 * @ubuf: by which the kernel counts the buffers that point to the memory
 * @copied: the kernel made copies
 * @complete: called once, when the memory is not read any more; frees the notif. Context: any
 *	but with interrupts off; the socket lock may be held
 * @late: calls @complete where interrupts are off
 *
 * Owner: the caller of weft_zc_notif_init() until weft_zc_notif_put(), then the buffers.
 */
struct weft_zc_notif {
	struct ubuf_info ubuf;
	bool copied;
	void (*complete)(struct weft_zc_notif *notif);
	struct work_struct late;
};

void weft_zc_notif_init(struct weft_zc_notif *notif, void (*complete)(struct weft_zc_notif *notif));
void weft_zc_notif_put(struct weft_zc_notif *notif);

bool weft_zc_route_ok(const struct sock *sk);

#endif
