/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The sending half of MPA: stages a train of FPDUs in page-frag memory, copy and
 * CRC in one pass, and hands the pages to TCP in one go (RFC 5044, 4 and 5).
 */
#ifndef WEFT_NET_TXSOCK_H
#define WEFT_NET_TXSOCK_H

#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/types.h>
#include <linux/uio.h>

#include "base/copy.h"
#include "proto/mpa_frame.h"

struct sock;
struct weft_counters;
struct weft_loan;
struct weft_sock;

#define WEFT_BUFFER_BYTES	65536U	/* at most, but for what an FPDU begun before has more */
#define WEFT_TRAIN_BUFFERS	8U	/* that one train fills at most */
#define WEFT_TRAIN_VECS		64U
#define WEFT_FILL_FROM 136U /* octets of a rest of a segment that an FPDU can fill */
/* Runs that an FPDU can need besides one for each full page: staged, or lent. */
#define WEFT_STAGED_EXTRA 3U
#define WEFT_LENT_EXTRA 5U
/* Runs an FPDU of 64 KiB with markers can need, when only single pages are had. */
#define WEFT_FPDU_VECS ((66068U / PAGE_SIZE) + WEFT_LENT_EXTRA)
/* Runs that small messages need. */
#define WEFT_FEW_VECS		4U

/**
 * struct weft_txmark - how a train stood before the FPDU being staged
 * @last_len: octets of the last run
 */
struct weft_txmark {
	u64 pos;
	u64 eor;
	u32 seg_fill;
	u32 count;
	u32 last_len;
	bool big;
};

/**
 * struct weft_txsock - writer of one stream
 * @sk: socket that is written to
 * @crc, @markers: as negotiated
 * @mulpdu: for the segments of the train being staged
 * @mss: of TCP when @mulpdu was computed, a multiple of four
 * @goal: octets of a full train: @buffers times what TCP sends as one
 * @buffers: of TCP's, that a full train fills: more while such trains follow each other
 * @pos: stream position behind the last staged octet (u64: never wraps here)
 * @pushed: stream position TCP has accepted; written under the socket lock
 * @base: TCP's sequence number of stream position 0
 * @seg_fill: octets in the TCP segment that the next FPDU would start in
 * @big: the train has an FPDU that wants to stand in one segment
 * @partial: TCP has accepted a part of the train
 * @corked: TCP was told to wait for more
 * @lending: payload of the FPDU being staged is lent, not copied
 * @loan_over: nothing is added to @loan any more: it goes with the train
 * @loan: what lent runs of the train belong to, or NULL; one reference is ours
 * @vec, @eor, @lent: staged and not yet accepted runs; bit i of @eor: a segment ends
 *	behind run i; of @lent: it is of an FPDU whose payload is lent
 * @head, @count: the runs in use, the first one perhaps partly accepted
 * @to, @room: where the next staged octet goes, and how many go there
 * @fresh: octets in front of @to that are in no run yet
 * @end: where the FPDU being staged will end
 * @ulpdu_len: of that FPDU
 * @allocation: how memory is asked for
 * @cursor: with markers, what the next staged octet is
 * @running: CRC of the FPDU being staged, up to @summed_to
 * @summed_to, @unsummed: staged, but not in @running yet
 * @mark: for undoing the FPDU being staged
 * @vecs: room in @vec
 * @few: what @vec is until an FPDU comes that may need more
 *
 * Owner: the tx claim of the stream. Staged pages are never written again, TCP
 * may keep them as long as it likes.
 */
struct weft_txsock {
	struct sock *sk;
	struct weft_counters *counters;
	bool crc;
	bool markers;
	bool big;
	bool partial;
	bool corked;
	bool lending;
	bool loan_over;
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
	u64 lent;
	struct weft_loan *loan;
	u8 *to;
	u32 room;
	u32 fresh;
	u64 end;
	u32 ulpdu_len;
	gfp_t allocation;
	struct weft_mpa_cursor cursor;
	u32 running;
	const u8 *summed_to;
	u32 unsummed;
	struct weft_txmark mark;
	u32 vecs;
	struct bio_vec *vec;
	struct bio_vec few[WEFT_FEW_VECS];
};

void weft_txsock_init(struct weft_txsock *tx, struct weft_sock *s, bool crc, bool markers,
		      struct weft_counters *counters);
void weft_txsock_free(struct weft_txsock *tx);

/* All in process context, by the holder of the tx claim. */
void weft_txsock_refresh(struct weft_txsock *tx);
u32 weft_txsock_fill_segment(const struct weft_txsock *tx, u32 ulpdu_len); /* txalign.c */
int weft_txsock_begin(struct weft_txsock *tx, u8 *start, u32 hdr_len, u32 payload_len);
int weft_txsock_copy(struct weft_txsock *tx, struct iov_iter *from, u32 len);
int weft_txsock_copy_any(struct weft_txsock *tx, const void *from, u32 len);
int weft_txsock_lend(struct weft_txsock *tx, const u8 *from, u32 len);
int weft_txsock_end(struct weft_txsock *tx);
void weft_txsock_cancel(struct weft_txsock *tx);
void weft_txsock_set_loan(struct weft_txsock *tx, struct weft_loan *loan);
void weft_txsock_end_loan(struct weft_txsock *tx);
int weft_txsock_push(struct weft_txsock *tx, bool more);

/* Whoever receives on the socket. */
bool weft_txsock_is_accepted(const struct weft_txsock *tx, u64 pos); /* push.c */

/**
 * weft_txsock_mulpdu - what the next ULPDU may have
 * @tx: the writer, between two FPDUs
 * @hdr_len: octets of its headers
 * @left: payload that is left of the message
 *
 * Context: process, tx claim. Return: octets; less than MULPDU where that fills a segment.
 */
static inline u32 weft_txsock_mulpdu(const struct weft_txsock *tx, u32 hdr_len, u32 left)
{
	if (!tx->seg_fill || tx->markers)
		return tx->mulpdu;
	return weft_txsock_fill_segment(tx, hdr_len + min(left, tx->mulpdu));
}

/* Has the open room space for @len octets, with nothing in between? Context: tx claim. */
static inline bool weft_txsock_fits(const struct weft_txsock *tx, u32 len)
{
	return len <= tx->room && !tx->markers;
}

/* The next @len octets of the room are written, and summed where they are. Context: tx claim. */
static inline void weft_txsock_advance(struct weft_txsock *tx, u32 len)
{
	tx->to += len;
	tx->room -= len;
	tx->fresh += len;
	tx->pos += len;
}

/**
 * weft_txsock_copy_linear - payload from memory
 * @tx: the writer, within an FPDU
 * @from: kernel memory
 * @len: octets
 *
 * Context: process, tx claim. Return: 0, or -errno: cancel the FPDU.
 */
static __always_inline int weft_txsock_copy_linear(struct weft_txsock *tx, const void *from,
						   u32 len)
{
	if (tx->crc || len > WEFT_COPY_SHORT || !weft_txsock_fits(tx, len))
		return weft_txsock_copy_any(tx, from, len);
	weft_copy(tx->to, from, len);
	weft_txsock_advance(tx, len);
	return 0;
}

/*
 * Time to push? If not, an FPDU of any length can be staged. One that straddles the end of a
 * buffer would leave a short one behind. Context: tx claim.
 */
static inline bool weft_txsock_full(const struct weft_txsock *tx)
{
	u32 staged = tx->pos - tx->pushed;

	return (staged && staged + WEFT_FILL_FROM > tx->goal) ||
	       tx->count > WEFT_TRAIN_VECS - WEFT_FPDU_VECS || tx->loan_over;
}

/* Is nothing staged? Context: tx claim. */
static inline bool weft_txsock_empty(const struct weft_txsock *tx)
{
	return tx->head == tx->count;
}

#endif
