// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * When the last buffer that points to an application's memory is freed, and whether a route
 * is worth it.
 * Buffers are freed in softirq, with the socket locked or not, at the end of a task's write,
 * and by drivers of devices.
 */
#include "net/zerocopy.h"

#include <linux/irqflags.h>
#include <linux/netdevice.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <net/dst.h>
#include <net/sock.h>

#include "base/compat.h"

static void complete_late(struct work_struct *work)
{
	struct weft_zc_notif *notif = container_of(work, struct weft_zc_notif, late);

	notif->complete(notif);
}

static void complete_notif(struct weft_zc_notif *notif)
{
	if (in_hardirq() || irqs_disabled())
		schedule_work(&notif->late);
	else
		notif->complete(notif);
}

/* A buffer was freed, or points to a copy now. */
static void buffer_gone(struct sk_buff *skb, struct ubuf_info *ubuf, bool untouched)
{
	struct weft_zc_notif *notif = container_of(ubuf, struct weft_zc_notif, ubuf);

	if (!untouched)
		WRITE_ONCE(notif->copied, true);
	if (refcount_dec_and_test(&ubuf->refcnt))
		complete_notif(notif);
}

COMPAT_UBUF_OPS(notif_ops, buffer_gone);

/**
 * weft_zc_notif_init - begin to send by zero-copy
 * @notif: with one reference, for weft_zc_notif_put()
 * @complete: called when the memory is not read any more
 *
 * The flags are those of MSG_ZEROCOPY: TCP's clones share the pages, and what keeps a
 * buffer for long copies them.
 *
 * Context: any.
 */
void weft_zc_notif_init(struct weft_zc_notif *notif, void (*complete)(struct weft_zc_notif *notif))
{
	compat_ubuf_init(&notif->ubuf, &notif_ops);
	refcount_set(&notif->ubuf.refcnt, 1);
	notif->ubuf.flags = SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN;
	notif->copied = false;
	notif->complete = complete;
	INIT_WORK(&notif->late, complete_late);
}

/**
 * weft_zc_notif_put - nothing is added to it any more
 * @notif: from weft_zc_notif_init(); may be complete, and freed, when this returns
 *
 * Context: any but hard interrupts.
 */
void weft_zc_notif_put(struct weft_zc_notif *notif)
{
	buffer_gone(NULL, &notif->ubuf, true);
}

/**
 * weft_zc_route_ok - would pages get to a wire without being copied?
 * @sk: a connected socket
 *
 * On the loopback device they would not. Context: any. Return: a hint.
 */
bool weft_zc_route_ok(const struct sock *sk)
{
	const struct dst_entry *dst;
	bool takes = false;

	if (!(READ_ONCE(sk->sk_route_caps) & NETIF_F_SG))
		return false;
	rcu_read_lock();
	dst = rcu_dereference(sk->sk_dst_cache);
	if (dst)
		takes = !(READ_ONCE(compat_dst_dev(dst)->flags) & IFF_LOOPBACK);
	rcu_read_unlock();
	return takes;
}
