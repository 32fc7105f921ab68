// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Untrusted DDP segments, through every check of DDP and RDMAP up to the
 * header behind them. Input: segments, each with two bytes of length in front and
 * two that say how much of it lies in the first fragment.
 */
#include "fuzz.h"
#include "proto/atomic.h"
#include "proto/rdmap.h"
#include "proto/stag_rules.h"
#include "proto/term.h"

struct stream {
	struct weft_ddp_rx ddp;
	struct weft_rdmap_rx rdmap;
};

static void check_terminate(enum weft_fault fault, const u8 *head, u32 head_len, u32 ulpdu_len)
{
	u8 *out = malloc(WEFT_TERM_MAX_LEN);
	struct weft_fault_rec rec;
	struct weft_term term;
	u32 len;

	PROMISE(fault < WEFT_FAULT_COUNT && weft_fault_info(fault)->terminate);
	weft_fault_rec_fill(&rec, fault, head, head_len, ulpdu_len);
	len = weft_term_build(&rec, out);
	PROMISE(len <= WEFT_TERM_MAX_LEN);
	PROMISE(!weft_term_parse(out, len, &term));
	PROMISE(term.layer == weft_fault_info(fault)->layer);
	free(out);
}

/* An STag the request may or may not touch; granted means inside. */
static void touch(enum weft_stag_context context, u64 to, u32 len)
{
	const struct weft_stag_view stag = {
		.valid = true,
		.access = 0xf,
		.base = to & ~0xfffULL,
		.length = 0x1800,
	};
	const struct weft_stag_req req = { .context = context, .to = to, .len = len };

	if (!weft_stag_check(&stag, &req))
		PROMISE(!len || (to >= stag.base && to - stag.base + len <= stag.length));
}

static void read_request(const u8 *header)
{
	u8 *again = malloc(WEFT_READ_REQ_LEN);
	struct weft_read_req req;

	weft_read_req_parse(header, &req);
	weft_read_req_build(&req, again);
	PROMISE(!memcmp(again, header, WEFT_READ_REQ_LEN));
	touch(WEFT_STAG_READ, req.src_to, req.length);
	free(again);
}

static void atomic_request(const u8 *header)
{
	struct weft_atomic_req req;
	struct weft_atomic_op op;

	if (weft_atomic_req_parse(header, &req))
		return;
	op = (struct weft_atomic_op){ req.code, req.data, req.mask, req.compare, req.compare_mask };
	if (!req.mask && req.code == WEFT_ATOMIC_CSWAP)
		PROMISE(weft_atomic_apply(&op, req.id) == req.id);
	if (!req.mask && req.code == WEFT_ATOMIC_FADD)
		PROMISE(weft_atomic_apply(&op, req.id) == req.id + req.data);
	touch(WEFT_STAG_READ, req.to, 8);
}

/* The bytes behind the DDP header, of a segment that passed all checks. */
static void message(const struct weft_ddp_hdr *hdr, const u8 *ulpdu)
{
	const struct weft_rdmap_info *info = weft_rdmap_info(weft_rdmap_opcode(hdr->ulp));
	u8 *header = exact(ulpdu + hdr->hdr_len, info->hdr_len);
	struct weft_atomic_resp resp;
	struct weft_term term;

	switch (weft_rdmap_opcode(hdr->ulp)) {
	case WEFT_OP_READ_REQ:
		read_request(header);
		break;
	case WEFT_OP_ATOMIC_REQ:
		atomic_request(header);
		break;
	case WEFT_OP_ATOMIC_RESP:
		weft_atomic_resp_parse(header, &resp);
		break;
	case WEFT_OP_TERMINATE:
		weft_term_parse(ulpdu + hdr->hdr_len, hdr->payload, &term);
		break;
	}
	free(header);
}

static enum weft_fault check(struct stream *s, const u8 *head, u32 len, struct weft_ddp_hdr *hdr)
{
	enum weft_fault fault = weft_ddp_parse(head, len, hdr);

	fault = fault ? fault : weft_rdmap_check(hdr);
	if (!fault && !hdr->tagged)
		fault = weft_ddp_rx_check(&s->ddp, hdr);
	fault = fault ? fault : weft_rdmap_rx_check(&s->rdmap, &s->ddp, hdr);
	if (!fault && !hdr->tagged)
		fault = weft_ddp_rx_check_offset(&s->ddp, hdr, 1 << 20);
	return fault;
}

/* Returns whether the stream goes on. */
static bool segment(struct stream *s, const u8 *ulpdu, u32 len, u32 fragment)
{
	u32 readable = min_t(u32, len, max_t(u32, fragment, WEFT_DDP_UNTAGGED_LEN));
	u8 *head = exact(ulpdu, readable), again[WEFT_DDP_UNTAGGED_LEN];
	struct weft_ddp_hdr hdr;
	enum weft_fault fault = check(s, head, len, &hdr);

	if (fault) {
		say("%s ", weft_fault_info(fault)->name);
		check_terminate(fault, head, readable, len);
		free(head);
		return false;
	}
	PROMISE(hdr.hdr_len + hdr.payload == len);
	say("op=%u t=%u l=%u stag=%x to=%llx qn=%x msn=%x mo=%x len=%u ",
	    weft_rdmap_opcode(hdr.ulp), hdr.tagged, hdr.last, hdr.stag, (unsigned long long)hdr.to,
	    hdr.qn, hdr.msn, hdr.mo, hdr.payload);
	PROMISE(weft_ddp_build(&hdr, again) == hdr.hdr_len);
	PROMISE((again[0] ^ head[0]) % 4 == 0 && !memcmp(again + 1, head + 1, hdr.hdr_len - 1));
	message(&hdr, ulpdu);
	if (hdr.tagged)
		touch(WEFT_STAG_TAGGED, hdr.to, hdr.payload);
	else
		weft_ddp_rx_advance(&s->ddp, &hdr);
	weft_rdmap_rx_advance(&s->rdmap, &hdr);
	free(head);
	return true;
}

int fuzz_one(const u8 *data, size_t size)
{
	struct input in = { data, size };
	struct stream s = {};
	bool alive = true;

	weft_ddp_rx_init(&s.ddp);
	while (alive && in.left) {
		u32 len = take(&in, 2), fragment = take(&in, 2);

		len = min_t(u32, len, in.left);
		alive = segment(&s, in.at, len, fragment);
		in.at += len;
		in.left -= len;
	}
	return 0;
}
