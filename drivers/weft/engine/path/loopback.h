/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The loopback transport: segments are handed from the tx of a stream to the rx of its peer.
 */
#ifndef WEFT_ENGINE_PATH_LOOPBACK_H
#define WEFT_ENGINE_PATH_LOOPBACK_H

#include <linux/types.h>

#include "net/loopback.h"
#include "net/ulpdu_copy.h"
#include "proto/fault.h"

struct weft_mem_ref;
struct weft_stream;

/* Payload of a segment at most: whole pages, and with its headers below 64 KiB. */
#define WEFT_LOOPBACK_PAYLOAD	61440U
/* Pages that it may touch. */
#define WEFT_LOOPBACK_PIECES	(WEFT_LOOPBACK_PAYLOAD / 4096 + 1)

/**
 * struct weft_loopback_seg - a segment on its way
 * @st: the stream that sends it
 * @u: what the peer gets; its @head is filled in by the sender
 * @answered: of a request that the peer answers
 * @payload: bytes that were added, no more than are to be handed over
 * @count: @piece in use
 * @piece: where the payload is
 */
struct weft_loopback_seg {
	struct weft_stream *st;
	struct weft_ulpdu u;
	bool answered;
	u32 payload;
	u32 count;
	struct weft_ulpdu_piece piece[WEFT_LOOPBACK_PIECES];
};

enum weft_handed {
	WEFT_HANDED_TAKEN,
	WEFT_HANDED_WAITS,	/* the peer will have tx go on, or end the stream */
	WEFT_HANDED_REFUSED,	/* it goes by TCP */
};

void weft_loopback_start(struct weft_stream *st);
void weft_loopback_end(struct weft_stream *st);
u64 weft_loopback_progress(const struct weft_stream *st, bool received);

enum weft_fault weft_loopback_add(void *arg, u32 done, const struct weft_mem_ref *ref);
enum weft_handed weft_loopback_hand(struct weft_loopback_seg *seg, u32 head_len);

#endif
