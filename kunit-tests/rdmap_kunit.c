// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * RDMAP messages: RFC 5040, 4, 5 and 7.2; RFC 7306, 4 to 6; order of the checks
 * as in protocol-rules, ORDER-3 and ORDER-4.
 */
#include "proto/rdmap.h"
#include "suite.h"
#include "vectors.h"

WEFT_ROWS(weft_vec_segment)
WEFT_ROWS(weft_vec_read_req)
WEFT_ROWS(weft_vec_atomic_req)
WEFT_ROWS(weft_vec_atomic_resp)

struct message_row {
	const char *name;
	u8 opcode;
	bool tagged;
	u8 qn;
	u8 hdr_len;
	bool payload;
	bool consumes_rq;
	bool invalidates;
	bool solicited;
	bool immediate;
};

/* The table of messages in protocol-rules. */
static const struct message_row message_rows[] = {
	{ "write", 0, true, 0, 0, true, false, false, false },
	{ "read_request", 1, false, 1, 28, false, false, false, false },
	{ "read_response", 2, true, 0, 0, true, false, false, false },
	{ "send", 3, false, 0, 0, true, true, false, false },
	{ "send_invalidate", 4, false, 0, 0, true, true, true, false },
	{ "send_se", 5, false, 0, 0, true, true, false, true },
	{ "send_se_invalidate", 6, false, 0, 0, true, true, true, true },
	{ "terminate", 7, false, 2, 4, true, false, false, false },
	{ "immediate", 8, false, 0, 8, false, true, false, false },
	{ "immediate_se", 9, false, 0, 8, false, true, false, true },
	{ "atomic_request", 10, false, 1, 52, false, false, false, false },
	{ "atomic_response", 11, false, 3, 12, false, false, false, false },
	{ "send_immediate", 12, false, 0, 0, true, true, false, false, true },
	{ "send_se_immediate", 13, false, 0, 0, true, true, false, true, true },
};

WEFT_ROWS(message_rows)

static void info_row(struct kunit *test)
{
	const struct message_row *row = test->param_value;
	const struct weft_rdmap_info *info = weft_rdmap_info(row->opcode);

	KUNIT_EXPECT_NOT_NULL(test, info->name);
	KUNIT_EXPECT_TRUE(test, info->known);
	KUNIT_EXPECT_EQ(test, info->tagged, row->tagged);
	KUNIT_EXPECT_EQ(test, info->qn, row->qn);
	KUNIT_EXPECT_EQ(test, info->hdr_len, row->hdr_len);
	KUNIT_EXPECT_EQ(test, info->payload, row->payload);
	KUNIT_EXPECT_EQ(test, info->consumes_rq, row->consumes_rq);
	KUNIT_EXPECT_EQ(test, info->invalidates, row->invalidates);
	KUNIT_EXPECT_EQ(test, info->solicited, row->solicited);
	KUNIT_EXPECT_EQ(test, info->immediate, row->immediate);
}

static void info_whole_table(struct kunit *test)
{
	u32 opcode, other;

	for (opcode = 0; opcode < WEFT_OP_COUNT; opcode++) {
		const struct weft_rdmap_info *info = weft_rdmap_info(opcode);

		KUNIT_ASSERT_NOT_NULL(test, info->name);
		KUNIT_EXPECT_EQ_MSG(test, info->known, opcode < ARRAY_SIZE(message_rows),
				    "opcode %u", opcode);
		for (other = 0; info->known && other < opcode; other++)
			KUNIT_EXPECT_STRNEQ(test, info->name, weft_rdmap_info(other)->name);
	}
}

/* RFC 5040, 4.1: RV 01b, reserved bits zero on transmit and ignored on receive. */
static void ulp_every_opcode(struct kunit *test)
{
	u32 opcode, rsvd;

	for (opcode = 0; opcode < WEFT_OP_COUNT; opcode++) {
		KUNIT_EXPECT_EQ(test, weft_rdmap_ulp(opcode), 0x40 | opcode);
		for (rsvd = 0; rsvd <= 0xf0; rsvd += 0x10)
			KUNIT_EXPECT_EQ(test, weft_rdmap_opcode(rsvd | opcode), opcode);
	}
}

static void check_vector(struct kunit *test)
{
	const struct weft_vec_segment *row = test->param_value;
	struct weft_ddp_hdr hdr;

	KUNIT_ASSERT_EQ(test, weft_ddp_parse(row->ulpdu, row->len, &hdr), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, weft_rdmap_opcode(hdr.ulp), row->opcode);
	/* protocol-rules, CHOICE-5: Immediate Data that is not 8 bytes long */
	KUNIT_EXPECT_EQ(test, weft_rdmap_check(&hdr),
			row->legal ? WEFT_FAULT_NONE : WEFT_FAULT_RDMAP_OPERATION);
}

/* A legal last segment of each message. */
static struct weft_ddp_hdr legal_segment(const struct message_row *row)
{
	return (struct weft_ddp_hdr){
		.tagged = row->tagged,
		.last = true,
		.ulp = 0x40 | row->opcode,
		.qn = row->qn,
		.msn = 1,
		.payload = row->hdr_len,
	};
}

static void check_reserved_bits_set(struct kunit *test)
{
	const struct message_row *row = test->param_value;
	struct weft_ddp_hdr hdr = legal_segment(row);

	KUNIT_EXPECT_EQ(test, weft_rdmap_check(&hdr), WEFT_FAULT_NONE);
	hdr.ulp |= 0x30;
	KUNIT_EXPECT_EQ(test, weft_rdmap_check(&hdr), WEFT_FAULT_NONE);
	/* RFC 5040, 4.1: the Invalidate STag of other messages is ignored */
	hdr.stag = 0xdeadbeef;
	KUNIT_EXPECT_EQ(test, weft_rdmap_check(&hdr), WEFT_FAULT_NONE);
}

/* Defects in the order of protocol-rules, ORDER-3 and ORDER-4; each with its fault. */
enum defect { VERSION, KIND, QUEUE, SIZE, DEFECTS };

static const enum weft_fault defect_fault[DEFECTS] = {
	WEFT_FAULT_RDMAP_VERSION,
	WEFT_FAULT_RDMAP_OPCODE,
	WEFT_FAULT_UNTAGGED_QN,
	WEFT_FAULT_RDMAP_OPERATION,
};

/* Break of this message what can be broken; returns the defects it now has. */
static u32 corrupt(const struct message_row *row, struct weft_ddp_hdr *hdr, u32 defects)
{
	/* seen as untagged where it must be tagged, and the other way round */
	bool seen_tagged = row->tagged ^ (defects >> KIND & 1);

	if (seen_tagged)
		defects &= ~(1U << QUEUE);
	if (!row->hdr_len)
		defects &= ~(1U << SIZE);
	if (defects & 1 << VERSION)
		hdr->ulp ^= 0xc0;
	if (defects & 1 << KIND)
		hdr->tagged = !hdr->tagged;
	if (defects & 1 << QUEUE)
		hdr->qn ^= 3;
	if (defects & 1 << SIZE)
		hdr->payload--;
	return defects;
}

static void check_first_of_several(struct kunit *test)
{
	const struct message_row *row = test->param_value;
	u32 defects, have, first;

	for (defects = 0; defects < 1 << DEFECTS; defects++) {
		struct weft_ddp_hdr hdr = legal_segment(row);

		have = corrupt(row, &hdr, defects);
		for (first = 0; first < DEFECTS && !(have >> first & 1);)
			first++;
		KUNIT_EXPECT_EQ_MSG(test, weft_rdmap_check(&hdr),
				    first < DEFECTS ? defect_fault[first] : WEFT_FAULT_NONE,
				    "defects %02x", have);
	}
}

/* All control bytes there are, both kinds of segment. */
static void check_every_control_byte(struct kunit *test)
{
	struct weft_ddp_hdr hdr = { .last = true, .qn = 9 };
	u32 ulp;

	for (ulp = 0; ulp < 512; ulp++) {
		enum weft_fault fault;
		u8 opcode = ulp & 15;

		hdr.ulp = ulp;
		hdr.tagged = ulp & 256;
		fault = weft_rdmap_check(&hdr);
		if ((ulp & 0xc0) != 0x40)
			KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_RDMAP_VERSION);
		else if (opcode > 13 || hdr.tagged != (opcode == 0 || opcode == 2))
			KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_RDMAP_OPCODE);
		else if (!hdr.tagged)
			KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_UNTAGGED_QN);
		else
			KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_NONE);
	}
}

/* RFC 5041, 7.1; RFC 7306, 10.2: each message on its queue and no other. */
static void check_every_queue(struct kunit *test)
{
	static const u32 queues[] = { 0, 1, 2, 3, 4, 5, 0x100, 0x80000000, 0xffffffff };
	const struct message_row *row = test->param_value;
	struct weft_ddp_hdr hdr = legal_segment(row);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(queues); i++) {
		hdr.qn = queues[i];
		KUNIT_EXPECT_EQ_MSG(test, weft_rdmap_check(&hdr),
				    row->tagged || hdr.qn == row->qn ? WEFT_FAULT_NONE :
								       WEFT_FAULT_UNTAGGED_QN,
				    "queue %x", hdr.qn);
	}
}

/*
 * RFC 5040, 4.2; RFC 7306, 4.2: messages with a header of their own are exactly
 * that long and one segment; only a Terminate has more behind its control word.
 */
static void check_every_size(struct kunit *test)
{
	const struct message_row *row = test->param_value;
	struct weft_ddp_hdr hdr = legal_segment(row);
	bool fits;

	for (hdr.payload = 0; hdr.payload < 80; hdr.payload++) {
		fits = !row->hdr_len || hdr.payload == row->hdr_len ||
		       (row->payload && hdr.payload > row->hdr_len);
		KUNIT_EXPECT_EQ_MSG(test, weft_rdmap_check(&hdr),
				    fits ? WEFT_FAULT_NONE : WEFT_FAULT_RDMAP_OPERATION, "%u bytes",
				    hdr.payload);
	}
	hdr.payload = row->hdr_len;
	hdr.last = false;
	KUNIT_EXPECT_EQ(test, weft_rdmap_check(&hdr),
			row->hdr_len ? WEFT_FAULT_RDMAP_OPERATION : WEFT_FAULT_NONE);
}

struct order_row {
	const char *name;
	struct {
		u8 opcode;
		bool last;
	} step[4];
	u32 steps;
	enum weft_fault fault;	/* of the last step; the others are fine */
};

/* RFC 5041, 5.3: the opcode stays within a message; kinds may be interleaved. */
static const struct order_row order_rows[] = {
	{ "send", { { 3, true } }, 1 },
	{ "send_in_pieces", { { 3, false }, { 3, false }, { 3, true } }, 3 },
	{ "sends_of_each_kind", { { 3, true }, { 4, true }, { 5, true }, { 6, true } }, 4 },
	{ "write_in_pieces", { { 0, false }, { 0, false }, { 0, true } }, 3 },
	{ "response_in_pieces", { { 2, false }, { 2, true } }, 2 },
	{ "write_then_response", { { 0, true }, { 2, true } }, 2 },
	{ "response_within_send", { { 3, false }, { 2, false }, { 3, true }, { 2, true } }, 4 },
	{ "write_within_send", { { 5, false }, { 0, true }, { 5, true } }, 3 },
	{ "send_within_write", { { 0, false }, { 3, true }, { 0, true } }, 3 },
	{ "request_within_send", { { 3, false }, { 1, true }, { 3, true } }, 3 },
	{ "request_within_write", { { 0, false }, { 10, true }, { 0, true } }, 3 },
	{ "terminate_within_send", { { 3, false }, { 7, true } }, 2 },
	{ "atomic_response_within_all", { { 3, false }, { 0, false }, { 11, true } }, 3 },
	{ "imm_after_send", { { 3, true }, { 8, true } }, 2 },
	{ "send_turns_into_send_se", { { 3, false }, { 5, true } }, 2, WEFT_FAULT_RDMAP_OPCODE },
	{ "send_inv_turns_into_send", { { 4, false }, { 3, true } }, 2, WEFT_FAULT_RDMAP_OPCODE },
	{ "imm_within_send", { { 3, false }, { 8, true } }, 2, WEFT_FAULT_RDMAP_OPCODE },
	{ "write_turns_into_response", { { 0, false }, { 2, true } }, 2, WEFT_FAULT_RDMAP_OPCODE },
	{ "response_turns_into_write", { { 2, false }, { 0, true } }, 2, WEFT_FAULT_RDMAP_OPCODE },
	{ "kind_changes", { { 3, false }, { 0, true }, { 4, true } }, 3, WEFT_FAULT_RDMAP_OPCODE },
};

WEFT_ROWS(order_rows)

static void rx_check_order(struct kunit *test)
{
	const struct order_row *row = test->param_value;
	struct weft_rdmap_rx rx = {};
	struct weft_ddp_rx ddp;
	u32 i;

	weft_ddp_rx_init(&ddp);
	for (i = 0; i < row->steps; i++) {
		const struct message_row *message = &message_rows[row->step[i].opcode];
		struct weft_ddp_hdr hdr = legal_segment(message);

		hdr.last = row->step[i].last;
		KUNIT_ASSERT_EQ_MSG(test, weft_rdmap_rx_check(&rx, &ddp, &hdr),
				    i + 1 == row->steps ? row->fault : WEFT_FAULT_NONE, "step %u",
				    i);
		weft_rdmap_rx_advance(&rx, &hdr);
		if (!hdr.tagged)
			weft_ddp_rx_advance(&ddp, &hdr);
		if (hdr.tagged)
			KUNIT_EXPECT_EQ(test, rx.tagged_open, !hdr.last);
	}
}

/* Opcodes with reserved bits differ on the wire and are still the same. */
static void rx_check_reserved_bits_change(struct kunit *test)
{
	struct weft_ddp_hdr hdr = { .ulp = 0x43, .msn = 1, .payload = 4 };
	struct weft_rdmap_rx rx = {};
	struct weft_ddp_rx ddp;

	weft_ddp_rx_init(&ddp);
	weft_rdmap_rx_advance(&rx, &hdr);
	weft_ddp_rx_advance(&ddp, &hdr);
	hdr.ulp = 0x73;
	KUNIT_EXPECT_EQ(test, weft_rdmap_rx_check(&rx, &ddp, &hdr), WEFT_FAULT_NONE);
	hdr = (struct weft_ddp_hdr){ .tagged = true, .ulp = 0x70 };
	weft_rdmap_rx_advance(&rx, &hdr);
	hdr.ulp = 0x40;
	KUNIT_EXPECT_EQ(test, weft_rdmap_rx_check(&rx, &ddp, &hdr), WEFT_FAULT_NONE);
}

static void rx_first_tagged_initially(struct kunit *test)
{
	struct weft_rdmap_rx rx = {};

	KUNIT_EXPECT_FALSE(test, rx.tagged_open);
}

/* Headers behind the DDP header: exactly so many bytes, of which a copy is read. */
static const u8 *rdmap_header(struct kunit *test, const void *ulpdu, u32 len)
{
	return weft_exact_copy(test, (const u8 *)ulpdu + 18, len);
}

static u8 *header_space(struct kunit *test, u32 len)
{
	u8 *out = kunit_kzalloc(test, len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, out);
	memset(out, 0xa5, len);
	return out;
}

static void read_req_build_and_parse_vector(struct kunit *test)
{
	const struct weft_vec_read_req *row = test->param_value;
	const u8 *wire = rdmap_header(test, row->ulpdu, 28);
	struct weft_read_req req;
	u8 *out = header_space(test, 28);

	weft_read_req_parse(wire, &req);
	KUNIT_EXPECT_EQ(test, req.sink_stag, row->sink_stag);
	KUNIT_EXPECT_EQ(test, req.sink_to, row->sink_to);
	KUNIT_EXPECT_EQ(test, req.length, row->size);
	KUNIT_EXPECT_EQ(test, req.src_stag, row->src_stag);
	KUNIT_EXPECT_EQ(test, req.src_to, row->src_to);
	weft_read_req_build(&req, out);
	KUNIT_EXPECT_EQ(test, memcmp(out, wire, 28), 0);
}

static void atomic_req_parse_vector(struct kunit *test)
{
	const struct weft_vec_atomic_req *row = test->param_value;
	struct weft_atomic_req req;

	KUNIT_ASSERT_EQ(test, weft_atomic_req_parse(rdmap_header(test, row->ulpdu, 52), &req),
			WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, req.code, row->code);
	KUNIT_EXPECT_EQ(test, req.id, row->id);
	KUNIT_EXPECT_EQ(test, req.stag, row->stag);
	KUNIT_EXPECT_EQ(test, req.to, row->to);
	KUNIT_EXPECT_EQ(test, req.data, row->data);
	KUNIT_EXPECT_EQ(test, req.mask, row->mask);
	KUNIT_EXPECT_EQ(test, req.compare, row->compare);
	KUNIT_EXPECT_EQ(test, req.compare_mask, row->compare_mask);
}

static void atomic_req_build_vector(struct kunit *test)
{
	const struct weft_vec_atomic_req *row = test->param_value;
	const struct weft_atomic_req req = {
		.code = row->code,
		.id = row->id,
		.stag = row->stag,
		.to = row->to,
		.data = row->data,
		.mask = row->mask,
		.compare = row->compare,
		.compare_mask = row->compare_mask,
	};
	u8 *out = header_space(test, 52);

	weft_atomic_req_build(&req, out);
	KUNIT_EXPECT_EQ(test, memcmp(out, (const u8 *)row->ulpdu + 18, 52), 0);
}

/* RFC 7306, 5.2.1: a FetchAdd carries compare data 0 and an all-ones mask. */
static void atomic_req_build_fetch_add_compare(struct kunit *test)
{
	struct weft_atomic_req req = { .code = WEFT_ATOMIC_FADD, .compare = 7, .compare_mask = 9 };
	struct weft_atomic_req back;
	u8 *out = header_space(test, 52);

	weft_atomic_req_build(&req, out);
	KUNIT_EXPECT_EQ(test, weft_atomic_req_parse(out, &back), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, back.compare, 0ULL);
	KUNIT_EXPECT_EQ(test, back.compare_mask, ~0ULL);
}

/* RFC 7306, 5.2.1 and 10.1: two codes of sixteen; the 28 bits above are ignored. */
static void atomic_req_parse_every_code(struct kunit *test)
{
	struct weft_atomic_req req;
	u8 *wire = header_space(test, 52);
	u32 code;

	for (code = 0; code < 256; code++) {
		bool known = (code & 15) == WEFT_ATOMIC_FADD || (code & 15) == WEFT_ATOMIC_CSWAP;

		wire[3] = code;
		KUNIT_EXPECT_EQ_MSG(test, weft_atomic_req_parse(wire, &req),
				    known ? WEFT_FAULT_NONE : WEFT_FAULT_RDMAP_OPCODE, "code %u",
				    code);
		if (known)
			KUNIT_EXPECT_EQ(test, req.code, code & 15);
	}
}

static void atomic_resp_build_and_parse_vector(struct kunit *test)
{
	const struct weft_vec_atomic_resp *row = test->param_value;
	const u8 *wire = rdmap_header(test, row->ulpdu, 12);
	struct weft_atomic_resp resp;
	u8 *out = header_space(test, 12);

	weft_atomic_resp_parse(wire, &resp);
	KUNIT_EXPECT_EQ(test, resp.id, row->id);
	KUNIT_EXPECT_EQ(test, resp.original, row->original);
	weft_atomic_resp_build(&resp, out);
	KUNIT_EXPECT_EQ(test, memcmp(out, wire, 12), 0);
}

static struct kunit_case rdmap_cases[] = {
	KUNIT_CASE_PARAM(info_row, message_rows_gen_params),
	KUNIT_CASE(info_whole_table),
	KUNIT_CASE(ulp_every_opcode),
	KUNIT_CASE_PARAM(check_vector, weft_vec_segment_gen_params),
	KUNIT_CASE_PARAM(check_reserved_bits_set, message_rows_gen_params),
	KUNIT_CASE_PARAM(check_first_of_several, message_rows_gen_params),
	KUNIT_CASE(check_every_control_byte),
	KUNIT_CASE_PARAM(check_every_queue, message_rows_gen_params),
	KUNIT_CASE_PARAM(check_every_size, message_rows_gen_params),
	KUNIT_CASE_PARAM(rx_check_order, order_rows_gen_params),
	KUNIT_CASE(rx_check_reserved_bits_change),
	KUNIT_CASE(rx_first_tagged_initially),
	KUNIT_CASE_PARAM(read_req_build_and_parse_vector, weft_vec_read_req_gen_params),
	KUNIT_CASE_PARAM(atomic_req_parse_vector, weft_vec_atomic_req_gen_params),
	KUNIT_CASE_PARAM(atomic_req_build_vector, weft_vec_atomic_req_gen_params),
	KUNIT_CASE(atomic_req_build_fetch_add_compare),
	KUNIT_CASE(atomic_req_parse_every_code),
	KUNIT_CASE_PARAM(atomic_resp_build_and_parse_vector, weft_vec_atomic_resp_gen_params),
	{},
};

static struct kunit_suite rdmap_suite = {
	.name = "weft_rdmap",
	.test_cases = rdmap_cases,
};

kunit_test_suite(rdmap_suite);
