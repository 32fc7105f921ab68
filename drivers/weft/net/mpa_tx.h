/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The sending half of MPA: stages a batch of FPDUs in page-frag memory, copy and
 * CRC in one pass, and hands the pages to TCP in one go (RFC 5044, 4 and 5).
 */
#ifndef WEFT_NET_MPA_TX_H
#define WEFT_NET_MPA_TX_H

#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/types.h>

#include "base/copy.h"
#include "proto/crc.h"
#include "proto/mpa_frame.h"
#include "proto/wire.h"

struct sock;
struct weft_counters;
struct weft_sock;

#define WEFT_GSO_BYTES	65536U	/* aimed at; the last FPDU may reach beyond it */
#define WEFT_BATCH_BUFFERS	8U	/* that one batch fills at most */
#define WEFT_BATCH_VECS		64U
#define WEFT_FILL_FROM 136U /* least bytes left of a segment that an FPDU can fill */
/* Runs that an FPDU can need besides one for each full page. */
#define WEFT_EXTRA_VECS 3U
/* Runs that an FPDU of 64 KiB with markers can need, when only single pages are had. */
#define WEFT_FPDU_VECS ((66068U / PAGE_SIZE) + WEFT_EXTRA_VECS)
/* Runs that small messages need. */
#define WEFT_FEW_VECS		4U

/**
 * struct weft_mpa_tx_mark - how a batch stood before the FPDU being staged
 * @last_len: bytes of the last run
 */
struct weft_mpa_tx_mark {
	u64 pos;
	u64 eor;
	u32 seg_fill;
	u32 count;
	u32 last_len;
	bool big;
};

/**
 * struct weft_mpa_tx - writer of one stream
 * @sk: socket that is written to
 * @crc, @markers: as negotiated
 * @mulpdu: for the segments of the batch being staged
 * @mss: of TCP when @mulpdu was computed, a multiple of four
 * @goal: bytes of a full batch: @buffers times what TCP sends as one
 * @buffers: of TCP's, that a full batch fills: more while such batches follow each other
 * @pos: stream position behind the last staged byte (u64: never wraps here)
 * @pushed: stream position TCP has accepted; written under the socket lock
 * @base: TCP's sequence number of stream position 0
 * @seg_fill: bytes in the TCP segment that the next FPDU would start in
 * @big: the batch has an FPDU that wants to stand in one segment
 * @partial: TCP has accepted a part of the batch
 * @corked: TCP was told to wait for more
 * @atomic: the holder of the tx claim has the socket lock and may not sleep; set by it
 * @no_memory: that is why the FPDU begun last could not be staged
 * @vec, @eor: staged and not yet accepted runs; bit i of @eor: a segment ends behind run i
 * @head, @count: the runs in use, the first one perhaps partly accepted
 * @to, @space: where the next staged byte goes, and how many go there
 * @fresh: bytes in front of @to that are in no run yet
 * @end: where the FPDU being staged will end
 * @ulpdu_len: of that FPDU
 * @allocation: how memory is asked for, but never reclaimed, while something is staged
 * @cursor: with markers, what the next staged byte is
 * @running: CRC of the FPDU being staged, up to @summed_to
 * @summed_to, @unsummed: staged, but not in @running yet
 * @mark: for undoing the FPDU being staged
 * @vecs: space in @vec
 * @few: what @vec is until an FPDU comes that may need more
 *
 * Owner: the tx claim of the stream. Staged pages are never written again, TCP
 * may keep them as long as it likes.
 */
struct weft_mpa_tx {
	struct sock *sk;
	struct weft_counters *counters;
	bool crc;
	bool markers;
	bool big;
	bool partial;
	bool corked;
	bool atomic;
	bool no_memory;
	u32 mulpdu;
	u32 mss;
	u32 goal;
	u32 buffers;
	u32 seg_fill;
	u64 pos;
	u64 pushed;
	u32 base;
	u32 head;
	u32 count;
	u64 eor;
	u8 *to;
	u32 space;
	u32 fresh;
	u64 end;
	u32 ulpdu_len;
	gfp_t allocation;
	struct weft_mpa_cursor cursor;
	u32 running;
	const u8 *summed_to;
	u32 unsummed;
	struct weft_mpa_tx_mark mark;
	u32 vecs;
	struct bio_vec *vec;
	struct bio_vec few[WEFT_FEW_VECS];
};

void weft_mpa_tx_init(struct weft_mpa_tx *tx, struct weft_sock *s, bool crc, bool markers,
		      struct weft_counters *counters);
void weft_mpa_tx_free(struct weft_mpa_tx *tx);

void weft_mpa_tx_module_exit(void);

/* All by the holder of the tx claim, in process context or as @atomic says. */
void weft_mpa_tx_refresh(struct weft_mpa_tx *tx);
u32 weft_mpa_tx_mulpdu(const struct weft_mpa_tx *tx, u32 hdr_len, u32 left);
int weft_mpa_tx_begin(struct weft_mpa_tx *tx, u8 *start, u32 hdr_len, u32 payload_len);
int weft_mpa_tx_copy_any(struct weft_mpa_tx *tx, const void *from, u32 len);
int weft_mpa_tx_end(struct weft_mpa_tx *tx);
void weft_mpa_tx_cancel(struct weft_mpa_tx *tx);
int weft_mpa_tx_push(struct weft_mpa_tx *tx, bool more);

/* For the context that receives on the socket. */
bool weft_mpa_tx_is_accepted(const struct weft_mpa_tx *tx, u64 pos);

/* The next @len bytes of the space are written, and summed up if need be. Context: tx claim. */
static inline void weft_mpa_tx_advance(struct weft_mpa_tx *tx, u32 len)
{
	tx->to += len;
	tx->space -= len;
	tx->fresh += len;
	tx->pos += len;
}

/**
 * weft_mpa_tx_copy_linear - payload from memory
 * @tx: the writer, within an FPDU
 * @from: kernel memory
 * @len: bytes
 *
 * Context: process, tx claim. Return: 0, or -errno: cancel the FPDU.
 */
static __always_inline int weft_mpa_tx_copy_linear(struct weft_mpa_tx *tx, const void *from,
						   u32 len)
{
	if (tx->crc || tx->markers || len > WEFT_COPY_SHORT || len > tx->space)
		return weft_mpa_tx_copy_any(tx, from, len);
	weft_copy(tx->to, from, len);
	weft_mpa_tx_advance(tx, len);
	return 0;
}

/*
 * Is it time to push? If not, an FPDU of any length can be staged. One that reached beyond
 * the goal would leave a short buffer behind the full ones. Context: tx claim.
 */
static inline bool weft_mpa_tx_full(const struct weft_mpa_tx *tx)
{
	u32 staged = tx->pos - tx->pushed;

	return (staged && staged + WEFT_FILL_FROM > tx->goal) ||
	       tx->count > WEFT_BATCH_VECS - WEFT_FPDU_VECS;
}

/* Is nothing staged? Context: tx claim. */
static inline bool weft_mpa_tx_empty(const struct weft_mpa_tx *tx)
{
	return tx->head == tx->count;
}

/* Has TCP a part of a batch, which may end inside an FPDU? Context: tx claim. */
static inline bool weft_mpa_tx_is_torn(const struct weft_mpa_tx *tx)
{
	return tx->partial;
}

/* --- spans: FPDUs that fill one TCP segment each --- */

/* Does the next FPDU start a segment, and is only copied, not summed up? Context: tx claim. */
static inline bool weft_mpa_tx_may_span(const struct weft_mpa_tx *tx)
{
	return !tx->seg_fill && !tx->crc && !tx->markers;
}

u32 weft_mpa_tx_span_begin(struct weft_mpa_tx *tx, u32 ulpdu_len, u32 most);
int weft_mpa_tx_span_end(struct weft_mpa_tx *tx);

/**
 * weft_mpa_tx_span_put - the next bytes of the span
 * @tx: the writer, within a span
 * @from: kernel memory
 * @len: bytes, no more than are left of the span
 *
 * Context: process, tx claim.
 */
static __always_inline void weft_mpa_tx_span_put(struct weft_mpa_tx *tx, const void *from, u32 len)
{
	weft_copy(tx->to, from, len);
	weft_mpa_tx_advance(tx, len);
}

/**
 * weft_mpa_tx_span_put_crc - what ends an FPDU
 * @tx: the writer, within a span, all of a ULPDU put
 *
 * A segment is a multiple of four bytes, so there is no pad. Context: process, tx claim.
 */
static __always_inline void weft_mpa_tx_span_put_crc(struct weft_mpa_tx *tx)
{
	weft_crc_store(WEFT_CRC_SEED, tx->to);
	weft_mpa_tx_advance(tx, WEFT_MPA_CRC_BYTES);
}

#endif
