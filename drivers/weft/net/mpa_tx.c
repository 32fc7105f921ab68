// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Framing. FPDUs are built one behind the other in a page fragment, that of the running
 * task as a rule, where they also get their CRC, and TCP takes those pages as they are.
 */
#include "net/mpa_tx.h"

#include <linux/bitops.h>
#include <linux/bits.h>
#include <linux/bug.h>
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/sock.h>

#include "net/tcp_internals.h"
#include "net/tcp_socket.h"
#include "proto/crc.h"
#include "proto/hot.h"

#define PIECE 8192U /* copied, then summed while in the cache */
#define FRAGMENT_MIN 256U /* a rest of a page fragment worth using */
#define ALIGN_FROM 512U /* bytes of an FPDU that is worth aligning */

static_assert(WEFT_BATCH_VECS >= 2 * WEFT_FPDU_VECS);
static_assert(WEFT_BATCH_VECS <= 64, "one bit each in eor");

/* --- alignment: which FPDUs stand in one segment --- */

/*
 * Which FPDUs of a batch stand in one segment.
 *
 * Alignment (RFC 5044, 5): TCP cuts a batch at multiples of its MSS, counted
 * from the start of the socket buffer. FPDUs of exactly one MSS need nothing. One of
 * 512 bytes or more that would straddle a cut is made to end there, if what is left of the
 * segment allows it (RFC 5044, 4.5: MULPDU may be reduced). If it does not, the FPDU
 * straddles, and leaves enough of the next segment for another FPDU to end there. Smaller
 * FPDUs may straddle. With markers MULPDU is not reduced: TCP is made to start a new
 * buffer instead.
 */

/**
 * weft_mpa_tx_mulpdu - what the next ULPDU may have
 * @tx: the writer, between two FPDUs
 * @hdr_len: bytes of its headers
 * @left: payload that is left of the message
 *
 * MULPDU, but for RFC 5044, 4.5: an FPDU that would reach beyond the end of a segment that has
 * begun is made to fill it. One that would leave less than WEFT_FILL_FROM there, or has to
 * straddle, is made to leave as much as that.
 *
 * Context: process, tx claim. Return: bytes.
 */
u32 weft_hot weft_mpa_tx_mulpdu(const struct weft_mpa_tx *tx, u32 hdr_len, u32 left)
{
	u32 space = tx->mss - tx->seg_fill;
	u32 ulpdu_len = hdr_len + min(left, tx->mulpdu);
	bool all = ulpdu_len <= tx->mulpdu;
	u32 wire = weft_mpa_bare_len(all ? ulpdu_len : tx->mulpdu);

	if (!tx->seg_fill || tx->markers || wire < ALIGN_FROM)
		return tx->mulpdu;
	if (space < WEFT_FILL_FROM)
		return weft_mpa_mulpdu(space + tx->mss - WEFT_FILL_FROM, false);
	if (wire > space)
		return weft_mpa_mulpdu(space, false);
	if (!all && wire < space && space - wire < WEFT_FILL_FROM)
		return weft_mpa_mulpdu(space - WEFT_FILL_FROM, false);
	return tx->mulpdu;
}

/* --- birth and end --- */

/**
 * weft_mpa_tx_init - start writing at stream position 0
 * @tx: the writer
 * @s: a connected socket, which outlives @tx
 * @crc: CRCs are valid
 * @markers: insert markers
 * @counters: of the device
 *
 * Context: any; nothing is allocated.
 */
void weft_mpa_tx_init(struct weft_mpa_tx *tx, struct weft_sock *s, bool crc, bool markers,
		      struct weft_counters *counters)
{
	memset(tx, 0, sizeof(*tx));
	tx->sk = s->sk;
	tx->allocation = weft_sock_allocation(s);
	tx->crc = crc;
	tx->markers = markers;
	tx->counters = counters;
	tx->vec = tx->few;
	tx->vecs = WEFT_FEW_VECS;
	tx->buffers = 1;
	tx->base = weft_tcp_write_seq(tx->sk);
	weft_mpa_tx_refresh(tx);
}

/**
 * weft_mpa_tx_free - drop what TCP has not accepted
 * @tx: the writer; may be freed twice
 *
 * Context: any.
 */
void weft_mpa_tx_free(struct weft_mpa_tx *tx)
{
	while (tx->count > tx->head)
		put_page(tx->vec[--tx->count].bv_page);
	tx->head = 0;
	tx->count = 0;
	if (tx->vec != tx->few)
		kfree(tx->vec);
	tx->vec = tx->few;
	tx->vecs = WEFT_FEW_VECS;
}

/**
 * weft_mpa_tx_refresh - how the next batch is cut
 * @tx: the writer, between two FPDUs
 *
 * By the segment size that TCP has now. What is staged counts for no socket yet, so it must not
 * be much more than the socket has space for.
 *
 * Context: process, tx claim. Cheap; meant for once per batch.
 */
void weft_hot weft_mpa_tx_refresh(struct weft_mpa_tx *tx)
{
	u32 mss = weft_tcp_mss(tx->sk);
	u32 bytes = min(weft_tcp_gso_segs(tx->sk) * mss, WEFT_GSO_BYTES);
	u32 buffers = 1;

	if (tx->buffers > 1 && !tx->atomic)
		buffers = clamp(max(sk_stream_wspace(tx->sk), 0) / bytes, 1U, tx->buffers);
	/* A batch a little longer than buffers would leave a short one behind full ones. */
	tx->goal = bytes * buffers;
	if (mss == tx->mss)
		return;
	tx->mss = mss;
	tx->mulpdu = weft_mpa_mulpdu(mss, tx->markers);
	tx->seg_fill %= mss;
}

/* --- space: a page fragment, and runs of bytes there --- */

/*
 * The fragment that is written to where nothing may sleep, protected by bottom halves that are
 * off: the interrupted task may be in the middle of its own.
 */
static DEFINE_PER_CPU(struct page_frag, softirq_frag);

/* No stream is left. Context: process. */
void weft_mpa_tx_module_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct page_frag *frag = per_cpu_ptr(&softirq_frag, cpu);

		if (frag->page)
			put_page(frag->page);
		frag->page = NULL;
	}
}

/* Regions are pinned, and perhaps pages that reclaim would have to take back: it has to wait. */
static gfp_t staging_gfp(const struct weft_mpa_tx *tx)
{
	gfp_t gfp = tx->allocation & ~__GFP_DIRECT_RECLAIM;

	if (tx->atomic)
		gfp = GFP_ATOMIC | (gfp & __GFP_MEMALLOC);
	return gfp | __GFP_NOWARN;
}

/*
 * Make @vec long enough for the runs of an FPDU of @len bytes, even if only single pages
 * are had. A stream that sends one that is large will send more: from then on @vec is long
 * enough for whole batches.
 */
static int make_vecs(struct weft_mpa_tx *tx, u32 len)
{
	struct bio_vec *many;

	if (tx->count + len / PAGE_SIZE + WEFT_EXTRA_VECS <= tx->vecs || tx->vec != tx->few)
		return 0;
	many = kmalloc_array(WEFT_BATCH_VECS, sizeof(*many), staging_gfp(tx));
	if (!many) {
		tx->no_memory = true;
		return -ENOMEM;
	}
	memcpy(many, tx->few, tx->count * sizeof(*many));
	tx->vec = many;
	tx->vecs = WEFT_BATCH_VECS;
	return 0;
}

/* Nothing is written in the space any more: add what was to the batch. */
static __always_inline int close_fragment(struct weft_mpa_tx *tx)
{
	struct page_frag *frag = unlikely(tx->atomic) ? this_cpu_ptr(&softirq_frag) :
							&current->task_frag;
	u32 len = tx->fresh;
	struct bio_vec *last;
	int ret = 0;

	tx->space = 0;
	tx->fresh = 0;
	if (!len)
		return 0;
	last = tx->count > tx->head ? &tx->vec[tx->count - 1] : NULL;
	if (last && !(tx->eor & BIT_ULL(tx->count - 1)) && last->bv_page == frag->page &&
	    last->bv_offset + last->bv_len == frag->offset) {
		last->bv_len += len;
	} else if (WARN_ON_ONCE(tx->count == tx->vecs)) {
		ret = -ENOBUFS;
	} else {
		get_page(frag->page);
		tx->vec[tx->count++] = (struct bio_vec){
			.bv_page = frag->page,
			.bv_offset = frag->offset,
			.bv_len = len,
		};
	}
	frag->offset += len;
	return ret;
}

/*
 * Room for the rest of the FPDU, or for some of it, in the fragment of this task.
 * Nothing that is done before close_fragment() may want another fragment.
 */
static __always_inline int open_fragment(struct weft_mpa_tx *tx)
{
	struct page_frag *frag = unlikely(tx->atomic) ? this_cpu_ptr(&softirq_frag) :
							&current->task_frag;
	u32 len = tx->end - tx->pos;

	if (WARN_ON_ONCE(!len))
		return -EMSGSIZE;
	if (!skb_page_frag_refill(min(len, FRAGMENT_MIN), frag, staging_gfp(tx))) {
		tx->no_memory = true;
		return -ENOMEM;
	}
	tx->space = min(len, frag->size - frag->offset);
	tx->to = (u8 *)page_address(frag->page) + frag->offset;
	return 0;
}

/* By field: a compound literal is cleared first, byte by byte on some CPUs. */
static void set_mark(struct weft_mpa_tx *tx)
{
	struct weft_mpa_tx_mark *mark = &tx->mark;

	mark->pos = tx->pos;
	mark->eor = tx->eor;
	mark->seg_fill = tx->seg_fill;
	mark->count = tx->count;
	mark->last_len = tx->count > tx->head ? tx->vec[tx->count - 1].bv_len : 0;
	mark->big = tx->big;
}

/* --- staging --- */

/* Bring the CRC up to date. */
static void sum_up(struct weft_mpa_tx *tx)
{
	if (tx->unsummed)
		tx->running = weft_crc_update(tx->running, tx->summed_to, tx->unsummed);
	tx->unsummed = 0;
}

/* The next @len bytes of the space are written. */
static inline void advance_summed(struct weft_mpa_tx *tx, u32 len)
{
	if (tx->crc) {
		/* Header, payload and pad of a small FPDU are contiguous: summed up in one pass. */
		if (tx->summed_to + tx->unsummed != tx->to)
			sum_up(tx);
		if (!tx->unsummed)
			tx->summed_to = tx->to;
		tx->unsummed += len;
		if (tx->unsummed >= PIECE)
			sum_up(tx);
	}
	weft_mpa_tx_advance(tx, len);
}

static int stage_bytes(struct weft_mpa_tx *tx, const u8 *from, u32 len)
{
	while (len) {
		int ret = tx->space ? 0 : close_fragment(tx) ?: open_fragment(tx);
		u32 n = min3(len, tx->space, PIECE);

		if (ret)
			return ret;
		weft_copy(tx->to, from, n);
		advance_summed(tx, n);
		from += n;
		len -= n;
	}
	return 0;
}

/* Stage the marker if one is due, then say how far it is to the next. */
static int pass_marker(struct weft_mpa_tx *tx, u32 *run)
{
	u8 marker[WEFT_MPA_MARKER_BYTES];
	int ret;

	while (weft_mpa_cursor_run(&tx->cursor, run) == WEFT_RUN_MARKER) {
		weft_mpa_marker_store(weft_mpa_cursor_ptr(&tx->cursor), marker);
		ret = stage_bytes(tx, marker, sizeof(marker));
		if (ret)
			return ret;
		weft_mpa_cursor_pass(&tx->cursor, sizeof(marker));
	}
	return 0;
}

static int stage_marked(struct weft_mpa_tx *tx, const u8 *from, u32 len)
{
	while (len) {
		u32 n;
		int ret;

		ret = pass_marker(tx, &n);
		if (ret)
			return ret;
		n = min(n, len);
		ret = stage_bytes(tx, from, n);
		if (ret)
			return ret;
		weft_mpa_cursor_pass(&tx->cursor, n);
		from += n;
		len -= n;
	}
	return 0;
}

/**
 * weft_mpa_tx_cancel - undo the FPDU begun last
 * @tx: the writer, after begin or copy
 *
 * Context: process, tx claim. The stream looks as before weft_mpa_tx_begin().
 */
void weft_mpa_tx_cancel(struct weft_mpa_tx *tx)
{
	const struct weft_mpa_tx_mark *mark = &tx->mark;

	tx->space = 0;
	tx->fresh = 0;
	while (tx->count > mark->count)
		put_page(tx->vec[--tx->count].bv_page);
	if (tx->count > tx->head)
		tx->vec[tx->count - 1].bv_len = mark->last_len;
	tx->pos = mark->pos;
	tx->eor = mark->eor;
	tx->seg_fill = mark->seg_fill;
	tx->big = mark->big;
}

/**
 * weft_mpa_tx_begin - start an FPDU
 * @tx: the writer, not full
 * @start: DDP and RDMAP header, behind WEFT_MPA_LEN_BYTES that are filled in here
 * @hdr_len: of that header
 * @payload_len: what the copy calls will bring in all
 *
 * Context: process, tx claim. Return: 0; after -ENOMEM or another -errno there
 * is nothing to cancel.
 */
int weft_hot weft_mpa_tx_begin(struct weft_mpa_tx *tx, u8 *start, u32 hdr_len, u32 payload_len)
{
	u32 ulpdu_len = hdr_len + payload_len;
	u32 wire_len;
	int ret;

	if (WARN_ON_ONCE(ulpdu_len > U16_MAX))
		return -EMSGSIZE;
	put_unaligned_be16(ulpdu_len, start);
	tx->no_memory = false;

	wire_len = tx->markers ? weft_mpa_wire_len(ulpdu_len, tx->pos, true) :
				 weft_mpa_bare_len(ulpdu_len);
	ret = make_vecs(tx, wire_len);
	if (ret)
		return ret;
	set_mark(tx);
	if (wire_len >= ALIGN_FROM) { /* see above: may it follow without a cut in it? */
		tx->big = true;
		if (tx->markers && tx->seg_fill && tx->seg_fill + wire_len > tx->mss &&
		    tx->count > tx->head) {
			tx->eor |= BIT_ULL(tx->count - 1);
			tx->seg_fill = 0;
		}
	}
	tx->seg_fill += wire_len;
	if (tx->seg_fill >= tx->mss) /* as a rule not: divisions are slow */
		tx->seg_fill %= tx->mss;
	tx->end = tx->pos + wire_len;
	tx->ulpdu_len = ulpdu_len;
	if (tx->markers)
		weft_mpa_cursor_init(&tx->cursor, tx->pos, ulpdu_len, true);
	tx->running = WEFT_CRC_SEED;
	tx->unsummed = 0;
	ret = open_fragment(tx);
	if (!ret)
		ret = weft_mpa_tx_copy_linear(tx, start, WEFT_MPA_LEN_BYTES + hdr_len);
	if (ret)
		weft_mpa_tx_cancel(tx);
	return ret;
}

/* weft_mpa_tx_copy_linear() for what is long, or takes more than a copy. */
int weft_hot weft_mpa_tx_copy_any(struct weft_mpa_tx *tx, const void *from, u32 len)
{
	if (tx->markers)
		return stage_marked(tx, from, len);
	if (len > PIECE || len > tx->space)
		return stage_bytes(tx, from, len);
	weft_copy(tx->to, from, len);
	advance_summed(tx, len);
	return 0;
}

/**
 * weft_mpa_tx_end - complete the FPDU
 * @tx: the writer, all of the payload copied
 *
 * Context: process, tx claim. Return: 0, or -errno: cancel the FPDU.
 */
int weft_hot weft_mpa_tx_end(struct weft_mpa_tx *tx)
{
	static const u8 zero[4];
	u32 pad = weft_mpa_pad(tx->ulpdu_len);
	u8 field[WEFT_MPA_CRC_BYTES]; /* whatever its value, the field itself is always there */
	int ret = 0;
	u32 run;

	if (!tx->markers && pad + WEFT_MPA_CRC_BYTES <= tx->space) {
		put_unaligned(0, (u32 *)tx->to);
		advance_summed(tx, pad);
		sum_up(tx);
		weft_crc_store(tx->running, tx->to);
		weft_mpa_tx_advance(tx, WEFT_MPA_CRC_BYTES);
	} else {
		if (tx->markers)
			ret = stage_marked(tx, zero, pad) ?: pass_marker(tx, &run);
		else
			ret = stage_bytes(tx, zero, pad);
		if (ret)
			return ret;
		sum_up(tx);
		weft_crc_store(tx->running, field);
		ret = stage_bytes(tx, field, sizeof(field));
	}
	return ret ?: close_fragment(tx);
}

/* --- spans: FPDUs that fill one TCP segment each --- */

/**
 * weft_mpa_tx_span_begin - start FPDUs of @ulpdu_len each
 * @tx: the writer, between two FPDUs, weft_mpa_tx_may_span()
 * @ulpdu_len: of each
 * @most: how many there are
 *
 * Context: process, tx claim. Return: how many are to be put now, or 0 if they go one by one.
 */
u32 weft_hot weft_mpa_tx_span_begin(struct weft_mpa_tx *tx, u32 ulpdu_len, u32 most)
{
	u32 wire_len = weft_mpa_bare_len(ulpdu_len);
	u32 staged = tx->pos - tx->pushed;

	/* An FPDU of exactly one segment at the start of one leaves nothing to align. */
	if (wire_len != tx->mss || staged >= tx->goal || make_vecs(tx, wire_len))
		return 0;
	set_mark(tx);
	tx->end = tx->pos + (u64)wire_len * min(most, DIV_ROUND_UP(tx->goal - staged, wire_len));
	if (open_fragment(tx))
		return 0;
	most = tx->space / wire_len;
	if (!most)
		tx->space = 0;
	else
		tx->big = true;
	return most;
}

/**
 * weft_mpa_tx_span_end - complete the span
 * @tx: the writer, all FPDUs of it put
 *
 * Context: process, tx claim. Return: 0, or -errno: weft_mpa_tx_cancel() undoes all of them.
 */
int weft_hot weft_mpa_tx_span_end(struct weft_mpa_tx *tx)
{
	return close_fragment(tx);
}
