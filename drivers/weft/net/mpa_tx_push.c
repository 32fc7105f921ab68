// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Pages go to TCP without a copy: by sendpage where it exists (6.1 knows
 * MSG_SPLICE_PAGES, but its TCP ignores it and copies), else by splicing.
 * Either way TCP copies by itself when the route cannot do scatter-gather.
 *
 * TCP cuts segments out of its buffers at multiples of the MSS. Where a segment
 * is to end earlier, its current buffer is closed.
 */
#include "net/mpa_tx.h"

#include <linux/bits.h>
#include <linux/bvec.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/socket.h>
#include <linux/uio.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "base/compat.h"
#include "base/counters.h"
#include "net/tcp_internals.h"
#include "net/tcp_mem_reserve.h"
#include "proto/hot.h"

#define PUSH_FLAGS	(MSG_DONTWAIT | MSG_NOSIGNAL)

#ifdef HAVE_TCP_SENDPAGE

/* Return: bytes TCP took, at least one, or -errno. */
static int push_pages(struct sock *sk, const struct bio_vec *vec, u32 count, u32 bytes, bool more)
{
	u32 done = 0;
	u32 i;

	for (i = 0; i < count; i++) {
		bool last = i + 1 == count;
		int flags = PUSH_FLAGS | (last ? 0 : MSG_SENDPAGE_NOTLAST) |
			    (more || !last ? MSG_MORE : 0);
		int n = tcp_sendpage_locked(sk, vec[i].bv_page, vec[i].bv_offset, vec[i].bv_len,
					    flags);

		if (n < 0)
			return done ?: n;
		done += n;
		if (n < vec[i].bv_len)
			break;
	}
	return done;
}

#else

static int push_pages(struct sock *sk, const struct bio_vec *vec, u32 count, u32 bytes, bool more)
{
	struct msghdr msg = { .msg_flags = PUSH_FLAGS | MSG_SPLICE_PAGES | (more ? MSG_MORE : 0) };

	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, vec, count, bytes);
	return tcp_sendmsg_locked(sk, &msg, bytes);
}

#endif

/* The runs up to and including the next planned cut. */
static inline u32 runs_to_cut(const struct weft_mpa_tx *tx, u32 *bytes)
{
	u32 i = tx->head;

	*bytes = 0;
	do {
		*bytes += tx->vec[i].bv_len;
	} while (!(tx->eor & BIT_ULL(i)) && ++i < tx->count);
	return min(i + 1, tx->count) - tx->head;
}

static void drop_pushed(struct weft_mpa_tx *tx, struct sock *sk, u32 len)
{
	WRITE_ONCE(tx->pushed, tx->pushed + len);
	while (len) {
		struct bio_vec *run = &tx->vec[tx->head];
		u32 n = min(len, run->bv_len);

		run->bv_offset += n;
		run->bv_len -= n;
		len -= n;
		if (run->bv_len)
			break;
		if (tx->eor & BIT_ULL(tx->head))
			weft_tcp_end_segment(sk);
		put_page(run->bv_page);
		tx->head++;
	}
}

/*
 * TCP takes its own references to the pages. Return: 0 when it has all of them,
 * -EAGAIN when it has no room (the socket will say when it has), or another -errno.
 */
static int push_batch(struct weft_mpa_tx *tx, struct sock *sk, bool more)
{
	bool reserves = sock_flag(sk, SOCK_MEMALLOC) && !tx->atomic;
	struct sk_buff *tail = weft_tcp_unsent_tail(sk);
	u32 bytes;

	sock_owned_by_me(sk);
	weft_tcp_round_mss(sk);
	/*
	 * A batch is planned from the start of a segment. If TCP still has an unfilled one,
	 * the batch may go on in it only if its first segment fits in the rest.
	 */
	if (tail && tx->big && !tx->partial) {
		u32 fill = tail->len % tx->mss;

		runs_to_cut(tx, &bytes);
		if (fill && fill + min(bytes, tx->mss) > tx->mss)
			weft_tcp_end_segment(sk);
	}
	while (tx->head < tx->count) {
		u32 runs = runs_to_cut(tx, &bytes);
		bool last = tx->head + runs == tx->count;
		unsigned int noreclaim = 0;
		int n;

		weft_count(tx->counters, WEFT_CTR_TX_SOCKET_SENDS);
		/*
		 * For a socket that may take from the reserves, buffers are first asked for
		 * without them (kmalloc_reserve()). A task that may reclaim would wait in that
		 * try, with the socket locked, for the very I/O it is about to send: it may not.
		 */
		if (reserves)
			noreclaim = memalloc_noreclaim_save();
		n = push_pages(sk, &tx->vec[tx->head], runs, bytes, more || !last);
		if (reserves)
			memalloc_noreclaim_restore(noreclaim);
		if (n <= 0)
			return n ?: -EAGAIN;
		tx->partial = true;
		drop_pushed(tx, sk, n);
	}
	tx->head = 0;
	tx->count = 0;
	tx->eor = 0;
	tx->seg_fill = 0;
	tx->big = false;
	tx->partial = false;
	return 0;
}

/*
 * Nothing may sleep in a callback, and for a batch of several buffers. Where the receiver is on
 * this host (lo, veth), TCP's softirq would run after each buffer; with softirqs off it runs
 * once, after the last one. -EAGAIN of that means that the socket is full, or that there was no
 * memory. Only the second call may wait for memory. Socket lock held.
 */
static int push_locked(struct weft_mpa_tx *tx, struct sock *sk, bool more)
{
	gfp_t allocation = sk->sk_allocation;
	int ret = -EAGAIN;

	sock_owned_by_me(sk);
	if (tx->buffers > 1 || tx->atomic) {
		local_bh_disable();
		sk->sk_allocation = GFP_ATOMIC | __GFP_NOWARN | (allocation & __GFP_MEMALLOC);
		ret = push_batch(tx, sk, more);
		sk->sk_allocation = allocation;
		local_bh_enable();
	}
	return ret == -EAGAIN && !tx->atomic ? push_batch(tx, sk, more) : ret;
}

/**
 * weft_mpa_tx_push - hand everything staged to TCP
 * @tx: the writer, between two FPDUs
 * @more: another push follows at once: a last, partial segment may wait for it
 *
 * Context: tx claim; process, where it takes the socket lock and a callback of the socket may
 * run in here, or @atomic with that lock held. Return: 0 when TCP has all of it, -EAGAIN when
 * it is full (push again when @writable is called), -ENOBUFS when it has to be tried again in
 * process context, after a while, another -errno when the connection is lost.
 */
int weft_hot weft_mpa_tx_push(struct weft_mpa_tx *tx, bool more)
{
	struct sock *sk = tx->sk;
	bool grow;
	int ret;

	if (weft_mpa_tx_empty(tx)) {
		if (!tx->corked || more)
			return 0;
		if (tx->atomic) /* only process context can send what TCP held back */
			return -ENOBUFS;
		tx->corked = false;
		tcp_sock_set_nodelay(sk);
		weft_tcp_check_window(sk);
		return 0;
	}
	/*
	 * Batches grow while full ones follow each other. They do not where staging takes much
	 * longer than TCP does, since the receiver would wait for all of it, nor on reserves.
	 */
	grow = more && tx->big && !tx->crc && !tx->markers && !tx->atomic &&
	       !sock_flag(sk, SOCK_MEMALLOC);
	/* Not where the next FPDU would start a segment in any case. */
	if (tx->atomic || (tx->big && tx->seg_fill && tx->mss - tx->seg_fill < WEFT_FILL_FROM))
		more = false;
	if (!tx->atomic)
		lock_sock(sk);
	ret = push_locked(tx, sk, more);
	if (ret == -EAGAIN && weft_tcp_is_drained(sk))
		ret = -ENOBUFS;
	weft_mem_reserve_check(sk);
	if (!tx->atomic)
		weft_tcp_release(sk);
	tx->buffers = grow && !ret ? min(2 * tx->buffers, WEFT_BATCH_BUFFERS) : 1;
	tx->corked = more && !ret;
	if (ret == -EAGAIN)
		weft_count(tx->counters, WEFT_CTR_TX_FULL);
	return ret;
}

/**
 * weft_mpa_tx_is_accepted - does TCP have the stream up to a position?
 * @tx: the writer; another CPU may push
 * @pos: staged, so no more than a batch beyond @tx->pushed; or U64_MAX: not yet
 *
 * While a push is under way TCP may already have more than @tx->pushed says, and may have
 * sent it: tcp_sendmsg_locked() works off the backlog in between, where the peer's answer is
 * perhaps. So then TCP's own number counts.
 *
 * Context: any, with the socket locked, or on behalf of what was received from it.
 */
bool weft_hot weft_mpa_tx_is_accepted(const struct weft_mpa_tx *tx, u64 pos)
{
	u32 written;

	if (pos <= READ_ONCE(tx->pushed))
		return true;
	written = weft_tcp_write_seq(tx->sk) - tx->base;
	return pos != U64_MAX && (s32)(written - (u32)pos) >= 0;
}
