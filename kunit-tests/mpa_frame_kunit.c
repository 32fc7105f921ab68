// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * FPDUs in a stream, with and without markers: RFC 5044, 4. A framer and a
 * deframer driven by the cursor meet the vectors, and a deframer that knows no
 * cursor.
 */
#include "proto/crc.h"
#include "proto/mpa_frame.h"
#include "suite.h"
#include "vectors.h"

WEFT_ROWS(weft_vec_mulpdu)
WEFT_ROWS(weft_vec_stream)

static void mulpdu_vector(struct kunit *test)
{
	const struct weft_vec_mulpdu *row = test->param_value;

	KUNIT_EXPECT_EQ(test, weft_mpa_mulpdu(row->emss, false), row->plain);
	KUNIT_EXPECT_EQ(test, weft_mpa_mulpdu(row->emss, true), row->marked);
}

/* RFC 5044, 4.5; clamped to what section 3 allows. */
static u32 mulpdu_by_the_book(u32 emss, bool markers)
{
	int mulpdu = (int)emss - 6 - (int)(emss % 4);

	if (markers)
		mulpdu -= 4 * (int)((emss + 511) / 512);
	if (mulpdu < 128)
		return 128;
	return mulpdu > 64768 ? 64768 : mulpdu;
}

static void mulpdu_every_emss(struct kunit *test)
{
	u32 emss;

	for (emss = 0; emss < 65600; emss++) {
		KUNIT_EXPECT_EQ_MSG(test, weft_mpa_mulpdu(emss, false),
				    mulpdu_by_the_book(emss, false), "EMSS %u", emss);
		KUNIT_EXPECT_EQ_MSG(test, weft_mpa_mulpdu(emss, true),
				    mulpdu_by_the_book(emss, true), "EMSS %u, markers", emss);
	}
	KUNIT_EXPECT_EQ(test, weft_mpa_mulpdu(0xffffffff, true), 64768U);
}

/* The FPDU of a longest ULPDU fills a segment and is no longer, wherever it starts. */
static void mulpdu_fits_segment(struct kunit *test)
{
	static const u32 emss[] = { 536, 1220, 1440, 1448, 1460, 8948, 8960 };
	u32 i, pos, len;

	for (i = 0; i < ARRAY_SIZE(emss); i++) {
		len = weft_mpa_wire_len(weft_mpa_mulpdu(emss[i], false), 0, false);
		KUNIT_EXPECT_LE_MSG(test, len, emss[i], "EMSS %u", emss[i]);
		for (pos = 0; pos < 512; pos += 4) {
			len = weft_mpa_wire_len(weft_mpa_mulpdu(emss[i], true), pos, true);
			KUNIT_EXPECT_LE_MSG(test, len, emss[i], "EMSS %u at %u", emss[i], pos);
		}
	}
}

static void pad_and_bare_len(struct kunit *test)
{
	u32 len, pad;

	for (len = 0; len < 65536; len++) {
		pad = weft_mpa_pad(len);
		KUNIT_EXPECT_LE_MSG(test, pad, 3U, "%u bytes", len);
		KUNIT_EXPECT_EQ_MSG(test, (2 + len + pad) % 4, 0U, "%u bytes", len);
		KUNIT_EXPECT_EQ_MSG(test, weft_mpa_bare_len(len), 2 + len + pad + 4, "%u bytes",
				    len);
	}
}

/*
 * A framer made of the cursor. @piece: longest piece passed at once, 0: whole runs.
 * Returns the bytes written; everything but the CRC is covered by it.
 */
struct framer {
	u32 pos;
	bool markers;
	bool crc;
	u32 piece;
};

static u32 store_run(enum weft_mpa_run run, const struct weft_mpa_cursor *c, u32 len,
		     const u8 *ulpdu, u8 *out)
{
	u8 length[2];

	switch (run) {
	case WEFT_RUN_MARKER:
		weft_mpa_marker_store(weft_mpa_cursor_ptr(c), out);
		break;
	case WEFT_RUN_LENGTH:
		put_unaligned_be16(c->ulpdu_len, length);
		memcpy(out, length + c->at, len);
		break;
	case WEFT_RUN_ULPDU:
		memcpy(out, ulpdu + c->at - 2, len);
		break;
	default:
		memset(out, 0, len);
		break;
	}
	return len;
}

static u32 frame(const struct framer *f, const void *ulpdu, u32 ulpdu_len, u8 *out)
{
	struct weft_mpa_cursor c;
	enum weft_mpa_run run;
	u32 at = 0, len, crc;

	weft_mpa_cursor_init(&c, f->pos, ulpdu_len, f->markers);
	while ((run = weft_mpa_cursor_run(&c, &len)) != WEFT_RUN_END) {
		if (f->piece && run != WEFT_RUN_MARKER)
			len = min_t(u32, len, f->piece);
		at += store_run(run, &c, len, ulpdu, out + at);
		weft_mpa_cursor_pass(&c, len);
	}
	crc = weft_crc_update(WEFT_CRC_SEED, out, at - 4);
	if (f->crc)
		weft_crc_store(crc, out + at - 4);
	return at;
}

/* A deframer made of the cursor, the other way round. */
struct deframed {
	u32 used;
	u32 ulpdu_len;
	bool crc_ok;
	bool markers_ok;
};

static void take_run(enum weft_mpa_run run, struct weft_mpa_cursor *c, u32 len, const u8 *in,
		     u8 *ulpdu, struct deframed *d)
{
	if (run == WEFT_RUN_MARKER)
		d->markers_ok &= weft_mpa_marker_ok(c, in);
	if (run == WEFT_RUN_ULPDU)
		memcpy(ulpdu + c->at - 2, in, len);
	if (run == WEFT_RUN_LENGTH)
		d->ulpdu_len |= in[0] << (c->at ? 0 : 8);
	if (run == WEFT_RUN_LENGTH && len == 2)
		d->ulpdu_len |= in[1];
	weft_mpa_cursor_pass(c, len);
	if (run == WEFT_RUN_LENGTH && c->at == 2)
		c->ulpdu_len = d->ulpdu_len;
}

static void deframe(const struct framer *f, const u8 *wire, u8 *ulpdu, struct deframed *d)
{
	struct weft_mpa_cursor c;
	enum weft_mpa_run run;
	u32 len;

	*d = (struct deframed){ .markers_ok = true };
	weft_mpa_cursor_init(&c, f->pos, 0, f->markers);
	while ((run = weft_mpa_cursor_run(&c, &len)) != WEFT_RUN_END) {
		if (f->piece && run != WEFT_RUN_MARKER)
			len = min_t(u32, len, f->piece);
		take_run(run, &c, len, wire + d->used, ulpdu, d);
		d->used += len;
	}
	d->crc_ok = weft_crc_matches(weft_crc_update(WEFT_CRC_SEED, wire, d->used - 4),
				     wire + d->used - 4);
}

/*
 * A deframer that goes by bytes and positions, as RFC 5044 tells it. Returns the
 * bytes used, 0 if anything is not as it should be.
 */
struct plain_reader {
	const u8 *in;
	u32 pos;
	u32 used;
	u32 start;	/* position of the length field */
	u32 taken;	/* bytes that are no markers */
	bool bad;
};

static u8 next_byte(struct plain_reader *r, bool markers)
{
	if (markers && (r->pos + r->used) % 512 == 0) {
		u32 ptr = r->taken ? r->pos + r->used - r->start : 0;

		r->bad |= get_unaligned_be32(r->in + r->used) != (ptr & 0xffff);
		r->used += 4;
	}
	if (!r->taken)
		r->start = r->pos + r->used;
	r->taken++;
	return r->in[r->used++];
}

static u32 deframe_plainly(const struct framer *f, const u8 *wire, u8 *ulpdu, u32 *ulpdu_len)
{
	struct plain_reader r = { .in = wire, .pos = f->pos };
	u32 i, covered;

	*ulpdu_len = next_byte(&r, f->markers) << 8;
	*ulpdu_len |= next_byte(&r, f->markers);
	for (i = 0; i < *ulpdu_len; i++)
		ulpdu[i] = next_byte(&r, f->markers);
	while (r.taken % 4)
		r.bad |= next_byte(&r, f->markers) != 0;
	covered = r.used;
	if (f->markers && (f->pos + r.used) % 512 == 0)
		covered += 4;
	for (i = 0; i < 4; i++)
		next_byte(&r, f->markers);
	r.bad |= r.used != covered + 4;
	r.bad |= f->crc &&
		 !weft_crc_matches(weft_crc_update(WEFT_CRC_SEED, wire, covered), wire + covered);
	return r.bad ? 0 : r.used;
}

static u8 *filled(struct kunit *test, u32 len)
{
	u8 *mem = kunit_kzalloc(test, len ?: 1, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mem);
	memset(mem, 0xa5, len);
	return mem;
}

static struct framer framer_of(const struct weft_vec_stream *row, u32 i, u32 piece)
{
	return (struct framer){
		.pos = row->fpdu[i].pos,
		.markers = row->markers_on,
		.crc = row->crc_on,
		.piece = piece,
	};
}

static const u32 pieces[] = { 0, 1, 3, 500 };

static void frame_vector(struct kunit *test)
{
	const struct weft_vec_stream *row = test->param_value;
	const u8 *want = row->wire;
	u32 i, k;

	for (i = 0; i < row->fpdus; want += row->fpdu[i++].len) {
		const struct weft_vec_fpdu *fpdu = &row->fpdu[i];

		KUNIT_EXPECT_EQ(test,
				weft_mpa_wire_len(fpdu->ulpdu_len, fpdu->pos, row->markers_on),
				fpdu->len);
		for (k = 0; k < ARRAY_SIZE(pieces); k++) {
			struct framer f = framer_of(row, i, pieces[k]);
			u8 *out = filled(test, fpdu->len);

			KUNIT_ASSERT_EQ(test, frame(&f, fpdu->ulpdu, fpdu->ulpdu_len, out),
					fpdu->len);
			KUNIT_EXPECT_EQ(test, memcmp(out, want, fpdu->len), 0);
		}
	}
}

static void deframe_vector(struct kunit *test)
{
	const struct weft_vec_stream *row = test->param_value;
	const u8 *wire = row->wire;
	u32 i, k;

	for (i = 0; i < row->fpdus; wire += row->fpdu[i++].len) {
		const struct weft_vec_fpdu *fpdu = &row->fpdu[i];
		const u8 *in = weft_exact_copy(test, wire, fpdu->len);

		for (k = 0; k < ARRAY_SIZE(pieces); k++) {
			struct framer f = framer_of(row, i, pieces[k]);
			u8 *ulpdu = filled(test, fpdu->ulpdu_len);
			struct deframed d;

			deframe(&f, in, ulpdu, &d);
			KUNIT_EXPECT_EQ(test, d.used, fpdu->len);
			KUNIT_EXPECT_EQ(test, d.ulpdu_len, fpdu->ulpdu_len);
			KUNIT_EXPECT_TRUE(test, d.markers_ok);
			KUNIT_EXPECT_EQ(test, d.crc_ok, row->crc_on);
			KUNIT_EXPECT_EQ(test, memcmp(ulpdu, fpdu->ulpdu, fpdu->ulpdu_len), 0);
		}
	}
}

/* RFC 5044, 4.1 and 4.2: what the CRC covers, every bit of it (384 here). */
static void deframe_any_bit_flipped(struct kunit *test)
{
	static const struct framer f = { .crc = true };
	u8 ulpdu[42] = { 0x41, 0x43 };
	struct deframed d;
	u8 wire[48];
	u32 bit;

	KUNIT_ASSERT_EQ(test, frame(&f, ulpdu, sizeof(ulpdu), wire), (u32)sizeof(wire));
	for (bit = 16; bit < 8 * sizeof(wire); bit++) {		/* 16: the length stays */
		wire[bit / 8] ^= 1 << bit % 8;
		deframe(&f, wire, ulpdu, &d);
		KUNIT_EXPECT_FALSE_MSG(test, d.crc_ok, "bit %u", bit);
		wire[bit / 8] ^= 1 << bit % 8;
	}
	deframe(&f, wire, ulpdu, &d);
	KUNIT_EXPECT_TRUE(test, d.crc_ok);
}

struct length_row {
	const char *name;
	u32 ulpdu_len;
};

/* Empty, one of each padding, about a marker interval and two, the longest ones. */
static const struct length_row length_rows[] = {
	{ "0_bytes", 0 },	 { "18_bytes", 18 },	  { "19_bytes", 19 },
	{ "20_bytes", 20 },	 { "21_bytes", 21 },	  { "25_bytes", 25 },
	{ "42_bytes", 42 },	 { "500_bytes", 500 },	  { "502_bytes", 502 },
	{ "505_bytes", 505 },	 { "506_bytes", 506 },	  { "510_bytes", 510 },
	{ "1030_bytes", 1030 }, { "8882_bytes", 8882 }, { "64768_bytes", 64768 },
	{ "65535_bytes", 65535 },
};

WEFT_ROWS(length_rows)

struct geometry {
	struct framer f;
	u32 ulpdu_len;
	u32 wire_len;
	u8 *wire;
	u8 *back;
};

static void meet_both_deframers(struct kunit *test, struct geometry *g, const u8 *ulpdu)
{
	struct deframed d;
	u32 len = 0, used = frame(&g->f, ulpdu, g->ulpdu_len, g->wire);

	KUNIT_EXPECT_EQ_MSG(test, used, weft_mpa_wire_len(g->ulpdu_len, g->f.pos, g->f.markers),
			    "from %u", g->f.pos);
	KUNIT_ASSERT_LE(test, used, g->wire_len);
	KUNIT_EXPECT_EQ_MSG(test, deframe_plainly(&g->f, g->wire, g->back, &len), used, "from %u",
			    g->f.pos);
	KUNIT_ASSERT_EQ(test, len, g->ulpdu_len);
	KUNIT_EXPECT_EQ_MSG(test, memcmp(g->back, ulpdu, len), 0, "from %u", g->f.pos);

	memset(g->back, 0xa5, len);
	deframe(&g->f, g->wire, g->back, &d);
	KUNIT_EXPECT_TRUE_MSG(test, d.used == used && d.crc_ok && d.markers_ok, "from %u",
			      g->f.pos);
	KUNIT_EXPECT_EQ_MSG(test, memcmp(g->back, ulpdu, len), 0, "from %u", g->f.pos);
}

static void prepare(struct kunit *test, struct geometry *g, u32 ulpdu_len, u8 **ulpdu)
{
	u64 seed = 5044;
	u32 i;

	g->ulpdu_len = ulpdu_len;
	g->wire_len = weft_mpa_bare_len(ulpdu_len) + 4 * (2 + ulpdu_len / 508);
	g->wire = filled(test, g->wire_len);
	g->back = filled(test, ulpdu_len);
	*ulpdu = filled(test, ulpdu_len);
	for (i = 0; i < ulpdu_len; i++)
		(*ulpdu)[i] = weft_next_random(&seed);
}

/* Long ones have a marker in every interval anyway. */
static u32 alignment_step(const struct length_row *row)
{
	return row->ulpdu_len > 2000 ? 36 : 4;
}

static void frame_every_alignment(struct kunit *test)
{
	const struct length_row *row = test->param_value;
	struct geometry g = { .f = { .markers = true, .crc = true } };
	u32 step = alignment_step(row);
	u8 *ulpdu;

	prepare(test, &g, row->ulpdu_len, &ulpdu);
	for (g.f.pos = 0; g.f.pos < 512; g.f.pos += step)
		meet_both_deframers(test, &g, ulpdu);
}

/* RFC 5044, 4.3: positions wrap like TCP's sequence numbers do. */
static void frame_over_position_wrap(struct kunit *test)
{
	const struct length_row *row = test->param_value;
	struct geometry g = { .f = { .markers = true, .crc = true } };
	u32 before, step = alignment_step(row);
	u8 *ulpdu;

	prepare(test, &g, row->ulpdu_len, &ulpdu);
	for (before = 4; before <= 512; before += step) {
		g.f.pos = 0U - before;
		meet_both_deframers(test, &g, ulpdu);
	}
}

static void frame_without_markers(struct kunit *test)
{
	const struct length_row *row = test->param_value;
	struct geometry g = { .f = { .crc = true } };
	u8 *ulpdu;

	prepare(test, &g, row->ulpdu_len, &ulpdu);
	for (g.f.pos = 0; g.f.pos <= 512; g.f.pos += 64)
		meet_both_deframers(test, &g, ulpdu);
	KUNIT_EXPECT_EQ(test, weft_mpa_wire_len(row->ulpdu_len, 512, false),
			weft_mpa_bare_len(row->ulpdu_len));
}

/* RFC 5044, 4.3: many small FPDUs back to back, each marker where it must be. */
static void frame_stream_of_random_lengths(struct kunit *test)
{
	struct geometry g = { .f = { .markers = true, .crc = true } };
	u64 seed = 43;
	u8 *ulpdu;
	u32 i;

	prepare(test, &g, 700, &ulpdu);
	for (i = 0; i < 3000; i++) {
		g.ulpdu_len = weft_next_random(&seed) % (i % 2 ? 100 : 700);
		meet_both_deframers(test, &g, ulpdu);
		g.f.pos += weft_mpa_wire_len(g.ulpdu_len, g.f.pos, true);
	}
}

static struct kunit_case mpa_frame_cases[] = {
	KUNIT_CASE_PARAM(mulpdu_vector, weft_vec_mulpdu_gen_params),
	KUNIT_CASE(mulpdu_every_emss),
	KUNIT_CASE(mulpdu_fits_segment),
	KUNIT_CASE(pad_and_bare_len),
	KUNIT_CASE_PARAM(frame_vector, weft_vec_stream_gen_params),
	KUNIT_CASE_PARAM(deframe_vector, weft_vec_stream_gen_params),
	KUNIT_CASE(deframe_any_bit_flipped),
	KUNIT_CASE_PARAM(frame_every_alignment, length_rows_gen_params),
	KUNIT_CASE_PARAM(frame_over_position_wrap, length_rows_gen_params),
	KUNIT_CASE_PARAM(frame_without_markers, length_rows_gen_params),
	KUNIT_CASE(frame_stream_of_random_lengths),
	{},
};

static struct kunit_suite mpa_frame_suite = {
	.name = "weft_mpa_frame",
	.test_cases = mpa_frame_cases,
};

kunit_test_suite(mpa_frame_suite);
