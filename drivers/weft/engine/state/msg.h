/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A message on its way out.
 */
#ifndef WEFT_ENGINE_STATE_MSG_H
#define WEFT_ENGINE_STATE_MSG_H

#include <linux/types.h>

struct weft_swr;

/* Where the payload of an outgoing message comes from. */
enum weft_source {
	WEFT_SRC_NONE,		/* only headers */
	WEFT_SRC_SGE,		/* the work request's gather list */
	WEFT_SRC_INLINE,	/* bytes copied with the work request */
	WEFT_SRC_STAG,		/* memory the peer named: Read Response */
};

/**
 * struct weft_msg - a message on its way out
 * @opcode: RDMAP opcode
 * @source: where the payload comes from; a recipe, no page is held
 * @length: payload bytes of the whole message
 * @done: payload bytes staged so far
 * @stag, @to: sink of a tagged message; @stag also the STag to invalidate
 * @hdr_len: bytes of the RDMAP header behind the DDP header, which is the @hdr of
 *	struct weft_tx: of the messages in hand at most one has any
 * @msn: of an untagged message
 * @src_stag, @src_to: source of a Read Response
 * @swr: the work request it belongs to, NULL for what the engine itself sends
 * @answer: it answers the oldest request we owe
 * @popped: which is not in the queue any more
 */
struct weft_msg {
	u8 opcode;
	u8 source;
	u8 hdr_len;
	bool answer;
	bool popped;
	u32 length;
	u32 done;
	u32 stag;
	u64 to;
	u32 msn;
	u32 src_stag;
	u64 src_to;
	struct weft_swr *swr;
};

#define WEFT_MSGS_PER_WR	2	/* Write with immediate */

#endif
