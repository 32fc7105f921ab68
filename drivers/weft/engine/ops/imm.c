// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Immediate Data and its solicited form, both roles. The verbs immediate of 32
 * bits stands in the first half of the eight octets. RFC 7306, 6.
 */
#include "engine/ops/imm.h"

#include "engine/ops/complete.h"
#include "engine/state/stream.h"
#include "ring/sendq.h"

void weft_imm_message(struct weft_stream *st, struct weft_swr *swr, struct weft_msg *msg)
{
	bool solicited = swr->wqe.flags & WEFT_WRF_SOLICITED;

	weft_msg_untagged(&st->tx.ddp, msg, solicited ? WEFT_OP_IMM_SE : WEFT_OP_IMM);
	swr->msn = msg->msn;
	msg->hdr_len = WEFT_IMM_LEN;
	memset(st->tx.hdr, 0, WEFT_IMM_LEN);
	memcpy(st->tx.hdr, &swr->wqe.imm_or_inv, sizeof(swr->wqe.imm_or_inv));
}

/*
 * Consumes the receive that weft_send_begin() took; nothing is placed. Its length is that of
 * the Write right in front of it (RFC 7306, 6). Responses do not come between the two: they
 * belong to the other direction, and the peer's RNIC sends them when they are ready.
 */
enum weft_fault weft_imm_end(struct weft_stream *st, struct weft_rx_seg *seg)
{
	const struct weft_rdmap_info *info = weft_rdmap_info(weft_rdmap_opcode(seg->ddp.ulp));
	struct weft_cqe cqe = {
		.wr_id = st->rx.rwr.wr_id,
		.qp_num = st->qpn,
		.opcode = WEFT_WC_RECV_IMM,
		.byte_len = st->rx.written,
		.flags = WEFT_WCF_IMM | (info->solicited ? WEFT_WCF_SOLICITED : 0),
	};

	memcpy(&cqe.imm_or_inv, seg->head, sizeof(cqe.imm_or_inv));
	st->rx.written = 0;
	st->rx.rwr_held = false;
	weft_retire_receive(st, &cqe, seg->batch);
	return WEFT_FAULT_NONE;
}
