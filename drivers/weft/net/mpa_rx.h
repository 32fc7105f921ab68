/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The receiving half of MPA: cuts the bytes of a socket into FPDUs, checks CRC
 * and markers, and hands over whole ULPDUs (RFC 5044, 4).
 */
#ifndef WEFT_NET_MPA_RX_H
#define WEFT_NET_MPA_RX_H

#include <linux/kernel.h>
#include <linux/mm.h>
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
struct weft_rxpages {
	struct page *page[WEFT_RX_PAGES];
};

/**
 * struct weft_ulpdu_row - contiguous FPDUs of one length, without markers
 * @first: ULPDU of the first one
 * @stride: bytes from each to the next
 * @len: bytes of each
 * @count: how many
 *
 * Valid only during the callback that hands it over.
 */
struct weft_ulpdu_row {
	const u8 *first;
	u32 stride;
	u32 len;
	u32 count;
};

/**
 * struct weft_rxsock_events - where ULPDUs go
 * @ulpdu: a whole ULPDU; anything but WEFT_FAULT_NONE stops the reader for good
 * @row: contiguous ULPDUs of the length that weft_rxsock_expect() said; returns how many of
 *	them are taken, from the first on, and the next one is handed to @ulpdu
 * @fault: framing is lost (CRC, marker); called once, then the reader discards
 *
 * None may sleep: they run under the socket lock, or in a softirq.
 */
struct weft_rxsock_events {
	enum weft_fault (*ulpdu)(void *owner, const struct weft_ulpdu *u);
	u32 (*row)(void *owner, const struct weft_ulpdu_row *row);
	void (*fault)(void *owner, enum weft_fault fault);
};

/**
 * struct weft_rxgather - an FPDU that did not come in one piece
 * @open: some of its bytes have been taken from the socket
 * @marker_bad: one of its markers pointed elsewhere
 * @cursor: what the next byte is
 * @crc: over everything taken so far
 * @fill: bytes of the ULPDU that stand in @pages
 * @stocked: @pages may have some
 * @word: a length, marker or CRC that comes in pieces, @word_fill bytes of it
 * @pages: allocated on demand, kept while an FPDU is open; the table of them, once
 *	there, for good
 */
struct weft_rxgather {
	bool open;
	bool marker_bad;
	bool stocked;
	struct weft_mpa_cursor cursor;
	u32 crc;
	u32 fill;
	u32 word_fill;
	u8 word[4];
	struct weft_rxpages *pages;
};

/**
 * struct weft_rxsock - reader of one stream
 * @crc, @markers: as negotiated for this direction
 * @discard: a fault was found, whatever follows is dropped silently
 * @paused: the last run ended early: weft_rxsock_pause(), or no memory to gather
 * @pos: stream position of the next FPDU, for markers
 * @expected: bytes of each ULPDU that may follow at once, 0: none
 *
 * Everything is protected by the socket lock.
 */
struct weft_rxsock {
	const struct weft_rxsock_events *events;
	void *owner;
	struct weft_counters *counters;
	bool crc;
	bool markers;
	bool discard;
	bool paused;
	u32 pos;
	u32 expected;
	struct weft_rxgather gather;
};

void weft_rxsock_init(struct weft_rxsock *rx, bool crc, bool markers,
		      const struct weft_rxsock_events *events, void *owner,
		      struct weft_counters *counters);
void weft_rxsock_free(struct weft_rxsock *rx);

/* Context: socket lock held; the events run inside. */
u32 weft_rxsock_take(struct weft_rxsock *rx, struct sk_buff *skb, u32 offset, u32 len);
int weft_rxsock_run_locked(struct weft_rxsock *rx, struct weft_sock *s);
void weft_rxsock_pause(struct weft_rxsock *rx);
void weft_rxsock_stop(struct weft_rxsock *rx);

/* Context: the ulpdu callback. */
void weft_rxsock_expect(struct weft_rxsock *rx, u32 ulpdu_len);

void weft_rxpages_fill(struct weft_rxpages **pages, gfp_t gfp);
void weft_rxpages_drop(struct weft_rxpages *pages);

/* Context: socket lock held. */
void weft_rxsock_adopt(struct weft_rxsock *rx, struct weft_rxpages **stock);

/* Is nothing handed over any more? Context: any. */
static inline bool weft_rxsock_is_stopped(const struct weft_rxsock *rx)
{
	return READ_ONCE(rx->discard);
}

/* Did the last run end for want of memory, or by weft_rxsock_pause()? Context: any; a hint. */
static inline bool weft_rxsock_is_paused(const struct weft_rxsock *rx)
{
	return READ_ONCE(rx->paused) && !weft_rxsock_is_stopped(rx);
}

/* Between two FPDUs? Context: socket lock held. */
static inline bool weft_rxsock_idle(const struct weft_rxsock *rx)
{
	return !rx->gather.open;
}

#endif
