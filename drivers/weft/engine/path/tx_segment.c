// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Messages become segments: cut by MULPDU, with their headers, staged one behind the
 * other (RFC 5041, 4 and 5).
 */
#include "engine/path/tx_segment.h"

#include <linux/string.h>
#include <linux/uio.h>

#include "base/counters.h"
#include "base/trace.h"
#include "engine/ops/msg_stats.h"
#include "engine/path/outgoing.h"
#include "engine/path/tx_batch.h"
#include "engine/path/tx_sched.h"
#include "engine/path/zc_tx.h"
#include "engine/state/fsm.h"
#include "engine/state/stream.h"
#include "proto/hot.h"
#include "ring/sendq.h"

static __always_inline void build_header(const struct weft_tx *tx, const struct weft_msg *msg,
					 bool last, u8 *out)
{
	struct weft_ddp_hdr hdr __uninitialized;
	u32 len;

	weft_outgoing_header(msg, last, &hdr);
	len = weft_ddp_build(&hdr, out);
	if (msg->hdr_len)
		memcpy(out + len, tx->hdr, msg->hdr_len);
}

/* Memory that does not lie in a row, or that is lent. */
static int stage_rows(struct weft_mpa_tx *sock, const struct weft_mem_ref *ref, bool lend)
{
	struct iov_iter iter;
	u32 done, row;

	if (IS_ENABLED(CONFIG_HIGHMEM)) {
		weft_mem_iter(ref, ITER_SOURCE, &iter);
		return weft_mpa_tx_copy(sock, &iter, ref->len);
	}
	for (done = 0; done < ref->len; done += row) {
		const u8 *from = weft_mem_row(ref, done, &row);
		int err = lend ? weft_mpa_tx_add_pages(sock, from, row) :
				 weft_mpa_tx_copy_linear(sock, from, row);

		if (err)
			return err;
	}
	return 0;
}

/* Only what the application itself has registered is lent, the rest copied. */
static __always_inline enum weft_fault stage_piece(void *arg, u32 done,
						   const struct weft_mem_ref *ref)
{
	struct weft_mpa_tx *sock = arg;
	bool lend = unlikely(sock->zerocopy) && weft_mem_is_pinned(ref);
	int err;

	err = ref->flat && !lend ? weft_mpa_tx_copy_linear(sock, ref->flat, ref->len) :
				   stage_rows(sock, ref, lend);
	return err ? WEFT_FAULT_LOCAL_CATASTROPHIC : WEFT_FAULT_NONE;
}

static __always_inline enum weft_fault stage_payload(struct weft_stream *st,
						     const struct weft_msg *msg, u32 len)
{
	if (!len)
		return WEFT_FAULT_NONE;
	if (msg->source != WEFT_SRC_INLINE)
		return weft_outgoing_walk(st, msg, len, stage_piece, &st->tx.sock);
	if (weft_mpa_tx_copy_linear(&st->tx.sock, (const u8 *)msg->swr->sge + msg->done, len))
		return WEFT_FAULT_LOCAL_CATASTROPHIC;
	return WEFT_FAULT_NONE;
}

static __always_inline enum weft_fault stage_segment(struct weft_stream *st, struct weft_msg *msg,
						     bool *last)
{
	struct weft_mpa_tx *sock = &st->tx.sock;
	u8 start[WEFT_MPA_LEN_OCTETS + WEFT_ULPDU_HDR_MAX] __uninitialized;
	enum weft_fault fault;
	u32 payload, len, left;

	len = weft_outgoing_header_len(msg);
	left = msg->length - msg->done;
	payload = weft_ddp_cut(left, weft_mpa_tx_mulpdu(sock, len, left), len, last);
	build_header(&st->tx, msg, *last, start + WEFT_MPA_LEN_OCTETS);
	sock->zerocopy = unlikely(sock->notif) && weft_lend_segment(st, msg);
	if (weft_mpa_tx_begin(sock, start, len, payload))
		return WEFT_FAULT_LOCAL_CATASTROPHIC; /* nothing to cancel */
	fault = stage_payload(st, msg, payload);
	if (fault == WEFT_FAULT_NONE && weft_mpa_tx_end(sock))
		fault = WEFT_FAULT_LOCAL_CATASTROPHIC;
	if (fault != WEFT_FAULT_NONE) {
		weft_mpa_tx_cancel(sock);
		return fault;
	}
	msg->done += payload;
	weft_count_two(st->cfg.counters, WEFT_CTR_TX_SEGS, 1, WEFT_CTR_TX_BYTES, payload);
	return WEFT_FAULT_NONE;
}

/* The last segment of the message in hand is staged. */
static void finish_message(struct weft_stream *st, struct weft_msg *msg)
{
	struct weft_tx *tx = &st->tx;

	weft_tally_sent(st->cfg.counters, msg->opcode);
	trace_weft_message_sent(st->cfg.ifindex, st->qpn, msg->opcode, msg->length, msg->msn);
	if (msg->answer) {
		weft_readq_owed_pop(&st->readq);
		tx->burst++;
	} else {
		tx->burst = 0;
	}
	if (msg->opcode == WEFT_OP_TERMINATE) {
		tx->term_staged = true;
		weft_tally_term_sent(st, st->fault.fault);
	}
	if (++tx->cur < tx->msgs)
		return;
	if (msg->swr)
		WRITE_ONCE(msg->swr->tx_end, tx->sock.pos); /* rx looks at it */
	weft_pick_drop(tx);
}

/* RFC 5040, 4.8: the Read Request in a Terminate shows how far we got. */
static void answer_failed(struct weft_stream *st, const struct weft_msg *msg, enum weft_fault fault)
{
	struct weft_readq_owed *owed = weft_readq_owed_head(&st->readq);
	struct weft_read_req req = owed->read;

	if (!owed->atomic) {
		req.sink_to += msg->done;
		req.src_to += msg->done;
		req.length -= msg->done;
		weft_read_req_build(&req, owed->headers + WEFT_DDP_UNTAGGED_LEN);
	}
	weft_stream_fault(st, fault, owed->headers, owed->head_len, owed->segment_len);
}

static void stage_failed(struct weft_stream *st, const struct weft_msg *msg, enum weft_fault fault)
{
	if (msg->swr)
		weft_pick_fail(st, msg->swr, fault);
	else if (msg->answer)
		answer_failed(st, msg, fault);
	else
		weft_stream_fault(st, fault, NULL, 0, 0);
	weft_pick_drop(&st->tx);
}

/**
 * weft_segment_next - stage one segment of the next message, or a row of them
 * @st: stream, tx claim held, with room in its batch
 *
 * A segment that cannot be made fails its request, or the stream; one for which there is no
 * memory stays in hand. Context: tx claim.
 */
enum weft_segment_result weft_hot weft_segment_next(struct weft_stream *st)
{
	enum weft_pick_result picked = weft_pick(st);
	struct weft_msg *msg;
	enum weft_fault fault;
	bool last;

	if (picked != WEFT_PICK_MESSAGE)
		return picked == WEFT_PICK_LATER ? WEFT_SEGMENT_LATER : WEFT_SEGMENT_NONE;
	msg = &st->tx.msg[st->tx.cur];
	if (weft_bulk_is_worth(&st->tx.sock, msg) && weft_bulk_stage(st, msg))
		return WEFT_SEGMENT_STAGED;
	fault = stage_segment(st, msg, &last);
	if (fault != WEFT_FAULT_NONE) {
		if (st->tx.sock.no_memory)
			return WEFT_SEGMENT_LATER;
		stage_failed(st, msg, fault);
		return WEFT_SEGMENT_NONE;
	}
	if (last)
		finish_message(st, msg);
	return WEFT_SEGMENT_STAGED;
}
