// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The deframer of the driver, fed with socket buffers of every shape, against one that knows
 * no buffers and no runs. Input: a byte of choices, two for shapes, then the stream.
 */
#include "fuzz.h"

#include "base/counters.h"
#include "net/mpa_rx.h"
#include "net/tcp_socket.h"
#include "net/ulpdu_copy.h"
#include "proto/crc.h"

enum choice {
	HAS_CRC = 1 << 0,
	HAS_MARKERS = 1 << 1,
	IS_REFUSED = 1 << 2,	/* each ULPDU is taken at the second time */
	IS_EXPECTED = 1 << 3,	/* more of the same length are asked for */
	CRC_MENDED = 1 << 4,	/* each CRC is made a good one */
	NO_MEMORY = 1 << 5,	/* an allocation fails now and then */
	IN_ONE = 1 << 6,	/* all of it in one buffer */
};

/* An FPDU as the plain deframer finds it; no @fault: its ULPDU is in @plain. */
struct fpdu {
	enum weft_fault fault;
	u32 at;
	u32 len;
};

/**
 * struct reading - one input, read both ways
 * @choices: first byte of the input
 * @shape: says how the stream is cut into socket buffers
 * @wire: the stream
 * @wire_len: its bytes
 * @plain: content of all FPDUs without markers, length fields and CRCs included
 * @fpdus: in it, up to a first fault
 * @count: of @fpdus
 * @next: to be handed over by the reader under test
 * @refused: the next one was, once
 * @fault: that it told
 * @rx: the reader under test
 */
struct reading {
	u8 choices;
	u32 shape;
	u8 *wire;
	u32 wire_len;
	u8 *plain;
	struct fpdu *fpdus;
	u32 count;
	u32 next;
	bool refused;
	enum weft_fault fault;
	struct weft_mpa_rx rx;
};

static struct weft_counters counters;

/* --- the plain one: byte by byte --- */

struct walk {
	u32 pos, start, crc, got;
	bool marker_bad;
};

static bool pass_plain_marker(struct reading *r, struct walk *w)
{
	u32 want;

	if (!(r->choices & HAS_MARKERS) || w->pos % 512)
		return true;
	if (w->pos + 4 > r->wire_len)
		return false;
	want = w->got ? w->pos - w->start : 0;
	w->marker_bad |= (get_unaligned_be16(r->wire + w->pos + 2) & ~3U) != (want & 0xfffc);
	w->crc = crc32c(w->crc, r->wire + w->pos, 4);
	w->pos += 4;
	if (!w->got)
		w->start = w->pos;
	return true;
}

/* Returns false if the stream ends in it. */
static bool plain_fpdu(struct reading *r, u32 *pos, u32 *used)
{
	struct walk w = { .pos = *pos, .start = *pos, .crc = WEFT_CRC_SEED };
	struct fpdu *f = &r->fpdus[r->count];
	u8 *content = r->plain + *used;
	u32 len = 0, sum = 0, summed = 2;

	while (w.got < summed + (w.got < 2 ? 0 : 4)) {
		if (!pass_plain_marker(r, &w) || w.pos == r->wire_len)
			return false;
		content[w.got] = r->wire[w.pos];
		if (w.got < summed)
			w.crc = crc32c(w.crc, r->wire + w.pos, 1);
		if (w.got == summed)
			sum = ~w.crc;
		if (w.got >= summed && r->choices & CRC_MENDED)
			content[w.got] = sum >> 8 * (w.got - summed);
		r->wire[w.pos] = content[w.got];
		w.got++;
		w.pos++;
		if (w.got == 2) {
			len = get_unaligned_be16(content);
			summed = (2 + len + 3) & ~3U;
		}
	}
	*f = (struct fpdu){ .at = *used + 2, .len = len };
	if (r->choices & HAS_CRC && get_unaligned_le32(content + summed) != sum)
		f->fault = WEFT_FAULT_MPA_CRC;
	else if (w.marker_bad)
		f->fault = WEFT_FAULT_MPA_MARKER;
	*pos = w.pos;
	*used += w.got;
	return true;
}

static void read_plainly(struct reading *r)
{
	u32 pos = 0, used = 0;

	r->plain = malloc(r->wire_len + 8);
	r->fpdus = malloc((r->wire_len / 8 + 1) * sizeof(*r->fpdus));
	while (plain_fpdu(r, &pos, &used))
		if (r->fpdus[r->count++].fault)
			break;
}

/* --- what the reader under test hands over --- */

static void expect_bytes(const struct reading *r, const u8 *seen, u32 len)
{
	PROMISE(r->next < r->count && !r->fpdus[r->next].fault);
	PROMISE(len == r->fpdus[r->next].len);
	PROMISE(!memcmp(seen, r->plain + r->fpdus[r->next].at, len));
}

static enum weft_fault take_ulpdu(void *owner, const struct weft_ulpdu *u)
{
	struct reading *r = owner;
	u8 *copy = malloc(u->len + 1);

	PROMISE(!weft_ulpdu_copy(u, 0, u->len, copy));
	expect_bytes(r, copy, u->len);
	PROMISE(u->head_len == min_t(u32, u->len, WEFT_ULPDU_HEAD));
	PROMISE(!memcmp(u->head, copy, u->head_len));
	PROMISE(!u->linear || !memcmp(u->linear, copy, u->len));
	free(copy);
	if (r->choices & IS_REFUSED && !r->refused) {
		r->refused = true;
		return WEFT_FAULT_NOT_READY;
	}
	r->refused = false;
	r->next++;
	if (r->choices & IS_EXPECTED)
		weft_mpa_rx_expect(&r->rx, u->len);
	if (next_shape(&r->shape) % 16 == 0)
		weft_mpa_rx_pause(&r->rx);
	return WEFT_FAULT_NONE;
}

static u32 take_span(void *owner, const struct weft_ulpdu_span *span)
{
	struct reading *r = owner;
	u32 most = next_shape(&r->shape) % (span->count + 1), i;

	for (i = 0; i < most; i++) {
		expect_bytes(r, span->first + i * span->stride, span->len);
		r->next++;
	}
	return most;
}

static void lose_framing(void *owner, enum weft_fault fault)
{
	struct reading *r = owner;

	PROMISE(!r->fault && r->next < r->count && r->fpdus[r->next].fault == fault);
	r->fault = fault;
}

static const struct weft_mpa_rx_events events = {
	.ulpdu = take_ulpdu,
	.span = take_span,
	.fault = lose_framing,
};

void weft_sock_lock(struct weft_sock *s)
{
	PROMISE(!s->sk->owned);
	s->sk->owned = true;
}

void weft_sock_unlock(struct weft_sock *s)
{
	s->sk->owned = false;
}

static void read_there(struct reading *r, struct weft_sock *s)
{
	struct weft_mpa_rx_pages *stock = NULL;
	u32 turns = 0;

	if (r->choices & NO_MEMORY)
		host.fail_after = next_shape(&r->shape) % 8;
	while (weft_mpa_rx_run_locked(&r->rx, s) == -EAGAIN) {
		PROMISE(turns++ < 4 * r->wire_len + 4);
		PROMISE(weft_mpa_rx_is_paused(&r->rx));
		weft_mpa_rx_pages_fill(&stock, GFP_ATOMIC);
		weft_mpa_rx_adopt(&r->rx, &stock);
		weft_mpa_rx_pages_drop(stock);
		kfree(stock);
		stock = NULL;
	}
	host.fail_after = 0;
	PROMISE(!s->sk->queue);
}

static void read_shaped(struct reading *r)
{
	struct sock sk = { .owned = true };
	struct weft_sock s = { .sk = &sk };
	u32 at, n;

	weft_mpa_rx_init(&r->rx, r->choices & HAS_CRC, r->choices & HAS_MARKERS, &events, r,
			 &counters);
	for (at = 0; at < r->wire_len; at += n) {
		u32 shape = next_shape(&r->shape);

		n = r->choices & IN_ONE ? r->wire_len : 1 + (shape >> 16) % (shape & 3 ? 64 : 2000);
		n = min_t(u32, n, r->wire_len - at);
		sk.queue = host_skb(r->wire + at, n, shape >> 8 & 0xff);
		read_there(r, &s);
	}
	PROMISE(r->next + (r->fault ? 1 : 0) == r->count);
	PROMISE(weft_mpa_rx_is_stopped(&r->rx) == !!r->fault);
	sk.owned = false;
	weft_mpa_rx_free(&r->rx, &s);
	PROMISE(!sk.charged);
}

static void say_reading(const struct reading *r)
{
	u32 i;

	for (i = 0; i < r->next; i++)
		say("%u:%08x ", r->fpdus[i].len,
		    ~crc32c(WEFT_CRC_SEED, r->plain + r->fpdus[i].at, r->fpdus[i].len));
	if (r->fault)
		say("%s", weft_fault_info(r->fault)->name);
}

int fuzz_one(const u8 *data, size_t size)
{
	struct input in = { data, size };
	struct reading r = { .choices = take(&in, 1), .shape = take(&in, 2) + 1 };

	host_reset();
	if (!counters.cpu)
		weft_counters_init(&counters);
	r.wire = exact(in.at, in.left);
	r.wire_len = in.left;
	read_plainly(&r);
	read_shaped(&r);
	say_reading(&r);
	PROMISE(host_is_clean());
	free(r.wire);
	free(r.plain);
	free(r.fpdus);
	return 0;
}
