/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The receiving half of MPA: cuts the octets of a socket into FPDUs, checks CRC
 * and markers, and hands over whole ULPDUs (RFC 5044, 4).
 */
#ifndef WEFT_NET_RXSOCK_H
#define WEFT_NET_RXSOCK_H

#include <linux/types.h>

#include "net/ulpdu.h"
#include "proto/fault.h"

struct page;
struct weft_counters;
struct weft_sock;

/**
 * struct weft_rxsock_events - where ULPDUs go
 * @ulpdu: a whole ULPDU; anything but WEFT_FAULT_NONE stops the reader for good
 * @fault: framing is lost (CRC, marker); called once, then the reader discards
 *
 * Both run under the socket lock and must not sleep.
 */
struct weft_rxsock_events {
	enum weft_fault (*ulpdu)(void *owner, const struct weft_ulpdu *u);
	void (*fault)(void *owner, enum weft_fault fault);
};

#define WEFT_RX_PAGES	17	/* one FPDU of 64 KiB, at any offset */

/**
 * struct weft_rxsock - reader of one stream
 * @pos: stream position of the next octet, for markers
 * @fill: octets of an unfinished FPDU already taken from the socket
 * @page: where those stand, allocated on demand, kept while an FPDU is open
 * @discard: a fault was found, everything further is dropped silently
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
	bool starved;
	u32 pos;
	u32 fill;
	u32 need;
	struct page *page[WEFT_RX_PAGES];
	struct weft_ulpdu ulpdu;
};

void weft_rxsock_init(struct weft_rxsock *rx, bool crc, bool markers,
		      const struct weft_rxsock_events *events, void *owner,
		      struct weft_counters *counters);
void weft_rxsock_free(struct weft_rxsock *rx);

/* Context: socket lock held (callback) or taken inside (process). */
int weft_rxsock_run_locked(struct weft_rxsock *rx, struct weft_sock *s);
int weft_rxsock_run(struct weft_rxsock *rx, struct weft_sock *s);

#endif
