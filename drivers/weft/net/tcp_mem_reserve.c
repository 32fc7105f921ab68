// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * TCP lets a socket keep memory (SO_RESERVE_MEM), but only if a memory cgroup accounts it.
 * Here any connection keeps as much as its buffers were seen to hold, while TCP has plenty.
 * A work item walks the list of them each second: a connection that was idle since the
 * last walk loses its reserve, and so do all of them when there is not plenty any more.
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

#include "net/tcp_internals.h"
#include "net/tcp_socket.h"
#include "proto/hot.h"

#define LEAST	((u32)PAGE_SIZE)
#define MOST	((u32)SZ_4M)
#define PERIOD	HZ

static void reserve_work(struct work_struct *work);

/* holders, weft_mem_reserve.node; bh, after the socket lock */
static DEFINE_SPINLOCK(holders_lock);
/* Of weft_mem_reserve.node, but for those that the work is about to visit. */
static LIST_HEAD(holders);
static DECLARE_DELAYED_WORK(reserve_walk, reserve_work);

/**
 * weft_mem_reserve_check - let the reserve grow to what the buffers hold now
 * @sk: an attached connection; to be called when its buffers are full
 *
 * Context: socket lock held, any up to softirq.
 */
void weft_hot weft_mem_reserve_check(struct sock *sk)
{
	u32 used = weft_tcp_buffered(sk);
	struct weft_sock *s;
	u32 want;

	if (likely(used <= weft_tcp_reserved(sk)))
		return;
	s = sk->sk_user_data;
	want = used < MOST ? max(roundup_pow_of_two(used), LEAST) : MOST;
	if (!s || want <= weft_tcp_reserved(sk) || time_before(jiffies, s->reserve.not_before))
		return;
	if (!weft_tcp_memory_plentiful(sk) || !weft_tcp_reserve(sk, want)) {
		s->reserve.not_before = jiffies + PERIOD;
		return;
	}
	spin_lock_bh(&holders_lock);
	if (list_empty(&s->reserve.node))
		list_add_tail(&s->reserve.node, &holders);
	spin_unlock_bh(&holders_lock);
	schedule_delayed_work(&reserve_walk, PERIOD);
}

/**
 * weft_mem_reserve_end - give the reserve back
 * @reserve: of a connection, whether it has any or not
 * @sk: the connection
 *
 * Context: process, socket lock held.
 */
void weft_mem_reserve_end(struct weft_mem_reserve *reserve, struct sock *sk)
{
	spin_lock_bh(&holders_lock);
	list_del_init(&reserve->node);
	spin_unlock_bh(&holders_lock);
	weft_tcp_reserve(sk, 0);
}

/* It loses its reserve if nothing has come or gone since the last walk. */
static void review_reserve(struct sock *sk)
{
	struct weft_sock *s;

	lock_sock(sk);
	s = sk->sk_user_data;
	if (s) { /* else it was detached meanwhile, and has lost its reserve already */
		u32 moved = weft_tcp_segs(sk);
		bool idle = moved == s->reserve.moved;

		s->reserve.moved = moved;
		if (idle || !weft_tcp_memory_plentiful(sk))
			weft_mem_reserve_end(&s->reserve, sk);
	}
	release_sock(sk);
}

/* Return: a socket of @unseen, held and in the list of holders again, or NULL. */
static struct sock *next_unseen(struct list_head *unseen)
{
	struct weft_mem_reserve *reserve;
	struct sock *sk = NULL;

	spin_lock_bh(&holders_lock);
	reserve = list_first_entry_or_null(unseen, struct weft_mem_reserve, node);
	if (reserve) {
		list_move_tail(&reserve->node, &holders);
		sk = container_of(reserve, struct weft_sock, reserve)->sk;
		sock_hold(sk);
	}
	spin_unlock_bh(&holders_lock);
	return sk;
}

static void reserve_work(struct work_struct *work)
{
	struct sock *sk;
	LIST_HEAD(unseen);
	bool some;

	spin_lock_bh(&holders_lock);
	list_splice_init(&holders, &unseen);
	spin_unlock_bh(&holders_lock);
	while ((sk = next_unseen(&unseen))) {
		review_reserve(sk);
		sock_put(sk);
		cond_resched();
	}
	spin_lock_bh(&holders_lock);
	some = !list_empty(&holders);
	spin_unlock_bh(&holders_lock);
	if (some)
		schedule_delayed_work(&reserve_walk, PERIOD);
}

/* No connection is left. Context: may sleep. */
void weft_mem_reserve_module_exit(void)
{
	WARN_ON_ONCE(!list_empty(&holders));
	cancel_delayed_work_sync(&reserve_walk);
}
