// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Deframing. An FPDU that lies whole in one socket buffer is checked and handed
 * over where it stands; one that spans buffers, or may hold markers, is reassembled
 * into pages run by run. Nothing is handed over before its CRC is known to be
 * good (RFC 5044, 4.2 to 4.4).
 */
#include "net/mpa_rx.h"

#include <linux/gfp.h>
#include <linux/minmax.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "base/copy.h"
#include "base/counters.h"
#include "net/tcp_internals.h"
#include "net/tcp_socket.h"
#include "proto/crc.h"
#include "proto/hot.h"

/* --- pages in which an FPDU that comes in pieces is reassembled --- */

/**
 * weft_mpa_rx_pages_fill - pages for the longest ULPDU, as many as are to be had
 * @pages: NULL before; may be NULL afterwards
 * @gfp: how to allocate
 *
 * Context: as @gfp allows.
 */
void weft_mpa_rx_pages_fill(struct weft_mpa_rx_pages **pages, gfp_t gfp)
{
	u32 i;

	*pages = kzalloc(sizeof(**pages), gfp | __GFP_NOWARN);
	for (i = 0; *pages && i < WEFT_RX_PAGES; i++) {
		(*pages)->page[i] = alloc_page(gfp | __GFP_NOWARN);
		if (!(*pages)->page[i])
			break;
	}
}

/**
 * weft_mpa_rx_pages_drop - free the pages, but not the table
 * @pages: NULL is fine
 *
 * Context: any.
 */
void weft_mpa_rx_pages_drop(struct weft_mpa_rx_pages *pages)
{
	u32 i;

	for (i = 0; pages && i < WEFT_RX_PAGES; i++) {
		if (!pages->page[i])
			continue;
		__free_page(pages->page[i]);
		pages->page[i] = NULL;
	}
}

/* --- init and free --- */

/**
 * weft_mpa_rx_init - start reading at stream position 0
 * @rx: the reader
 * @crc: the peer's CRCs are valid and checked
 * @markers: the peer inserts markers
 * @events: where ULPDUs go
 * @owner: handed to @events
 * @counters: of the device
 *
 * Context: any; nothing is allocated.
 */
void weft_mpa_rx_init(struct weft_mpa_rx *rx, bool crc, bool markers,
		      const struct weft_mpa_rx_events *events, void *owner,
		      struct weft_counters *counters)
{
	memset(rx, 0, sizeof(*rx));
	rx->crc = crc;
	rx->markers = markers;
	rx->events = events;
	rx->owner = owner;
	rx->counters = counters;
}

/**
 * weft_mpa_rx_free - forget an unfinished FPDU
 * @rx: the reader, which is not run any more; may be freed twice
 * @s: its socket; NULL if it has never been run with one
 *
 * Context: process, takes the socket lock.
 */
void weft_mpa_rx_free(struct weft_mpa_rx *rx, struct weft_sock *s)
{
	struct weft_mpa_rx_reassembly *g = &rx->reassembly;

	weft_mpa_rx_pages_drop(g->pages);
	g->held = 0;
	if (g->charged) {
		weft_sock_lock(s);
		g->charged = weft_tcp_charge(s->sk, g->charged, 0);
		weft_sock_unlock(s);
	}
	kfree(g->pages);
	g->pages = NULL;
}

/* Where the next FPDU starts is not known any more: whatever follows is discarded. */
static void lose_framing(struct weft_mpa_rx *rx, enum weft_fault fault)
{
	if (fault == WEFT_FAULT_MPA_CRC)
		weft_count(rx->counters, WEFT_CTR_RX_CRC_ERRORS);
	else if (fault == WEFT_FAULT_MPA_MARKER)
		weft_count(rx->counters, WEFT_CTR_RX_MARKER_ERRORS);
	WRITE_ONCE(rx->discard, true); /* weft_mpa_rx_is_paused() has no lock, also below */
	rx->events->fault(rx->owner, fault);
}

/* Return: false if the ULPDU was not taken, and is to be handed over again. */
static __always_inline bool hand_over(struct weft_mpa_rx *rx, const struct weft_ulpdu *u)
{
	enum weft_fault fault;

	rx->expected = 0;
	fault = rx->events->ulpdu(rx->owner, u);
	if (likely(fault == WEFT_FAULT_NONE))
		return true;
	if (fault == WEFT_FAULT_NOT_READY)
		WRITE_ONCE(rx->paused, true);
	else
		WRITE_ONCE(rx->discard, true);
	return fault != WEFT_FAULT_NOT_READY;
}

/* --- contiguous bytes of a socket buffer: in its head, in a fragment, or in several --- */

/*
 * skb_span() for bytes in fragments. TCP makes a fragment of each page it is handed, also where
 * the pages are contiguous.
 */
static const u8 *span_in_frags(const struct sk_buff *skb, u32 offset, u32 want, u32 *span)
{
	const skb_frag_t *frag = skb_shinfo(skb)->frags;
	const skb_frag_t *end = frag + skb_shinfo(skb)->nr_frags;
	const u8 *data;
	u32 size;

	for (; frag < end && offset >= skb_frag_size(frag); frag++)
		offset -= skb_frag_size(frag);
	data = frag < end ? skb_frag_address_safe(frag) : NULL;
	if (!data)
		return NULL;
	size = skb_frag_size(frag);
	while (size < offset + want && ++frag < end && skb_frag_address_safe(frag) == data + size)
		size += skb_frag_size(frag);
	*span = size - offset;
	return data + offset;
}

/* The buffer of a fragment list that holds @offset, which becomes relative to it. */
static const struct sk_buff *skb_part(const struct sk_buff *skb, u32 *offset)
{
	const struct sk_buff *part;
	u32 own;

	if (!skb_has_frag_list(skb))
		return skb;
	own = skb_pagelen(skb);
	if (*offset < own)
		return skb;
	*offset -= own;
	skb_walk_frags(skb, part) {
		if (*offset < part->len)
			return part;
		*offset -= part->len;
	}
	return NULL;
}

/*
 * The address of the byte at @offset, or NULL if it is not mapped. @span is set to how many are
 * contiguous from there; more than @want are not looked for.
 */
static __always_inline const u8 *skb_span(const struct sk_buff *skb, u32 offset, u32 want,
					  u32 *span)
{
	const struct sk_buff *part = skb_part(skb, &offset);
	u32 head;

	*span = 0;
	if (!part)
		return NULL;
	head = skb_headlen(part);
	if (offset >= head)
		return span_in_frags(part, offset - head, want, span);
	*span = head - offset;
	return part->data + offset;
}

/* --- an FPDU in one socket buffer --- */

static bool crc_good(struct sk_buff *skb, const u8 *linear, u32 offset, u32 len)
{
	u8 wire[WEFT_MPA_CRC_BYTES];
	struct skb_seq_state seq;
	u32 crc = WEFT_CRC_SEED;
	u32 done = 0;
	const u8 *data;
	u32 n;

	if (linear)
		return weft_crc_matches(weft_crc_update(crc, linear, len), linear + len);
	skb_prepare_seq_read(skb, offset, offset + len, &seq);
	while (done < len && (n = skb_seq_read(done, &data, &seq)) != 0) {
		n = min(n, len - done);	/* a block may reach beyond what was asked for */
		crc = weft_crc_update(crc, data, n);
		done += n;
	}
	skb_abort_seq_read(&seq);
	return !skb_copy_bits(skb, offset + len, wire, sizeof(wire)) && weft_crc_matches(crc, wire);
}

/*
 * Hand over the FPDU at @offset in place. Return: its bytes, 0 if @skb has not all of it or it was
 * not taken: then the reader is paused.
 */
static __always_inline u32 take_whole(struct weft_mpa_rx *rx, struct sk_buff *skb, u32 offset,
				      u32 avail)
{
	u32 ulpdu_len, wire_len, span;
	u8 field[WEFT_MPA_LEN_BYTES];
	struct weft_ulpdu u __uninitialized;
	const u8 *linear;

	if (avail < sizeof(field))
		return 0;
	linear = skb_span(skb, offset, sizeof(field), &span);
	if (linear && span >= sizeof(field))
		ulpdu_len = get_unaligned_be16(linear);
	else if (!skb_copy_bits(skb, offset, field, sizeof(field)))
		ulpdu_len = get_unaligned_be16(field);
	else
		return 0;
	wire_len = weft_mpa_bare_len(ulpdu_len);
	if (wire_len > avail)
		return 0;

	if (wire_len > span) {
		linear = skb_span(skb, offset, wire_len, &span);
		if (wire_len > span)
			linear = NULL;
	}
	u.len = ulpdu_len;
	u.head_len = min(ulpdu_len, WEFT_ULPDU_HEAD);
	u.skb = skb;
	u.skb_offset = offset + WEFT_MPA_LEN_BYTES;
	u.pages = NULL;
	u.linear = linear ? linear + WEFT_MPA_LEN_BYTES : NULL;
	if (linear && u.head_len == WEFT_ULPDU_HEAD)
		memcpy(u.head, u.linear, WEFT_ULPDU_HEAD); /* a constant length spares a loop */
	else if (linear)
		weft_copy(u.head, u.linear, u.head_len);
	else if (skb_copy_bits(skb, u.skb_offset, u.head, u.head_len))
		return 0;
	if (rx->crc && !crc_good(skb, linear, offset, wire_len - WEFT_MPA_CRC_BYTES))
		lose_framing(rx, WEFT_FAULT_MPA_CRC);
	else if (!hand_over(rx, &u))
		return 0;
	rx->pos += wire_len;
	return wire_len;
}

/* --- ULPDUs of one length that are contiguous --- */

/* Hand over ULPDUs of the expected length at @offset. Return: bytes, 0 if there are none. */
static u32 take_span(struct weft_mpa_rx *rx, struct sk_buff *skb, u32 offset, u32 avail)
{
	struct weft_ulpdu_span span = {
		.len = rx->expected,
		.stride = weft_mpa_bare_len(rx->expected),
	};
	const u8 *bytes;
	u32 most, taken;

	if (avail < span.stride)
		return 0;
	bytes = skb_span(skb, offset, avail, &most);
	if (!bytes)
		return 0;
	span.first = bytes + WEFT_MPA_LEN_BYTES;
	for (most = min(most, avail) / span.stride; span.count < most; span.count++) {
		if (get_unaligned_be16(bytes) != span.len)
			break;
		bytes += span.stride;
	}
	if (!span.count)
		return 0;
	taken = rx->events->span(rx->owner, &span) * span.stride;
	rx->pos += taken;
	return taken;
}

/**
 * weft_mpa_rx_expect - more ULPDUs of that length are to come
 * @rx: the reader
 * @ulpdu_len: bytes
 *
 * Those that follow at once, and are contiguous, are handed to the span callback together. Not
 * with CRC, which is checked of each, nor with markers. Context: the ulpdu callback.
 */
void weft_mpa_rx_expect(struct weft_mpa_rx *rx, u32 ulpdu_len)
{
	if (!rx->crc && !rx->markers)
		rx->expected = ulpdu_len;
}

/* --- an FPDU in pieces --- */

static void finish_reassembly(struct weft_mpa_rx *rx)
{
	struct weft_mpa_rx_reassembly *g = &rx->reassembly;
	struct weft_ulpdu u = {};

	g->open = false;
	rx->pos = g->cursor.pos;
	if (!g->whole)
		weft_count(rx->counters, WEFT_CTR_RX_REASSEMBLED);
	g->whole = false;
	if (rx->crc && !weft_crc_matches(g->crc, g->word))
		return lose_framing(rx, WEFT_FAULT_MPA_CRC);
	if (g->marker_bad)
		return lose_framing(rx, WEFT_FAULT_MPA_MARKER);

	u.len = g->fill;
	u.head_len = min(g->fill, WEFT_ULPDU_HEAD);
	if (g->fill) {
		u.pages = g->pages->page;
		u.linear = g->fill <= PAGE_SIZE ? page_address(u.pages[0]) : NULL;
		memcpy(u.head, page_address(u.pages[0]), u.head_len);
	}
	if (hand_over(rx, &u))
		return;
	g->open = true; /* its pages are kept */
	g->whole = true;
}

/* Take what there is of a length, marker or CRC, and look at it once it is complete. */
static int take_word(struct weft_mpa_rx_reassembly *g, enum weft_mpa_run run, struct sk_buff *skb,
		     u32 offset, u32 avail)
{
	u32 size = run == WEFT_RUN_LENGTH ? WEFT_MPA_LEN_BYTES : WEFT_MPA_MARKER_BYTES;
	u32 n = min(avail, size - g->word_fill);

	if (skb_copy_bits(skb, offset, g->word + g->word_fill, n))
		return -EFAULT;
	g->word_fill += n;
	if (g->word_fill < size)
		return n;

	if (run == WEFT_RUN_MARKER && !weft_mpa_marker_ok(&g->cursor, g->word))
		g->marker_bad = true;
	if (run == WEFT_RUN_LENGTH)
		g->cursor.ulpdu_len = get_unaligned_be16(g->word);
	if (run != WEFT_RUN_CRC)
		g->crc = weft_crc_update(g->crc, g->word, g->word_fill);
	weft_mpa_cursor_pass(&g->cursor, g->word_fill);
	g->word_fill = 0;
	return n;
}

/* Take @n bytes of the ULPDU, or as many as the page has room for. */
static int take_ulpdu(struct weft_mpa_rx *rx, struct sk_buff *skb, u32 offset, u32 n)
{
	struct weft_mpa_rx_reassembly *g = &rx->reassembly;
	u32 at = offset_in_page(g->fill);
	struct page **page = NULL;
	u8 *to;

	if (!g->pages)
		g->pages = kzalloc(sizeof(*g->pages), GFP_ATOMIC | __GFP_NOWARN);
	if (g->pages)
		page = &g->pages->page[g->fill / PAGE_SIZE];
	if (page && !*page) {
		*page = alloc_page(GFP_ATOMIC | __GFP_NOWARN);
		g->held += !!*page;
	}
	if (!page || !*page) {
		WRITE_ONCE(rx->paused, true);
		return 0;
	}
	to = page_address(*page) + at;
	n = min_t(u32, n, PAGE_SIZE - at);
	if (skb_copy_bits(skb, offset, to, n))
		return -EFAULT;
	if (rx->crc)
		g->crc = weft_crc_update(g->crc, to, n);
	weft_mpa_cursor_pass(&g->cursor, n);
	g->fill += n;
	return n;
}

/*
 * Take bytes of the run that the cursor is in. Return: how many, 0 without memory, -EFAULT when
 * they cannot be read.
 */
static int take_run(struct weft_mpa_rx *rx, struct sk_buff *skb, u32 offset, u32 avail)
{
	struct weft_mpa_rx_reassembly *g = &rx->reassembly;
	enum weft_mpa_run run;
	u8 pad[4];
	u32 n;

	run = weft_mpa_cursor_run(&g->cursor, &n);
	if (run == WEFT_RUN_ULPDU)
		return take_ulpdu(rx, skb, offset, min(n, avail));
	if (run != WEFT_RUN_PAD)
		return take_word(g, run, skb, offset, avail);

	n = min3(n, avail, (u32)sizeof(pad));
	if (skb_copy_bits(skb, offset, pad, n))
		return -EFAULT;
	g->crc = weft_crc_update(g->crc, pad, n);
	weft_mpa_cursor_pass(&g->cursor, n);
	return n;
}

/* Return: bytes taken, up to the end of the FPDU; 0 without memory or after a fault. */
static u32 reassemble(struct weft_mpa_rx *rx, struct sk_buff *skb, u32 offset, u32 avail)
{
	struct weft_mpa_rx_reassembly *g = &rx->reassembly;
	u32 taken = 0;
	u32 left;

	if (!g->open) {
		weft_mpa_cursor_init(&g->cursor, rx->pos, 0, rx->markers);
		g->open = true;
		g->marker_bad = false;
		g->crc = WEFT_CRC_SEED;
		g->fill = 0;
		g->word_fill = 0;
	}
	while (taken < avail) {
		int n = take_run(rx, skb, offset + taken, avail - taken);

		if (n < 0)
			lose_framing(rx, WEFT_FAULT_MPA_LOCAL);
		if (n <= 0)
			break;
		taken += n;
		if (weft_mpa_cursor_run(&g->cursor, &left) == WEFT_RUN_END) {
			finish_reassembly(rx);
			break;
		}
	}
	return taken;
}

/* --- running --- */

/**
 * weft_mpa_rx_take - hand over every FPDU that is in a buffer
 * @desc: its @arg.data is the reader
 * @skb: the buffer
 * @offset: of the first byte not read yet
 * @len: bytes from there
 *
 * For tcp_read_sock(). Context: socket lock held. Return: bytes read; less than @len if the
 * reader is paused.
 */
int weft_hot weft_mpa_rx_take(read_descriptor_t *desc, struct sk_buff *skb, unsigned int offset,
			      size_t len)
{
	struct weft_mpa_rx *rx = desc->arg.data;
	u32 taken = 0;

	while (taken < len && !READ_ONCE(rx->discard) && !rx->paused) {
		bool whole = !rx->reassembly.open && !rx->markers;
		u32 n = 0;

		if (whole && rx->expected)
			n = take_span(rx, skb, offset + taken, len - taken);
		if (whole && !n)
			n = take_whole(rx, skb, offset + taken, len - taken);
		if (!n && !rx->paused)
			n = reassemble(rx, skb, offset + taken, len - taken);
		taken += n;
	}
	return rx->discard ? len : taken;
}

/**
 * weft_mpa_rx_begin - begin a run
 * @rx: the reader
 *
 * An FPDU that was reassembled and not taken is not in the socket any more: it is handed over
 * first. Context: socket lock held. Return: false if it is not taken yet, and the run is over.
 */
bool weft_mpa_rx_begin(struct weft_mpa_rx *rx)
{
	WRITE_ONCE(rx->paused, false);
	if (unlikely(rx->reassembly.whole) && !READ_ONCE(rx->discard))
		finish_reassembly(rx);
	return !rx->paused;
}

/**
 * weft_mpa_rx_run_locked - hand over every FPDU that is there
 * @rx: the reader
 * @s: its socket
 *
 * Context: a callback of @s, or any other holder of the socket lock; does not
 * sleep. Opens the receive window for what was read. Return: bytes read, 0 when
 * there were none, or -EAGAIN if the reader was paused, or ran out of memory: see
 * weft_mpa_rx_adopt().
 */
int weft_hot weft_mpa_rx_run_locked(struct weft_mpa_rx *rx, struct weft_sock *s)
{
	read_descriptor_t desc = { .arg.data = rx, .count = 1 };
	struct weft_mpa_rx_reassembly *g = &rx->reassembly;
	int ret = 0;

	sock_owned_by_me(s->sk);
	if (weft_mpa_rx_begin(rx))
		ret = tcp_read_sock(s->sk, &desc, weft_mpa_rx_take);
	if (weft_tcp_at_urgent(s->sk) && !rx->discard)
		lose_framing(rx, WEFT_FAULT_MPA_LOCAL);	/* that peer sends no FPDUs */
	if (g->held && !g->open) {
		weft_mpa_rx_pages_drop(g->pages);
		g->held = 0;
	}
	/*
	 * A peer decides how much of an FPDU it sends, and for how long it leaves that at that.
	 * What is kept of it counts as what TCP keeps in a receive queue does: in tcp_mem, and
	 * in the memory cgroup of the socket. What TCP does not give is not charged: without
	 * these bytes the rest cannot be read, and for each connection they are bounded.
	 */
	if (g->held * PAGE_SIZE != g->charged)
		g->charged = weft_tcp_charge(s->sk, g->charged, g->held * PAGE_SIZE);
	return rx->paused ? -EAGAIN : ret;
}

/**
 * weft_mpa_rx_adopt - give a reader the memory that it ran out of
 * @rx: the reader
 * @stock: keeps what is not needed
 */
void weft_mpa_rx_adopt(struct weft_mpa_rx *rx, struct weft_mpa_rx_pages **stock)
{
	struct weft_mpa_rx_reassembly *g = &rx->reassembly;
	u32 i;

	if (!*stock)
		return;
	if (!g->pages)
		swap(g->pages, *stock);
	g->held = 0;
	for (i = 0; i < WEFT_RX_PAGES; i++) {
		if (*stock && !g->pages->page[i])
			swap(g->pages->page[i], (*stock)->page[i]);
		g->held += !!g->pages->page[i];
	}
}
