// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Lending. TCP sends a long message from the application's pages, and the request keeps its
 * place in the send queue until nobody reads them any more, which is when the peer has
 * acknowledged them. So who is told that it may use its memory again may. The pages are
 * pinned with their region, and TCP holds references of its own: a region that goes away
 * meanwhile takes no memory from under TCP.
 *
 * It pays where a segment is several pages, since a buffer of TCP has few fragments, and
 * where the device takes fragments. On one host the kernel copies at the latest when a
 * buffer gets to who receives it, which TCP's sender learns with the buffer: after a few such
 * messages the stream lends no more (Documentation/decisions/).
 */
#include "engine/path/zc_tx.h"

#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "base/counters.h"
#include "engine/ops/complete.h"
#include "engine/state/fsm.h"
#include "engine/state/stream.h"
#include "net/tcp_info.h"
#include "net/tcp_socket.h"
#include "net/zerocopy.h"
#include "ring/sendq.h"

#define MULPDU_LEAST 4096U /* of a segment; with less a buffer is full too early */
#define MULPDU_MOST (15U * 4096) /* and with more an FPDU does not get into one */
#define COPIED_MOST 8 /* messages in a row until the stream gives up */
#define TAIL 3U /* segments at the end of a message: see weft_lend_segment() */
#define PATIENCE (HZ / 4) /* for a peer that acknowledges nothing */
#define FAREWELL HZ /* for one that does */
#define DEVICES (5 * HZ) /* for drivers, once TCP has given up */

/**
 * struct loan - the memory of one work request
 * @loan: TCP's side of it
 * @st: a reference; the module has one, too
 * @index: of the request in the send queue
 */
struct loan {
	struct weft_zc_notif loan;
	struct weft_stream *st;
	u32 index;
};

/* A hint: two loans that come back at once may count as one. */
static void learn(struct weft_stream *st, bool copied)
{
	u8 before = READ_ONCE(st->lend.copied);

	if (copied)
		weft_count(st->cfg.counters, WEFT_CTR_TX_LENT_COPIED);
	if (!copied && before)
		WRITE_ONCE(st->lend.copied, 0);
	else if (copied && before < COPIED_MOST)
		WRITE_ONCE(st->lend.copied, before + 1);
}

/*
 * Nobody reads the memory any more. The way down waits for @out, so it goes last. Any
 * context up to softirq, perhaps with the socket locked.
 */
static void returned(struct weft_zc_notif *base)
{
	struct loan *loan = container_of(base, struct loan, loan);
	struct weft_stream *st = loan->st;

	if (weft_retire_returned(st, loan->index)) {
		learn(st, READ_ONCE(base->copied));
		if (READ_ONCE(st->state) == WEFT_QP_CLOSING)
			st->hooks->want_tx(st);
	}
	kfree(loan);
	if (atomic_dec_and_test(&st->lend.out))
		wake_up_var(&st->lend.out);
	weft_stream_put(st);
	module_put(THIS_MODULE);
}

static bool pays(const struct weft_stream *st)
{
	const struct weft_mpa_tx *sock = &st->tx.sock;

	return sock->mulpdu >= MULPDU_LEAST && sock->mulpdu <= MULPDU_MOST &&
	       READ_ONCE(st->lend.copied) < COPIED_MOST && weft_zc_route_ok(sock->sk);
}

/*
 * An application that changes memory while it is sent has itself to blame for what arrives,
 * but its connection must not break for it: a CRC is of a copy. Completions are told as the
 * loan comes back, also with the socket locked, which handlers of kernel consumers may
 * not meet.
 */
static bool wanted(const struct weft_stream *st, const struct weft_msg *msg)
{
	const struct weft_mpa_tx *sock = &st->tx.sock;
	u8 mode = READ_ONCE(st->index->zerocopy);

	if (msg->source != WEFT_SRC_SGE || sock->crc || sock->markers || st->cfg.kernel ||
	    IS_ENABLED(CONFIG_HIGHMEM))
		return false;
	return mode == WEFT_LEND_ALWAYS || (mode && pays(st));
}

/**
 * weft_lend_begin - a request is about to be sent: shall its memory be lent?
 * @st: stream, tx claim held
 * @swr: the request
 * @msg: its first message, planned, of WEFT_LEND_FROM octets or more
 *
 * Where memory for the loan is short, the message is copied. Context: process.
 */
void weft_lend_begin(struct weft_stream *st, struct weft_swr *swr, const struct weft_msg *msg)
{
	struct loan *loan;

	if (!wanted(st, msg))
		return;
	loan = kmalloc(sizeof(*loan), GFP_NOWAIT | __GFP_NOWARN);
	if (!loan)
		return;
	__module_get(THIS_MODULE);
	kref_get(&st->ref);
	loan->st = st;
	loan->index = swr->index;
	weft_zc_notif_init(&loan->loan, returned);
	atomic_inc(&st->lend.out);
	swr->lent = true;
	weft_mpa_tx_set_notif(&st->tx.sock, &loan->loan);
}

/**
 * weft_lend_segment - shall the next segment of a message be lent?
 * @st: stream that has a loan, tx claim held
 * @msg: the message in hand
 *
 * A peer may leave a segment or two unacknowledged for a while (RFC 1122, 4.2.3.2), and the
 * request would wait for that. So the last ones are copied, if nothing is behind them:
 * they make the peer acknowledge what was lent.
 *
 * Context: process.
 */
bool weft_lend_segment(const struct weft_stream *st, const struct weft_msg *msg)
{
	if (msg->source != WEFT_SRC_SGE)
		return false;
	return msg->length - msg->done > TAIL * st->tx.sock.mulpdu ||
	       weft_sendq_pending(st->cfg.sq);
}

static bool none_out(const struct weft_stream *st)
{
	return !atomic_read(&st->lend.out);
}

/**
 * weft_lend_settle - let the peer take what is lent, as long as it does
 * @st: stream that sends nothing any more; its socket is open
 *
 * Context: the stream's worker. Return: false if there are loans, which a reset ends.
 */
bool weft_lend_settle(struct weft_stream *st)
{
	unsigned long end = jiffies + FAREWELL;
	u64 before;

	do {
		before = weft_tcp_bytes_acked(st->sock);
		if (wait_var_event_timeout(&st->lend.out, none_out(st), PATIENCE))
			return true;
	} while (weft_tcp_bytes_acked(st->sock) != before && time_before(jiffies, end));
	return false;
}

/**
 * weft_lend_end - wait for what is lent
 * @st: stream whose socket is gone
 *
 * A buffer may still be in a device. One that does not come back is left behind: its pages
 * stay, and the application is told that they are its own. Context: the stream's worker.
 */
void weft_lend_end(struct weft_stream *st)
{
	if (!wait_var_event_timeout(&st->lend.out, none_out(st), DEVICES))
		weft_retire_abandon(st);
}
