// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Zero-copy transmit. TCP sends a long message from the application's pages, and the request
 * keeps its place in the send queue until they are not read any more, which is when the peer has
 * acknowledged them. So a process that is told that it may use its memory again may. The pages
 * are pinned with their region, and TCP holds references of its own: a region that goes away
 * meanwhile takes no memory from under TCP.
 *
 * It pays where a segment is several pages, since a buffer of TCP has few fragments, and where
 * the device takes fragments. On one host the kernel copies at the latest when a buffer gets to
 * the process that receives it, which TCP's sender learns with the buffer: after a few such
 * messages the stream copies by itself (Documentation/decisions/).
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
#define TAIL 3U /* segments at the end of a message: see weft_zc_tx_segment() */
#define ACK_TIMEOUT (HZ / 4) /* for a peer that acknowledges nothing */
#define CLOSE_TIMEOUT HZ /* for one that does */
#define DEVICE_TIMEOUT (5 * HZ) /* for drivers, once TCP has given up */

/**
 * struct zc_request - the memory of one work request
 * @notif: TCP's side of it
 * @st: a reference; the module has one, too
 * @index: of the request in the send queue
 */
struct zc_request {
	struct weft_zc_notif notif;
	struct weft_stream *st;
	u32 index;
};

/* A hint: two requests that are through at once may count as one. */
static void learn(struct weft_stream *st, bool copied)
{
	u8 before = READ_ONCE(st->zc_tx.copied);

	if (copied)
		weft_count(st->cfg.counters, WEFT_CTR_TX_LENT_COPIED);
	if (!copied && before)
		WRITE_ONCE(st->zc_tx.copied, 0);
	else if (copied && before < COPIED_MOST)
		WRITE_ONCE(st->zc_tx.copied, before + 1);
}

/*
 * The memory is not read any more. Teardown waits for @pending, so it goes last. Any context up
 * to softirq, perhaps with the socket locked.
 */
static void complete_request(struct weft_zc_notif *notif)
{
	struct zc_request *req = container_of(notif, struct zc_request, notif);
	struct weft_stream *st = req->st;

	if (weft_retire_returned(st, req->index)) {
		learn(st, READ_ONCE(notif->copied));
		if (READ_ONCE(st->state) == WEFT_QP_CLOSING)
			st->hooks->want_tx(st);
	}
	kfree(req);
	if (atomic_dec_and_test(&st->zc_tx.pending))
		wake_up_var(&st->zc_tx.pending);
	weft_stream_put(st);
	module_put(THIS_MODULE);
}

/*
 * An application that changes memory while it is sent has itself to blame for what arrives,
 * but its connection must not break for it: a CRC is of a copy. Completions are told as the
 * memory is free again, also with the socket locked, which handlers of kernel consumers may
 * not meet.
 */
static bool wanted(const struct weft_stream *st, const struct weft_msg *msg)
{
	const struct weft_mpa_tx *sock = &st->tx.sock;
	u8 mode = READ_ONCE(st->index->zerocopy);

	if (msg->source != WEFT_SRC_SGE || sock->crc || sock->markers || st->cfg.kernel)
		return false;
	if (mode != WEFT_ZC_TX_AUTO)
		return mode == WEFT_ZC_TX_ALWAYS;
	return sock->mulpdu >= MULPDU_LEAST && sock->mulpdu <= MULPDU_MOST &&
	       READ_ONCE(st->zc_tx.copied) < COPIED_MOST && weft_zc_route_ok(sock->sk);
}

/**
 * weft_zc_tx_begin - a request is about to be sent: does TCP send from its memory?
 * @st: stream, tx claim held
 * @swr: the request
 * @msg: its first message, planned, of WEFT_ZC_TX_MIN bytes or more
 *
 * Where memory is short, the message is copied. Context: as tx runs.
 */
void weft_zc_tx_begin(struct weft_stream *st, struct weft_swr *swr, const struct weft_msg *msg)
{
	struct zc_request *req;

	if (!wanted(st, msg))
		return;
	req = kmalloc(sizeof(*req), GFP_NOWAIT | __GFP_NOWARN);
	if (!req)
		return;
	__module_get(THIS_MODULE);
	kref_get(&st->ref);
	req->st = st;
	req->index = swr->index;
	weft_zc_notif_init(&req->notif, complete_request);
	atomic_inc(&st->zc_tx.pending);
	swr->zc_pending = true;
	weft_mpa_tx_set_notif(&st->tx.sock, &req->notif);
}

/**
 * weft_zc_tx_segment - does the next segment of a message go by zero-copy?
 * @st: stream that sends one by zero-copy, tx claim held
 * @msg: the message in hand
 *
 * A peer may leave a segment or two unacknowledged for a while (RFC 1122, 4.2.3.2), and the
 * request would wait for that. So the last ones are copied, if nothing is behind them:
 * they make the peer acknowledge the others.
 *
 * Context: process.
 */
bool weft_zc_tx_segment(const struct weft_stream *st, const struct weft_msg *msg)
{
	if (msg->source != WEFT_SRC_SGE)
		return false;
	return msg->length - msg->done > TAIL * st->tx.sock.mulpdu ||
	       weft_sendq_pending(st->cfg.sq);
}

static bool none_pending(const struct weft_stream *st)
{
	return !atomic_read(&st->zc_tx.pending);
}

/**
 * weft_zc_tx_settle - let the peer acknowledge what is pending, as long as it does
 * @st: stream that sends nothing any more; its socket is open
 *
 * Context: the stream's worker. Return: false if some is pending, which a reset ends.
 */
bool weft_zc_tx_settle(struct weft_stream *st)
{
	unsigned long end = jiffies + CLOSE_TIMEOUT;
	u64 before;

	do {
		before = weft_tcp_bytes_acked(st->sock);
		if (wait_var_event_timeout(&st->zc_tx.pending, none_pending(st), ACK_TIMEOUT))
			return true;
	} while (weft_tcp_bytes_acked(st->sock) != before && time_before(jiffies, end));
	return false;
}

/**
 * weft_zc_tx_end - wait for what is pending
 * @st: stream whose socket is gone
 *
 * A buffer may still be in a device. One that does not come back is left behind: its pages
 * stay, and the application is told that they are its own. Context: the stream's worker.
 */
void weft_zc_tx_end(struct weft_stream *st)
{
	if (!wait_var_event_timeout(&st->zc_tx.pending, none_pending(st), DEVICE_TIMEOUT))
		weft_retire_abandon(st);
}
