// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Framing. FPDUs are built one behind the other in page fragments of the running
 * task, where they also get their CRC, and TCP takes those pages as they are.
 */
#include "net/txsock.h"

#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "net/tcpsock.h"
#include "net/txalign.h"
#include "net/txroom.h"
#include "net/ulpdu.h"
#include "proto/crc.h"
#include "proto/hot.h"

#define PIECE 8192U /* copied, then summed while in the cache */

static_assert(WEFT_TRAIN_VECS >= 2 * WEFT_FPDU_VECS);
static_assert(WEFT_TRAIN_VECS <= 64, "one bit each in eor");

/* What is staged: one of the two. */
struct source {
	const u8 *linear;
	struct iov_iter *iter;
};

/**
 * weft_txsock_init - start writing at stream position 0
 * @tx: the writer
 * @s: a connected socket, which outlives @tx
 * @crc: CRCs are valid
 * @markers: insert markers
 * @counters: of the device
 *
 * Context: any; nothing is allocated.
 */
void weft_txsock_init(struct weft_txsock *tx, struct weft_sock *s, bool crc, bool markers,
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
	tx->base = READ_ONCE(tcp_sk(tx->sk)->write_seq);
	weft_txsock_refresh(tx);
}

static void put_runs(struct weft_txsock *tx, u32 from, u32 to)
{
	for (; from < to; from++)
		put_page(tx->vec[from].bv_page);
}

/**
 * weft_txsock_free - drop what TCP has not accepted
 * @tx: the writer; may be freed twice
 *
 * Context: any.
 */
void weft_txsock_free(struct weft_txsock *tx)
{
	put_runs(tx, tx->head, tx->count);
	tx->head = 0;
	tx->count = 0;
	if (tx->vec != tx->few)
		kfree(tx->vec);
	tx->vec = tx->few;
	tx->vecs = WEFT_FEW_VECS;
	weft_txsock_end_loan(tx);
}

/*
 * How many buffers of that size the train shall fill. What is staged counts for no socket yet,
 * so it must not be much more than the socket has room for.
 */
static u32 buffers_of_train(const struct weft_txsock *tx, u32 bytes)
{
	u32 room;

	if (tx->buffers == 1)
		return 1;
	room = max(sk_stream_wspace(tx->sk), 0);
	return clamp(room / bytes, 1U, tx->buffers);
}

/**
 * weft_txsock_refresh - see whether TCP changed its segment size
 * @tx: the writer, between two FPDUs
 *
 * Context: process, tx claim. Cheap; meant for once per train.
 */
void weft_hot weft_txsock_refresh(struct weft_txsock *tx)
{
	const struct tcp_sock *tp = tcp_sk(tx->sk);
	u32 mss = READ_ONCE(tp->mss_cache) & ~3U; /* as push.c sees to */
	u32 segs = max_t(u32, READ_ONCE(tp->gso_segs), 1);
	u32 bytes = min(segs * mss, WEFT_BUFFER_BYTES);

	/* A train a little longer than buffers would leave a short one behind full ones. */
	tx->goal = bytes * buffers_of_train(tx, bytes);
	if (unlikely(tx->loan))
		tx->goal = weft_txalign_lent_goal(mss, tx->goal);
	if (mss == tx->mss)
		return;
	tx->mss = mss;
	tx->mulpdu = weft_mpa_mulpdu(mss, tx->markers);
	tx->seg_fill %= mss;
}

/* --- staging --- */

/* In the middle of an FPDU. */
static int next_room(struct weft_txsock *tx)
{
	return weft_txroom_close(tx) ?: weft_txroom_open(tx);
}

/* Neither side is a process's memory by address: there is nothing to harden. */
static bool draw(struct source *from, u8 *to, u32 len)
{
	if (from->iter)
		return _copy_from_iter(to, len, from->iter) == len;
	weft_copy(to, from->linear, len);
	from->linear += len;
	return true;
}

/* Bring the CRC up to date. */
static void sum_up(struct weft_txsock *tx)
{
	if (tx->unsummed)
		tx->running = weft_crc_update(tx->running, tx->summed_to, tx->unsummed);
	tx->unsummed = 0;
}

/* One pass for header, payload and pad of a small FPDU: they lie in a row. */
static void sum_later(struct weft_txsock *tx, const u8 *staged, u32 len)
{
	if (tx->summed_to + tx->unsummed != staged)
		sum_up(tx);
	if (!tx->unsummed)
		tx->summed_to = staged;
	tx->unsummed += len;
	if (tx->unsummed >= PIECE)
		sum_up(tx);
}

/* The next @len octets of the room are written. */
static inline void advance(struct weft_txsock *tx, u32 len)
{
	if (tx->crc)
		sum_later(tx, tx->to, len);
	weft_txsock_advance(tx, len);
}

static int stage_all(struct weft_txsock *tx, struct source *from, u32 len)
{
	while (len) {
		int ret = tx->room ? 0 : next_room(tx);
		u32 n = min3(len, tx->room, PIECE);

		if (ret)
			return ret;
		if (!draw(from, tx->to, n))
			return -EFAULT;
		advance(tx, n);
		len -= n;
	}
	return 0;
}

/* Stage the marker if one is due, then say how far it is to the next. */
static int pass_marker(struct weft_txsock *tx, u32 *run)
{
	u8 marker[WEFT_MPA_MARKER_OCTETS];
	struct source from = { .linear = marker };
	int ret;

	while (weft_mpa_cursor_run(&tx->cursor, run) == WEFT_RUN_MARKER) {
		weft_mpa_marker_store(weft_mpa_cursor_ptr(&tx->cursor), marker);
		ret = stage_all(tx, &from, sizeof(marker));
		if (ret)
			return ret;
		weft_mpa_cursor_pass(&tx->cursor, sizeof(marker));
	}
	return 0;
}

static int stage_marked(struct weft_txsock *tx, struct source *from, u32 len)
{
	while (len) {
		u32 n;
		int ret;

		ret = pass_marker(tx, &n);
		if (ret)
			return ret;
		n = min(n, len);
		ret = stage_all(tx, from, n);
		if (ret)
			return ret;
		weft_mpa_cursor_pass(&tx->cursor, n);
		len -= n;
	}
	return 0;
}

static int stage(struct weft_txsock *tx, struct source *from, u32 len)
{
	return tx->markers ? stage_marked(tx, from, len) : stage_all(tx, from, len);
}

/* Has the open room space for @len octets that are all to be written in a row? */
static inline bool fits(const struct weft_txsock *tx, u32 len)
{
	return len <= PIECE && weft_txsock_fits(tx, len);
}

static __always_inline int stage_linear(struct weft_txsock *tx, const u8 *octets, u32 len)
{
	struct source from = { .linear = octets };

	if (!fits(tx, len))
		return stage(tx, &from, len);
	weft_copy(tx->to, octets, len);
	advance(tx, len);
	return 0;
}

/**
 * weft_txsock_cancel - undo the FPDU begun last
 * @tx: the writer, after begin or copy
 *
 * Context: process, tx claim. The stream looks as before weft_txsock_begin().
 */
void weft_txsock_cancel(struct weft_txsock *tx)
{
	const struct weft_txmark *mark = &tx->mark;

	tx->room = 0;
	tx->fresh = 0;
	put_runs(tx, mark->count, tx->count);
	tx->count = mark->count;
	if (tx->count > tx->head)
		tx->vec[tx->count - 1].bv_len = mark->last_len;
	tx->pos = mark->pos;
	tx->eor = mark->eor;
	tx->seg_fill = mark->seg_fill;
	tx->big = mark->big;
	tx->lent &= ~(~0ULL << mark->count);
}

/**
 * weft_txsock_begin - start an FPDU
 * @tx: the writer, not full
 * @start: DDP and RDMAP header, behind WEFT_MPA_LEN_OCTETS that are filled in here
 * @hdr_len: of that header
 * @payload_len: what the copy calls will bring in all
 *
 * Context: process, tx claim. Return: 0; after -ENOMEM or another -errno there
 * is nothing to cancel.
 */
int weft_hot weft_txsock_begin(struct weft_txsock *tx, u8 *start, u32 hdr_len, u32 payload_len)
{
	u32 ulpdu_len = hdr_len + payload_len;
	u32 wire_len;
	int ret;

	if (WARN_ON_ONCE(ulpdu_len > U16_MAX))
		return -EMSGSIZE;
	put_unaligned_be16(ulpdu_len, start);

	wire_len = tx->markers ? weft_mpa_wire_len(ulpdu_len, tx->pos, true) :
				 weft_mpa_bare_len(ulpdu_len);
	ret = weft_txroom_make(tx, wire_len);
	if (ret)
		return ret;
	weft_txroom_mark(tx);
	weft_txalign_place(tx, wire_len);
	tx->end = tx->pos + wire_len;
	tx->ulpdu_len = ulpdu_len;
	if (tx->markers)
		weft_mpa_cursor_init(&tx->cursor, tx->pos, ulpdu_len, true);
	tx->running = WEFT_CRC_SEED;
	tx->unsummed = 0;
	ret = weft_txroom_open(tx) ?: stage_linear(tx, start, WEFT_MPA_LEN_OCTETS + hdr_len);
	if (ret)
		weft_txsock_cancel(tx);
	return ret;
}

/**
 * weft_txsock_copy - payload from an iterator
 * @tx: the writer, within an FPDU
 * @from: kernel memory (bvec or kvec), advanced
 * @len: octets
 *
 * Context: process, tx claim. Return: 0, or -errno: cancel the FPDU.
 */
int weft_txsock_copy(struct weft_txsock *tx, struct iov_iter *from, u32 len)
{
	struct source source = { .iter = from };

	return stage(tx, &source, len);
}

/* weft_txsock_copy_linear() for what is long, or takes more than a copy. */
int weft_hot weft_txsock_copy_any(struct weft_txsock *tx, const void *from, u32 len)
{
	return stage_linear(tx, from, len);
}

/**
 * weft_txsock_lend - payload that TCP sends from where it is
 * @tx: the writer, within an FPDU that is @lending, without CRC and markers
 * @from: memory with a page each, which stays as it is until the loan is back
 * @len: octets
 *
 * Context: process, tx claim. Return: 0, or -errno: cancel the FPDU.
 */
int weft_txsock_lend(struct weft_txsock *tx, const u8 *from, u32 len)
{
	int ret = weft_txroom_close(tx);

	tx->pos += len;
	while (!ret && len) {
		u32 n = min_t(u32, len, PAGE_SIZE - offset_in_page(from));

		ret = weft_txroom_add_run(tx, virt_to_page(from), offset_in_page(from), n);
		from += n;
		len -= n;
	}
	return ret;
}

/* The pad, to which markers count like any other octets. */
static int stage_pad(struct weft_txsock *tx, u32 pad)
{
	static const u8 zero[4];
	struct source from = { .linear = zero };

	return stage(tx, &from, pad);
}

/* The CRC field; whatever its value, the field itself is always there. */
static int stage_crc(struct weft_txsock *tx)
{
	u8 field[WEFT_MPA_CRC_OCTETS];
	struct source from = { .linear = field };
	u32 run;
	int ret;

	if (tx->markers) {
		ret = pass_marker(tx, &run);
		if (ret)
			return ret;
	}
	sum_up(tx);
	weft_crc_store(tx->running, field);
	return stage_all(tx, &from, sizeof(field));
}

/* Both at once where the room is. */
static void write_end(struct weft_txsock *tx, u32 pad)
{
	put_unaligned(0, (u32 *)tx->to);
	advance(tx, pad);
	sum_up(tx);
	weft_crc_store(tx->running, tx->to);
	advance(tx, WEFT_MPA_CRC_OCTETS);
}

/**
 * weft_txsock_end - complete the FPDU
 * @tx: the writer, all of the payload copied
 *
 * Context: process, tx claim. Return: 0, or -errno: cancel the FPDU.
 */
int weft_hot weft_txsock_end(struct weft_txsock *tx)
{
	u32 pad = weft_mpa_pad(tx->ulpdu_len);
	int ret = 0;

	if (fits(tx, pad + WEFT_MPA_CRC_OCTETS))
		write_end(tx, pad);
	else
		ret = stage_pad(tx, pad) ?: stage_crc(tx);
	ret = ret ?: weft_txroom_close(tx);
	if (!ret && tx->lending)
		tx->lent |= GENMASK_ULL(tx->count - 1, min(tx->mark.count, tx->count - 1));
	return ret;
}
