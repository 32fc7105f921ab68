// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Pages go to TCP without a copy: by sendpage where it exists (6.1 knows
 * MSG_SPLICE_PAGES, but its TCP ignores it and copies), else by splicing.
 * Either way TCP copies by itself when the route cannot do scatter-gather. Pages that
 * are lent go as those of MSG_ZEROCOPY do, with word when they are back.
 *
 * TCP cuts segments out of its buffers at multiples of the MSS. Where a segment
 * is to end earlier, its current buffer is closed.
 */
#include "net/txsock.h"

#include <linux/bits.h>
#include <linux/bvec.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/socket.h>
#include <linux/uio.h>
#include <net/inet_connection_sock.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "base/compat.h"
#include "base/counters.h"
#include "net/allot.h"
#include "net/loan.h"
#include "net/window.h"
#include "proto/hot.h"

#define PUSH_FLAGS	(MSG_DONTWAIT | MSG_NOSIGNAL)

#ifdef HAVE_TCP_SENDPAGE

static int run_flags(bool last, bool more)
{
	if (!last)
		return PUSH_FLAGS | MSG_MORE | MSG_SENDPAGE_NOTLAST;
	return more ? PUSH_FLAGS | MSG_MORE : PUSH_FLAGS;
}

/* Return: octets TCP took, at least one, or -errno. */
static int push_pages(struct sock *sk, const struct bio_vec *vec, u32 count, u32 bytes, bool more)
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

static int push_pages(struct sock *sk, const struct bio_vec *vec, u32 count, u32 bytes, bool more)
{
	struct msghdr msg = { .msg_flags = PUSH_FLAGS | MSG_SPLICE_PAGES | (more ? MSG_MORE : 0) };

	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, vec, count, bytes);
	return tcp_sendmsg_locked(sk, &msg, bytes);
}

#endif

static int push_lent(struct sock *sk, struct weft_loan *loan, const struct bio_vec *vec, u32 count,
		     u32 bytes, bool more)
{
	struct msghdr msg = {
		.msg_flags = PUSH_FLAGS | MSG_ZEROCOPY | (more ? MSG_MORE : 0),
		.msg_ubuf = &loan->ubuf,
	};

	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, vec, count, bytes);
	return tcp_sendmsg_locked(sk, &msg, bytes);
}

/*
 * For a socket that may take from the reserves, buffers are first asked for without
 * them (kmalloc_reserve()). A task that may reclaim would wait in that try, with the
 * socket locked, for the very I/O it is about to send: so it may not.
 */
static int push(struct weft_txsock *tx, struct sock *sk, u32 count, u32 bytes, bool more)
{
	const struct bio_vec *vec = &tx->vec[tx->head];
	bool reserves = sock_flag(sk, SOCK_MEMALLOC);
	unsigned int noreclaim;
	int n;

	if (unlikely(tx->lent & BIT_ULL(tx->head)))
		return push_lent(sk, tx->loan, vec, count, bytes, more);
	if (reserves)
		noreclaim = memalloc_noreclaim_save();
	n = push_pages(sk, vec, count, bytes, more);
	if (reserves)
		memalloc_noreclaim_restore(noreclaim);
	return n;
}

/*
 * FPDUs are multiples of four octets. Where segments are not, as at an MTU of 1450 or 9001,
 * each FPDU would need a buffer of its own to start one. So what IP options take of a segment,
 * always a multiple of four itself, gets up to three octets more: TCP counts it in whenever
 * it computes the size anew, and the size it has is corrected here.
 */
static inline void round_mss(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	u32 extra = icsk->icsk_ext_hdr_len;
	u32 mss = tcp_sk(sk)->mss_cache;

	if (likely(!(mss & 3)))
		return;
	icsk->icsk_ext_hdr_len = (extra & ~3U) | ((extra + mss) & 3);
	WRITE_ONCE(tcp_sk(sk)->mss_cache, mss & ~3U);
}

/* TCP's current buffer ends here: the next octet starts a segment. */
static void cut_segment(struct sock *sk)
{
	struct sk_buff *tail = tcp_write_queue_tail(sk);

	if (tail)
		TCP_SKB_CB(tail)->eor = 1;
}

/* The runs up to and including the next planned cut. */
static inline u32 stretch(const struct weft_txsock *tx, u32 *bytes)
{
	u32 i = tx->head;

	*bytes = 0;
	do {
		*bytes += tx->vec[i].bv_len;
	} while (!(tx->eor & BIT_ULL(i)) && ++i < tx->count);
	return min(i + 1, tx->count) - tx->head;
}

/*
 * A train is planned from the start of a segment. If TCP still has an unfilled
 * one, the train may go on in it only if its first segment fits in the rest.
 */
static void align_train(struct weft_txsock *tx, struct sock *sk)
{
	struct sk_buff *tail = tcp_write_queue_tail(sk);
	u32 first, fill;

	if (!tail || tx->partial)
		return;
	if (tx->lent & BIT_ULL(tx->head) || skb_zcopy(tail))
		return cut_segment(sk);
	if (!tx->big)
		return;
	stretch(tx, &first);
	fill = tail->len % tx->mss;
	if (fill && fill + min(first, tx->mss) > tx->mss)
		cut_segment(sk);
}

static void accept_octets(struct weft_txsock *tx, struct sock *sk, u32 len)
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
			cut_segment(sk);
		put_page(run->bv_page);
		tx->head++;
	}
}

/**
 * weft_txsock_set_loan - what is lent from now on
 * @tx: the writer, with no loan
 * @loan: the caller's reference is taken over
 *
 * Context: process, tx claim. Over when @loan_over is set and what is staged is TCP's.
 */
void weft_txsock_set_loan(struct weft_txsock *tx, struct weft_loan *loan)
{
	WARN_ON_ONCE(tx->loan);
	tx->loan = loan;
	tx->loan_over = false;
}

/* Nothing staged is of the loan, if there is one, any more. Context: as set_loan; free. */
void weft_txsock_end_loan(struct weft_txsock *tx)
{
	struct weft_loan *loan = tx->loan;

	tx->loan = NULL;
	tx->loan_over = false;
	if (loan)
		weft_loan_put(loan);
}

static void start_over(struct weft_txsock *tx)
{
	tx->head = 0;
	tx->count = 0;
	tx->eor = 0;
	tx->lent = 0;
	tx->seg_fill = 0;
	tx->big = false;
	tx->partial = false;
	if (tx->loan_over)
		weft_txsock_end_loan(tx);
}

/*
 * TCP takes its own references to the pages. Return: 0 when it has all of them,
 * -EAGAIN when it has no room (the socket will say when it has), or another -errno.
 */
static int push_train(struct weft_txsock *tx, struct sock *sk, bool more)
{
	sock_owned_by_me(sk);
	round_mss(sk);
	align_train(tx, sk);
	while (tx->head < tx->count) {
		u32 bytes;
		u32 runs = stretch(tx, &bytes);
		bool last = tx->head + runs == tx->count;
		int n;

		weft_count(tx->counters, WEFT_CTR_TX_PUSHES);
		n = push(tx, sk, runs, bytes, more || !last);
		if (n <= 0)
			return n ?: -EAGAIN;
		if (unlikely(tx->lent & BIT_ULL(tx->head)))
			weft_count_add(tx->counters, WEFT_CTR_TX_LENT, n);
		tx->partial = true;
		accept_octets(tx, sk, n);
	}
	start_over(tx);
	return 0;
}

/*
 * A train of several buffers. Where the receiver is on this host (lo, veth) TCP's softirq runs
 * behind each buffer; so it does behind the last one, for all of them. Meanwhile nobody may
 * wait for memory.
 */
static int push_several(struct weft_txsock *tx, struct sock *sk, bool more)
{
	gfp_t allocation = sk->sk_allocation;
	int ret;

	local_bh_disable();
	sk->sk_allocation = GFP_ATOMIC | __GFP_NOWARN;
	ret = push_train(tx, sk, more);
	sk->sk_allocation = allocation;
	local_bh_enable();
	return ret;
}

/* The socket is full, or there was no memory: then it is waited for. Socket lock held. */
static int push_locked(struct weft_txsock *tx, struct sock *sk, bool more)
{
	int ret = -EAGAIN;

	if (tx->buffers > 1)
		ret = push_several(tx, sk, more);
	return ret == -EAGAIN ? push_train(tx, sk, more) : ret;
}

/*
 * While full trains follow each other they grow. Not where staging takes much longer than
 * TCP does, since the receiver would wait for all of it; nor on reserves of memory.
 */
static bool may_grow(const struct weft_txsock *tx, const struct sock *sk)
{
	return tx->big && !tx->crc && !tx->markers && !tx->loan && !sock_flag(sk, SOCK_MEMALLOC);
}

/* Would what comes next begin a segment in any case? */
static bool ends_segment(const struct weft_txsock *tx)
{
	return tx->big && tx->seg_fill && tx->mss - tx->seg_fill < WEFT_FILL_FROM;
}

/* Nothing is staged: let go of what an earlier push held back. */
static void uncork(struct weft_txsock *tx)
{
	tx->corked = false;
	tcp_sock_set_nodelay(tx->sk);
	weft_window_check(tx->sk);
}

/**
 * weft_txsock_push - hand everything staged to TCP
 * @tx: the writer, between two FPDUs
 * @more: another push follows at once: a last, partial segment may wait for it
 *
 * Context: process, tx claim; takes the socket lock. A callback of the socket may
 * run in here. Return: 0 when TCP has all of it, -EAGAIN when it is full (@writable
 * will tell, push again then), another -errno when the connection is lost.
 */
int weft_hot weft_txsock_push(struct weft_txsock *tx, bool more)
{
	struct sock *sk = tx->sk;
	bool grow;
	int ret;

	if (weft_txsock_empty(tx)) {
		if (tx->loan_over)
			weft_txsock_end_loan(tx);
		if (tx->corked && !more)
			uncork(tx);
		return 0;
	}
	grow = more && may_grow(tx, sk);
	more = more && !ends_segment(tx);
	lock_sock(sk);
	ret = push_locked(tx, sk, more);
	weft_allot_check(sk);
	weft_window_release(sk);
	tx->buffers = grow && !ret ? min(2 * tx->buffers, WEFT_TRAIN_BUFFERS) : 1;
	tx->corked = more && !ret;
	if (ret == -EAGAIN)
		weft_count(tx->counters, WEFT_CTR_TX_FULL);
	return ret;
}

/**
 * weft_txsock_is_accepted - does TCP have the stream up to a position?
 * @tx: the writer; another CPU may push
 * @pos: staged, so no more than a train beyond @tx->pushed; or U64_MAX: not yet
 *
 * While a push is under way TCP may already have more than @tx->pushed says, and may have
 * sent it: tcp_sendmsg_locked() works off the backlog in between, where the peer's answer is
 * perhaps. So then TCP's own number counts.
 *
 * Context: any, with the socket locked, or on behalf of what was received from it.
 */
bool weft_hot weft_txsock_is_accepted(const struct weft_txsock *tx, u64 pos)
{
	u32 written;

	if (pos <= READ_ONCE(tx->pushed))
		return true;
	written = READ_ONCE(tcp_sk(tx->sk)->write_seq) - tx->base;
	return pos != U64_MAX && (s32)(written - (u32)pos) >= 0;
}
