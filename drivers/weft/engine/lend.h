/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Long messages of a process are sent from its memory, where that pays.
 */
#ifndef WEFT_ENGINE_LEND_H
#define WEFT_ENGINE_LEND_H

#include <linux/atomic.h>
#include <linux/types.h>

struct weft_msg;
struct weft_stream;
struct weft_swr;

/* Octets of a message that is worth a loan. */
#define WEFT_LEND_FROM 131072U

/* What the operator may choose. */
enum weft_lend_mode {
	WEFT_LEND_NEVER,
	WEFT_LEND_WHERE_IT_PAYS,
	WEFT_LEND_ALWAYS, /* for tests: also where the kernel copies */
};

/**
 * struct weft_lend - loans of a stream; all zero to begin with
 * @out: messages whose memory TCP still reads
 * @copied: of them in a row the kernel had to copy; a hint
 * @abandoned: requests of this stream are done, whatever is out; under the retire lock
 */
struct weft_lend {
	atomic_t out;
	u8 copied;
	bool abandoned;
};

/* Holder of the tx claim. */
void weft_lend_begin(struct weft_stream *st, struct weft_swr *swr, const struct weft_msg *msg);
bool weft_lend_segment(const struct weft_stream *st, const struct weft_msg *msg);

/* The stream's worker, on the way down. */
bool weft_lend_settle(struct weft_stream *st);
void weft_lend_end(struct weft_stream *st);

#endif
