// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Requests for directly connected QPs that come too early: the QP exists, and is not in RTR yet,
 * or does not know yet all that the answer should say. They are bounded, and each has the
 * deadline of a consumer's decision.
 */
#include "cm/direct_held.h"

#include <linux/list.h>

#include "cm/cm.h"
#include "cm/conn.h"
#include "cm/handshake.h"
#include "engine/life/stream.h"

/* Of a device. */
#define HELD_MAX	256U

/**
 * weft_direct_read_request - what a request says
 * @conn: that has its request
 * @out: filled in if the result is WEFT_DIRECT_OK
 *
 * Context: process.
 */
enum weft_direct_reason weft_direct_read_request(struct weft_conn *conn,
						 struct weft_direct_hello *out)
{
	const struct weft_mpa_frame *frame = &conn->hs->peer;

	if (!frame->enhanced || !frame->p2p)
		return WEFT_DIRECT_MALFORMED;
	return weft_direct_parse(frame->pd, frame->pd_len, out);
}

/**
 * weft_direct_queue_request - a request is answered later
 * @conn: that has its request
 * @qpn: the QP that it names
 *
 * Context: process, the lock of weft_directs held. Return: WEFT_DIRECT_OK, or why it cannot
 * wait.
 */
enum weft_direct_reason weft_direct_queue_request(struct weft_conn *conn, u32 qpn)
	__must_hold(&conn->cm->directs.lock)
{
	struct weft_directs *directs = &conn->cm->directs;
	struct weft_stream *stream = weft_stream_find(conn->cm->streams, qpn);

	lockdep_assert_held(&conn->cm->directs.lock);
	if (!stream)
		return WEFT_DIRECT_NO_QP;
	weft_stream_put(stream);
	if (directs->num_held >= HELD_MAX)
		return WEFT_DIRECT_BUSY;
	directs->num_held++;
	list_add_tail(&conn->at_port, &directs->held);
	conn->held = true;
	return WEFT_DIRECT_OK;
}

/**
 * weft_direct_drop_held - a connection waits no longer
 * @conn: that is held, or not
 *
 * Context: process, the lock of weft_directs held.
 */
void weft_direct_drop_held(struct weft_conn *conn) __must_hold(&conn->cm->directs.lock)
{
	lockdep_assert_held(&conn->cm->directs.lock);
	if (!conn->held)
		return;
	list_del_init(&conn->at_port);
	conn->held = false;
	conn->cm->directs.num_held--;
}
