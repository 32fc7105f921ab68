// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The peer of the stream under test. What it sees must be an iWARP stream, whatever it did
 * itself; what it sends is right where the input does not say otherwise.
 */
#include "stream_host.h"

#include "proto/rdmap.h"

/* --- what it sees; on its own, without the code under test --- */

void peer_connect(struct world *w)
{
	struct peer *p = &w->peer;
	u32 qn;

	say("|");
	p->len = 0;
	memset((u8 *)p + offsetof(struct peer, len), 0, sizeof(*p) - offsetof(struct peer, len));
	for (qn = 0; qn < 4; qn++) {
		p->msn[qn] = 1;
		p->seen_msn[qn] = 1;
	}
}

static const u8 fixed_len[14] = { [1] = 28, [8] = 8, [9] = 8, [10] = 52, [11] = 12 };
static const u8 queue_of[14] = { [1] = 1, [7] = 2, [10] = 1, [11] = 3 };

static void note_request(struct peer *p, const u8 *header, bool atomic, u32 msn)
{
	struct awaited *a = &p->awaited[p->asked++ % AWAITED_MAX];

	PROMISE(p->asked - p->answered <= AWAITED_MAX);
	*a = (struct awaited){ .atomic = atomic, .msn = msn };
	if (atomic) {
		a->id = get_unaligned_be32(header + 4);
		return;
	}
	a->stag = get_unaligned_be32(header);
	a->to = get_unaligned_be64(header + 4);
	a->length = get_unaligned_be32(header + 12);
}

static void see_untagged(struct peer *p, const u8 *ulpdu, u32 len, u8 op, bool last)
{
	u32 qn, msn, mo;

	PROMISE(len >= 18);
	qn = get_unaligned_be32(ulpdu + 6);
	msn = get_unaligned_be32(ulpdu + 10);
	mo = get_unaligned_be32(ulpdu + 14);
	PROMISE(qn == queue_of[op] && msn == p->seen_msn[qn] && mo == p->seen_mo[qn]);
	PROMISE(!fixed_len[op] || (last && len == 18U + fixed_len[op]));
	PROMISE(last || len > 18);
	p->seen_mo[qn] = last ? 0 : mo + len - 18;
	p->seen_msn[qn] += last;
	if (op == 1 || op == 10)
		note_request(p, ulpdu + 18, op == 10, msn);
	if (op == 7) {
		PROMISE(last && len >= 22);
		p->terminated = true;
	}
}

/* Where the response to a request of the peer goes: from it the request is known. */
#define SINK	0xcafe0001U
#define SINK_AT(n) ((u64)(n) << 32)

static void see_tagged(struct peer *p, const u8 *ulpdu, u32 len, u8 op, bool last)
{
	u32 stag = get_unaligned_be32(ulpdu + 2);
	u64 to = get_unaligned_be64(ulpdu + 6);

	PROMISE(last || len > 14);
	/* In the order in which they were asked for, as long as the peer corrupted no request. */
	if (op == 2 && !p->corrupted && stag == SINK) {
		PROMISE(to >> 32 >= p->reads_answered);
		if (last)
			p->reads_answered = (to >> 32) + 1;
	}
	if (p->tagged_open)
		PROMISE(op == p->tagged_op && stag == p->tagged_stag && to == p->tagged_to);
	p->tagged_open = !last;
	p->tagged_op = op;
	p->tagged_stag = stag;
	p->tagged_to = to + len - 14;
}

static void see(struct world *w, const u8 *ulpdu, u32 len)
{
	struct peer *p = &w->peer;
	bool tagged, last;
	u8 op;

	PROMISE(len >= 14);
	tagged = ulpdu[0] & 0x80;
	last = ulpdu[0] & 0x40;
	op = ulpdu[1] & 0x0f;
	PROMISE((ulpdu[0] & 0x3f) == 1 && (ulpdu[1] & 0xf0) == 0x40);
	PROMISE(op < 14 && (op < 12 || w->choice.direct));
	PROMISE(tagged == (op == 0 || op == 2));
	PROMISE(!p->terminated);
	PROMISE(p->first || w->choice.initiator || op == 7);
	if (tagged)
		see_tagged(p, ulpdu, len, op, last);
	else
		see_untagged(p, ulpdu, len, op, last);
	say_bytes(ulpdu, len);
	say(" ");
}

/* Takes one FPDU off. Return: its bytes, 0 if it is not all there. */
static u32 see_fpdu(struct world *w, const u8 *at, u32 left, u32 pos)
{
	static u8 content[70000];
	u32 i = 0, got = 0, body = 2, start = pos, crc = WEFT_CRC_SEED;

	while (got < body + (got < 2 ? 0 : 4)) {
		bool marker = w->choice.markers_tx && (pos + i) % 512 == 0;
		u32 n = marker ? 4 : 1;

		if (left < i + n)
			return 0;
		if (marker)
			PROMISE(get_unaligned_be32(at + i) == (got ? pos + i - start : 0));
		if (marker && !got)
			start = pos + i + 4;
		if (marker || got < body)
			crc = crc32c(crc, at + i, n);
		if (!marker)
			content[got++] = at[i];
		i += n;
		if (got == 2 && !marker)
			body = (2 + get_unaligned_be16(content) + 3) & ~3U;
	}
	if (w->choice.crc)
		PROMISE(get_unaligned_le32(content + body) == (u32)~crc);
	for (got = 2 + get_unaligned_be16(content); got < body; got++)
		PROMISE(!content[got]);
	see(w, content + 2, get_unaligned_be16(content));
	return i;
}

void peer_look(struct world *w)
{
	struct peer *p = &w->peer;
	u32 at = 0, n;

	while ((n = see_fpdu(w, p->out + at, p->len - at, p->pos + at)) != 0)
		at += n;
	p->len -= at;
	p->pos += at;
	memmove(p->out, p->out + at, p->len);
}

/* --- what it sends --- */

struct segment {
	u8 op;
	bool last;
	u32 len;	/* so far */
	u8 *bytes;
};

static void put(struct segment *s, u64 value, u32 bytes)
{
	while (bytes--)
		s->bytes[s->len++] = value >> 8 * bytes;
}

static void put_payload(struct segment *s, u32 len)
{
	memset(s->bytes + s->len, 0xd0 | s->op, len);
	s->len += len;
}

static void put_control(struct segment *s, bool tagged, u32 ulp_word)
{
	put(s, 1 | (tagged ? 0x80 : 0) | (s->last ? 0x40 : 0), 1);
	put(s, 0x40 | s->op, 1);
	put(s, ulp_word, 4);
}

static void put_untagged(struct peer *p, struct segment *s, u32 ulp_word, u32 payload)
{
	u32 qn = s->op < ARRAY_SIZE(queue_of) ? queue_of[s->op] : 0;

	put_control(s, false, ulp_word);
	put(s, qn, 4);
	put(s, p->msn[qn], 4);
	put(s, p->mo[qn], 4);
	p->mo[qn] = s->last ? 0 : p->mo[qn] + payload;
	p->msn[qn] += s->last;
}

static void make_send(struct world *w, struct segment *s)
{
	u32 word = 0, len = take(&w->in, 1) * 8;

	if (s->op == WEFT_OP_SEND_INV || s->op == WEFT_OP_SEND_SE_INV)
		word = region_stag(w, take(&w->in, 1));
	put_untagged(&w->peer, s, word, len);
	put_payload(s, len);
}

static void make_write(struct world *w, struct segment *s)
{
	u32 stag = region_stag(w, take(&w->in, 1));
	u64 to = IOVA + (s16)take(&w->in, 2);
	u32 len = take(&w->in, 1) * 16;

	put_control(s, true, stag);
	put(s, to, 8);
	put_payload(s, len);
}

static void make_read_request(struct world *w, struct segment *s)
{
	u32 stag = region_stag(w, take(&w->in, 1));
	u64 to = IOVA + (s16)take(&w->in, 2);

	put_untagged(&w->peer, s, 0, 28);
	put(s, SINK, 4);
	put(s, SINK_AT(w->peer.reads++), 8);
	put(s, take(&w->in, 2), 4);
	put(s, stag, 4);
	put(s, to, 8);
}

static struct awaited *oldest(struct peer *p, bool atomic)
{
	struct awaited *a = &p->awaited[p->answered % AWAITED_MAX];

	return p->answered != p->asked && a->atomic == atomic ? a : NULL;
}

/* As it was asked for, as much as the input says. */
static void make_read_response(struct world *w, struct segment *s)
{
	struct awaited *a = oldest(&w->peer, false), none = { .stag = 0xcafe0002 };
	u32 want = take(&w->in, 2), len;

	a = a ?: &none;
	len = min3(want, a->length - a->done, 4000U);
	s->last = a->done + len == a->length;
	put_control(s, true, a->stag);
	put(s, a->to + a->done, 8);
	put_payload(s, len);
	a->done += len;
	if (s->last && a != &none)
		w->peer.answered++;
}

static void make_atomic_request(struct world *w, struct segment *s)
{
	u32 code = take(&w->in, 1), stag = region_stag(w, take(&w->in, 1));
	u64 to = IOVA + (s16)take(&w->in, 2);

	put_untagged(&w->peer, s, 0, 52);
	put(s, code, 4);
	put(s, w->peer.msn[1], 4);
	put(s, stag, 4);
	put(s, to, 8);
	put(s, take(&w->in, 1), 8);
	put(s, 0, 8);
	put(s, 0x5a5a5a5a5a5a5a5aULL, 8);
	put(s, ~0ULL, 8);
}

static void make_atomic_response(struct world *w, struct segment *s)
{
	struct awaited *a = oldest(&w->peer, true);

	put_untagged(&w->peer, s, 0, 12);
	put(s, a ? a->id : 7, 4);
	put(s, 0x1122334455667788ULL, 8);
	w->peer.answered += !!a;
}

/* About a segment of ours: the control bytes and a queue with a number. */
static void make_terminate(struct world *w, struct segment *s)
{
	u8 what = take(&w->in, 1), code = take(&w->in, 1), op = take(&w->in, 1);

	put_untagged(&w->peer, s, 0, 0);
	put(s, what, 1);
	put(s, code, 1);
	put(s, op & 0x80 ? 0xc000 : 0, 2);
	if (!(op & 0x80))
		return;
	put(s, 40, 2);
	put(s, 0x41, 1);
	put(s, 0x40 | (op & 0xf), 1);
	put(s, 0, 4);
	put(s, op >> 4 & 3, 4);
	put(s, w->peer.seen_msn[op >> 4 & 3] - 1 - take(&w->in, 1), 4);
	put(s, 0, 4);
}

static void make_immediate(struct world *w, struct segment *s)
{
	put_untagged(&w->peer, s, 0, 8);
	put(s, 0x0102030405060708ULL, 8);
}

static void (*const makers[16])(struct world *w, struct segment *s) = {
	[WEFT_OP_WRITE] = make_write,
	[WEFT_OP_READ_REQ] = make_read_request,
	[WEFT_OP_READ_RESP] = make_read_response,
	[WEFT_OP_SEND] = make_send,
	[WEFT_OP_SEND_INV] = make_send,
	[WEFT_OP_SEND_SE] = make_send,
	[WEFT_OP_SEND_SE_INV] = make_send,
	[WEFT_OP_TERMINATE] = make_terminate,
	[WEFT_OP_IMM] = make_immediate,
	[WEFT_OP_IMM_SE] = make_immediate,
	[WEFT_OP_ATOMIC_REQ] = make_atomic_request,
	[WEFT_OP_ATOMIC_RESP] = make_atomic_response,
	[WEFT_OP_SEND_IMM] = make_send,
	[WEFT_OP_SEND_SE_IMM] = make_send,
	[14] = make_send,
	[15] = make_write,
};

/* Length, ULPDU, pad and CRC, with the markers that belong in between. */
static u32 frame(struct world *w, u8 *out, const u8 *ulpdu, u32 len, bool corrupt)
{
	u32 pos = w->peer.sent_pos, start = pos, at = 0, i, body = (2 + len + 3) & ~3U;
	u32 crc = WEFT_CRC_SEED;

	for (i = 0; i < body + 4; i++) {
		if (w->choice.markers_rx && (pos + at) % 512 == 0) {
			put_unaligned_be32(i ? pos + at - start : 0, out + at);
			crc = crc32c(crc, out + at, 4);
			at += 4;
			if (!i)
				start = pos + at;
		}
		if (i < 2)
			out[at] = len >> (i ? 0 : 8);
		else if (i < body)
			out[at] = i - 2 < len ? ulpdu[i - 2] : 0;
		else
			out[at] = (u32)~crc >> 8 * (i - body);
		if (i < body)
			crc = crc32c(crc, out + at, 1);
		at++;
	}
	if (corrupt)
		out[at - 1] ^= 1;
	w->peer.sent_pos += at;
	return at;
}

/**
 * peer_make - an FPDU
 * @w: whose input says what for: an opcode in the low four bits; bit 4: more follows; bit 5: a
 *	byte of it is wrong; bit 6: it is cut short; bit 7: its CRC is wrong
 * @fpdu: FPDU_MAX bytes
 *
 * Return: bytes.
 */
u32 peer_make(struct world *w, u8 *fpdu)
{
	static u8 ulpdu[FPDU_MAX];
	u8 what = take(&w->in, 1);
	struct segment s = { .op = what & 15, .last = !(what & 0x10), .bytes = ulpdu };

	makers[s.op](w, &s);
	if (what & 0x20) {
		u32 at = take(&w->in, 1) % s.len;

		ulpdu[at] ^= take(&w->in, 1);
		w->peer.corrupted = true;
	}
	if (what & 0x40)
		s.len = min_t(u32, s.len, take(&w->in, 1));
	w->peer.first = true;
	return frame(w, fpdu, ulpdu, s.len, what & 0x80);
}
