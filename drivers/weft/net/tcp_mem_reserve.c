// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * TCP knows of memory that a socket keeps (SO_RESERVE_MEM), but gives it only to those
 * of memory cgroups that are counted. Here any connection has some, as much as its
 * buffers were seen to hold, while TCP's account has plenty. Once a second somebody
 * looks: a connection that rests loses it, and so do all of them when there is
 * plenty no more.
 */
#include "net/tcp_mem_reserve.h"

#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <net/sock.h>

#include "net/tcp_info.h"
#include "net/tcp_internals.h"
#include "net/tcp_socket.h"

#define LEAST	((u32)PAGE_SIZE)
#define MOST	((u32)SZ_4M)
#define PERIOD	HZ

static void look_work(struct work_struct *work);

static DEFINE_SPINLOCK(lock); /* bh; after the socket lock */
static LIST_HEAD(holders); /* of weft_allot.node, but for those about to be looked at */
static DECLARE_DELAYED_WORK(looks, look_work);

void weft_allot_init(struct weft_allot *allot)
{
	INIT_LIST_HEAD(&allot->node);
	allot->not_before = jiffies;
}

static void enlist(struct weft_allot *allot)
{
	spin_lock_bh(&lock);
	if (list_empty(&allot->node))
		list_add_tail(&allot->node, &holders);
	spin_unlock_bh(&lock);
	schedule_delayed_work(&looks, PERIOD);
}

/**
 * weft_allot_grow - more is in the buffers than the connection has for them
 * @sk: the connection
 * @used: octets, as TCP counts them
 *
 * Context: socket lock held, any up to softirq.
 */
void weft_allot_grow(struct sock *sk, u32 used)
{
	struct weft_sock *s = sk->sk_user_data;
	u32 want = used < MOST ? max(roundup_pow_of_two(used), LEAST) : MOST;

	if (!s || want <= weft_tcp_reserved(sk) || time_before(jiffies, s->allot.not_before))
		return;
	if (weft_tcp_memory_plentiful(sk) && weft_tcp_reserve(sk, want))
		enlist(&s->allot);
	else
		s->allot.not_before = jiffies + PERIOD;
}

/**
 * weft_allot_end - give it back
 * @allot: of a connection, whether it has any or not
 * @sk: the connection
 *
 * Context: process, socket lock held.
 */
void weft_allot_end(struct weft_allot *allot, struct sock *sk)
{
	spin_lock_bh(&lock);
	list_del_init(&allot->node);
	spin_unlock_bh(&lock);
	weft_tcp_unreserve(sk);
}

/* Has nothing come or gone since the last look? */
static bool rests(struct weft_sock *s)
{
	u32 moved = weft_tcp_segs(s);
	bool same = moved == s->allot.moved;

	s->allot.moved = moved;
	return same;
}

/* Detached meanwhile, it has lost its allotment already. */
static void look_at(struct sock *sk)
{
	struct weft_sock *s;

	lock_sock(sk);
	s = sk->sk_user_data;
	if (s && (rests(s) || !weft_tcp_memory_plentiful(sk)))
		weft_allot_end(&s->allot, sk);
	release_sock(sk);
}

/* Return: one of @unseen, held, which is among the holders again, or NULL. */
static struct sock *next_of(struct list_head *unseen)
{
	struct weft_allot *allot;
	struct sock *sk = NULL;

	spin_lock_bh(&lock);
	allot = list_first_entry_or_null(unseen, struct weft_allot, node);
	if (allot) {
		list_move_tail(&allot->node, &holders);
		sk = container_of(allot, struct weft_sock, allot)->sk;
		sock_hold(sk);
	}
	spin_unlock_bh(&lock);
	return sk;
}

static void look_work(struct work_struct *work)
{
	struct sock *sk;
	LIST_HEAD(unseen);
	bool some;

	spin_lock_bh(&lock);
	list_splice_init(&holders, &unseen);
	spin_unlock_bh(&lock);
	while ((sk = next_of(&unseen))) {
		look_at(sk);
		sock_put(sk);
		cond_resched();
	}
	spin_lock_bh(&lock);
	some = !list_empty(&holders);
	spin_unlock_bh(&lock);
	if (some)
		schedule_delayed_work(&looks, PERIOD);
}

/* No connection is left. Context: may sleep. */
void weft_allot_module_exit(void)
{
	WARN_ON_ONCE(!list_empty(&holders));
	cancel_delayed_work_sync(&looks);
}
