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
	struct weft_loan *loan = container_of(work, struct weft_loan, late);

	loan->complete(loan);
}

static void complete_notif(struct weft_loan *loan)
{
	if (in_hardirq() || irqs_disabled())
		schedule_work(&loan->late);
	else
		loan->complete(loan);
}

/* A buffer was freed, or points to a copy now. */
static void buffer_gone(struct sk_buff *skb, struct ubuf_info *ubuf, bool untouched)
{
	struct weft_loan *loan = container_of(ubuf, struct weft_loan, ubuf);

	if (!untouched)
		WRITE_ONCE(loan->copied, true);
	if (refcount_dec_and_test(&ubuf->refcnt))
		complete_notif(loan);
}

COMPAT_UBUF_OPS(loan_ops, buffer_gone);

/**
 * weft_loan_init - begin to send by zero-copy
 * @loan: with one reference, for weft_loan_put()
 * @complete: called when the memory is not read any more
 *
 * The flags are those of MSG_ZEROCOPY: TCP's clones share the pages, and what keeps a
 * buffer for long copies them.
 *
 * Context: any.
 */
void weft_loan_init(struct weft_loan *loan, void (*complete)(struct weft_loan *loan))
{
	compat_ubuf_init(&loan->ubuf, &loan_ops);
	refcount_set(&loan->ubuf.refcnt, 1);
	loan->ubuf.flags = SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN;
	loan->copied = false;
	loan->complete = complete;
	INIT_WORK(&loan->late, complete_late);
}

/**
 * weft_loan_put - nothing is added to it any more
 * @loan: from weft_loan_init(); may be complete, and freed, when this returns
 *
 * Context: any but hard interrupts.
 */
void weft_loan_put(struct weft_loan *loan)
{
	buffer_gone(NULL, &loan->ubuf, true);
}

/**
 * weft_route_takes_pages - would pages get to a wire without being copied?
 * @sk: a connected socket
 *
 * On the loopback device they would not. Context: any. Return: a hint.
 */
bool weft_route_takes_pages(const struct sock *sk)
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
