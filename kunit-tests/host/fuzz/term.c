// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Untrusted Terminates, and ours about an untrusted segment. Input: one byte
 * for the fault, one for how much of the segment can be read, then either's bytes.
 */
#include "fuzz.h"
#include "proto/term.h"

static void parse(const u8 *payload, u32 len)
{
	enum weft_fault verdict;
	struct weft_term term;

	if (weft_term_parse(payload, len, &term)) {
		PROMISE(len < WEFT_TERM_CTRL_LEN);
		return;
	}
	PROMISE(term.layer < 16 && term.etype < 16 && term.opcode < 16);
	PROMISE(!term.has_ddp || len >= WEFT_TERM_CTRL_LEN + 2 + WEFT_DDP_TAGGED_LEN);
	verdict = weft_fault_from_terminate(term.layer, term.etype, term.ecode);
	PROMISE(verdict < WEFT_FAULT_COUNT);
	PROMISE(!weft_fault_info(verdict)->terminate);
	PROMISE(weft_fault_info(verdict)->status);
}

static void build(enum weft_fault fault, const u8 *ulpdu, u32 head_len, u32 ulpdu_len)
{
	u8 *out = malloc(WEFT_TERM_MAX_LEN);
	struct weft_fault_rec rec;
	u32 len;

	weft_fault_rec_fill(&rec, fault, ulpdu, head_len, ulpdu_len);
	PROMISE(rec.ddp_len + rec.rdmap_len <= head_len);
	len = weft_term_build(&rec, out);
	PROMISE(len <= WEFT_TERM_MAX_LEN);
	PROMISE(!rec.ddp_len || !memcmp(out + 6, ulpdu, rec.ddp_len + rec.rdmap_len));
	parse(out, len);
	free(out);
}

static void say_term(const u8 *payload, u32 len)
{
	struct weft_term t;

	if (weft_term_parse(payload, len, &t)) {
		say("refused");
		return;
	}
	say("%u/%u/%02x", t.layer, t.etype, t.ecode);
	if (t.has_ddp && t.tagged)
		say(" op=%u stag=%x to=%llx", t.opcode, t.stag, (unsigned long long)t.to);
	else if (t.has_ddp)
		say(" op=%u inv=%x qn=%x msn=%x", t.opcode, t.stag, t.qn, t.msn);
}

int fuzz_one(const u8 *data, size_t size)
{
	struct input in = { data, size };
	enum weft_fault fault = take(&in, 1) % WEFT_FAULT_COUNT;
	u32 readable = take(&in, 1);
	u32 head_len = min_t(u32, readable, in.left);
	u8 *payload = exact(in.at, in.left);
	u8 *head = exact(in.at, head_len);

	say_term(payload, in.left);
	parse(payload, in.left);
	build(fault, head, head_len, in.left);
	free(head);
	free(payload);
	return 0;
}
