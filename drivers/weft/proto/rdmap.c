// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * RDMAP messages: what holds for each opcode, which segment may come when, and
 * the headers behind DDP's. RFC 5040, 4, 5 and 7.2; RFC 7306, 4 to 6.
 */
#include "proto/rdmap.h"

const struct weft_rdmap_info weft_rdmap_messages[WEFT_OP_COUNT] = {
	[WEFT_OP_WRITE] = {
		.name = "write", .known = true, .tagged = true, .payload = true,
	},
	[WEFT_OP_READ_REQ] = {
		.name = "read-request", .known = true, .qn = WEFT_QN_REQUEST,
		.hdr_len = WEFT_READ_REQ_LEN,
	},
	[WEFT_OP_READ_RESP] = {
		.name = "read-response", .known = true, .tagged = true, .payload = true,
	},
	[WEFT_OP_SEND] = {
		.name = "send", .known = true, .qn = WEFT_QN_SEND, .payload = true,
		.consumes_rq = true,
	},
	[WEFT_OP_SEND_INV] = {
		.name = "send-inv", .known = true, .qn = WEFT_QN_SEND, .payload = true,
		.consumes_rq = true, .invalidates = true,
	},
	[WEFT_OP_SEND_SE] = {
		.name = "send-se", .known = true, .qn = WEFT_QN_SEND, .payload = true,
		.consumes_rq = true, .solicited = true,
	},
	[WEFT_OP_SEND_SE_INV] = {
		.name = "send-se-inv", .known = true, .qn = WEFT_QN_SEND, .payload = true,
		.consumes_rq = true, .invalidates = true, .solicited = true,
	},
	/* the control word; copies of headers behind it count as payload */
	[WEFT_OP_TERMINATE] = {
		.name = "terminate", .known = true, .qn = WEFT_QN_TERMINATE,
		.hdr_len = WEFT_TERM_CTRL_LEN, .payload = true,
	},
	[WEFT_OP_IMM] = {
		.name = "imm", .known = true, .qn = WEFT_QN_SEND, .hdr_len = WEFT_IMM_LEN,
		.consumes_rq = true,
	},
	[WEFT_OP_IMM_SE] = {
		.name = "imm-se", .known = true, .qn = WEFT_QN_SEND, .hdr_len = WEFT_IMM_LEN,
		.consumes_rq = true, .solicited = true,
	},
	[WEFT_OP_ATOMIC_REQ] = {
		.name = "atomic-request", .known = true, .qn = WEFT_QN_REQUEST,
		.hdr_len = WEFT_ATOMIC_REQ_LEN,
	},
	[WEFT_OP_ATOMIC_RESP] = {
		.name = "atomic-response", .known = true, .qn = WEFT_QN_ATOMIC,
		.hdr_len = WEFT_ATOMIC_RESP_LEN,
	},
	/* Unassigned, but where both ends have agreed: Documentation/protocol.md. */
	[WEFT_OP_SEND_IMM] = {
		.name = "send-imm", .known = true, .qn = WEFT_QN_SEND, .payload = true,
		.consumes_rq = true, .immediate = true,
	},
	[WEFT_OP_SEND_SE_IMM] = {
		.name = "send-se-imm", .known = true, .qn = WEFT_QN_SEND, .payload = true,
		.consumes_rq = true, .immediate = true, .solicited = true,
	},
	[14] = { .name = "unassigned" },
	[15] = { .name = "unassigned" },
};

/**
 * weft_read_req_build - write a Read Request header (RFC 5040, 4.4)
 * @req: host order
 * @out: WEFT_READ_REQ_LEN bytes
 */
void weft_read_req_build(const struct weft_read_req *req, u8 *out)
{
	put_unaligned_be32(req->sink_stag, out);
	put_unaligned_be64(req->sink_to, out + 4);
	put_unaligned_be32(req->length, out + 12);
	put_unaligned_be32(req->src_stag, out + 16);
	put_unaligned_be64(req->src_to, out + 20);
}

/**
 * weft_read_req_parse - take a Read Request header apart
 * @in: WEFT_READ_REQ_LEN bytes
 * @out: host order
 */
void weft_read_req_parse(const u8 *in, struct weft_read_req *out)
{
	out->sink_stag = get_unaligned_be32(in);
	out->sink_to = get_unaligned_be64(in + 4);
	out->length = get_unaligned_be32(in + 12);
	out->src_stag = get_unaligned_be32(in + 16);
	out->src_to = get_unaligned_be64(in + 20);
}

#define ATOMIC_CODE_MASK	0x0f	/* the 28 bits above are reserved */

/**
 * weft_atomic_req_build - write an Atomic Request header (RFC 7306, 5.2.1)
 * @req: host order; a FetchAdd compares nothing, so its comparison is not looked at
 * @out: WEFT_ATOMIC_REQ_LEN bytes
 */
void weft_atomic_req_build(const struct weft_atomic_req *req, u8 *out)
{
	bool fetch_add = req->code == WEFT_ATOMIC_FADD;

	put_unaligned_be32(req->code & ATOMIC_CODE_MASK, out);
	put_unaligned_be32(req->id, out + 4);
	put_unaligned_be32(req->stag, out + 8);
	put_unaligned_be64(req->to, out + 12);
	put_unaligned_be64(req->data, out + 20);
	put_unaligned_be64(req->mask, out + 28);
	put_unaligned_be64(fetch_add ? 0 : req->compare, out + 36);
	put_unaligned_be64(fetch_add ? ~(u64)0 : req->compare_mask, out + 44);
}

/**
 * weft_atomic_req_parse - take an Atomic Request header apart
 * @in: WEFT_ATOMIC_REQ_LEN bytes
 * @out: host order, filled in any case
 *
 * Return: WEFT_FAULT_RDMAP_OPCODE for an operation that RFC 7306 does not have.
 */
enum weft_fault weft_atomic_req_parse(const u8 *in, struct weft_atomic_req *out)
{
	out->code = get_unaligned_be32(in) & ATOMIC_CODE_MASK;
	out->id = get_unaligned_be32(in + 4);
	out->stag = get_unaligned_be32(in + 8);
	out->to = get_unaligned_be64(in + 12);
	out->data = get_unaligned_be64(in + 20);
	out->mask = get_unaligned_be64(in + 28);
	out->compare = get_unaligned_be64(in + 36);
	out->compare_mask = get_unaligned_be64(in + 44);
	if (out->code != WEFT_ATOMIC_FADD && out->code != WEFT_ATOMIC_CSWAP)
		return WEFT_FAULT_RDMAP_OPCODE;
	return WEFT_FAULT_NONE;
}

/**
 * weft_atomic_resp_build - write an Atomic Response header (RFC 7306, 5.2.2)
 * @resp: host order
 * @out: WEFT_ATOMIC_RESP_LEN bytes
 */
void weft_atomic_resp_build(const struct weft_atomic_resp *resp, u8 *out)
{
	put_unaligned_be32(resp->id, out);
	put_unaligned_be64(resp->original, out + 4);
}

/**
 * weft_atomic_resp_parse - take an Atomic Response header apart
 * @in: WEFT_ATOMIC_RESP_LEN bytes
 * @out: host order
 */
void weft_atomic_resp_parse(const u8 *in, struct weft_atomic_resp *out)
{
	out->id = get_unaligned_be32(in);
	out->original = get_unaligned_be64(in + 4);
}
