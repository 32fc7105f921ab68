/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The receiving half of MPA: cuts the bytes of a socket into FPDUs, checks CRC
 * and markers, and hands over whole ULPDUs (RFC 5044, 4).
 */
#ifndef WEFT_NET_MPA_RX_H
#define WEFT_NET_MPA_RX_H

#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/types.h>

#include "net/ulpdu_copy.h"
#include "proto/fault.h"
#include "proto/mpa_frame.h"

struct page;
struct sk_buff;
struct weft_counters;
struct weft_sock;

#define WEFT_RX_PAGES	DIV_ROUND_UP(65535U, PAGE_SIZE)	/* the longest ULPDU */

/* Pages of one ULPDU in order; NULL where there is none yet. */
struct weft_mpa_rx_pages {
	struct page *page[WEFT_RX_PAGES];
};

/**
 * struct weft_ulpdu_span - contiguous FPDUs of one length, without markers
 * @first: ULPDU of the first one
 * @stride: bytes from each to the next
 * @len: bytes of each
 * @count: how many
 *
 * Valid only during the callback that hands it over.
 */
struct weft_ulpdu_span {
	const u8 *first;
	u32 stride;
	u32 len;
	u32 count;
};

/**
 * struct weft_mpa_rx_events - where ULPDUs go
 * @ulpdu: a whole ULPDU; WEFT_FAULT_NOT_READY ends the run, and the next one begins with the same
 *	ULPDU; anything else but WEFT_FAULT_NONE stops the reader for good
 * @span: contiguous ULPDUs of the length that weft_mpa_rx_expect() said; returns how many of
 *	them are taken, from the first on, and the next one is handed to @ulpdu
 * @fault: framing is lost (CRC, marker); called once, then the reader discards
 *
 * None may sleep: they run under the socket lock, or in a softirq.
 */
struct weft_mpa_rx_events {
	enum weft_fault (*ulpdu)(void *owner, const struct weft_ulpdu *u);
	u32 (*span)(void *owner, const struct weft_ulpdu_span *span);
	void (*fault)(void *owner, enum weft_fault fault);
};

/**
 * struct weft_mpa_rx_reassembly - an FPDU that did not come in one piece
 * @open: some of its bytes have been taken from the socket
 * @whole: all of them have, and the ULPDU is to be handed over again
 * @marker_bad: one of its markers pointed elsewhere
 * @cursor: what the next byte is
 * @crc: over everything taken so far
 * @fill: bytes of the ULPDU that stand in @pages
 * @held: how many @pages there are
 * @charged: bytes of those that TCP's account has
 * @word: a length, marker or CRC that comes in pieces, @word_fill bytes of it
 * @pages: allocated on demand, kept while an FPDU is open; the table of them, once
 *	there, for good
 */
struct weft_mpa_rx_reassembly {
	bool open;
	bool whole;
	bool marker_bad;
	u32 held;
	u32 charged;
	struct weft_mpa_cursor cursor;
	u32 crc;
	u32 fill;
	u32 word_fill;
	u8 word[4];
	struct weft_mpa_rx_pages *pages;
};

/**
 * struct weft_mpa_rx - reader of one stream
 * @crc, @markers: as negotiated for this direction
 * @discard: a fault was found, whatever follows is dropped silently
 * @paused: the last run ended early: weft_mpa_rx_pause(), a ULPDU that was not taken, or no memory
 *	to gather
 * @pos: stream position of the next FPDU, for markers
 * @expected: bytes of each ULPDU that may follow at once, 0: none
 *
 * Everything is protected by the socket lock.
 */
struct weft_mpa_rx {
	const struct weft_mpa_rx_events *events;
	void *owner;
	struct weft_counters *counters;
	bool crc;
	bool markers;
	bool discard;
	bool paused;
	u32 pos;
	u32 expected;
	struct weft_mpa_rx_reassembly reassembly;
};

void weft_mpa_rx_init(struct weft_mpa_rx *rx, bool crc, bool markers,
		      const struct weft_mpa_rx_events *events, void *owner,
		      struct weft_counters *counters);
void weft_mpa_rx_free(struct weft_mpa_rx *rx, struct weft_sock *s);

/* Context: socket lock held; the events run inside. */
int weft_mpa_rx_take(read_descriptor_t *desc, struct sk_buff *skb, unsigned int offset, size_t len);
bool weft_mpa_rx_begin(struct weft_mpa_rx *rx);
int weft_mpa_rx_run_locked(struct weft_mpa_rx *rx, struct weft_sock *s);

/* Context: the ulpdu callback. */
void weft_mpa_rx_expect(struct weft_mpa_rx *rx, u32 ulpdu_len);

void weft_mpa_rx_pages_fill(struct weft_mpa_rx_pages **pages, gfp_t gfp);
void weft_mpa_rx_pages_drop(struct weft_mpa_rx_pages *pages);

/* Context: socket lock held. */
void weft_mpa_rx_adopt(struct weft_mpa_rx *rx, struct weft_mpa_rx_pages **stock);

/**
 * weft_mpa_rx_pause - end this run behind the ULPDU being handed over
 * @rx: the reader
 *
 * The run returns -EAGAIN. Context: the ulpdu callback.
 */
static inline void weft_mpa_rx_pause(struct weft_mpa_rx *rx)
{
	WRITE_ONCE(rx->paused, true);
}

/**
 * weft_mpa_rx_stop - hand nothing over any more
 * @rx: the reader
 *
 * Context: socket lock held, also within a run.
 */
static inline void weft_mpa_rx_stop(struct weft_mpa_rx *rx)
{
	WRITE_ONCE(rx->discard, true);
}

/* Is nothing handed over any more? Context: any. */
static inline bool weft_mpa_rx_is_stopped(const struct weft_mpa_rx *rx)
{
	return READ_ONCE(rx->discard);
}

/* Did the last run end early, see @paused? Context: any; a hint. */
static inline bool weft_mpa_rx_is_paused(const struct weft_mpa_rx *rx)
{
	return READ_ONCE(rx->paused) && !weft_mpa_rx_is_stopped(rx);
}

/* Between two FPDUs? Context: socket lock held. */
static inline bool weft_mpa_rx_idle(const struct weft_mpa_rx *rx)
{
	return !rx->reassembly.open;
}

#endif
