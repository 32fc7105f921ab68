// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The fault table against the tables of the RFCs: RFC 5040, 4.8; RFC 5041, 7.2;
 * RFC 5044, 8; RFC 6581, 8.
 */
#include "proto/fault.h"
#include "suite.h"

#define DDP_ONLY	WEFT_HDR_DDP
#define DDP_AND_READ	(WEFT_HDR_DDP | WEFT_HDR_READ_REQ)

/* In the order of enum weft_fault; @name is the one the table must know it by. */
struct fault_row {
	const char *name;
	enum weft_fault fault;
	u8 layer;
	u8 etype;
	u8 ecode;
	u8 headers;
	bool terminate;
};

static const struct fault_row fault_rows[] = {
	{ "NONE", WEFT_FAULT_NONE },

	/* RFC 5044, 8: after 1 and 4 there are no FPDUs that could report it to the peer */
	{ "MPA_CLOSED", WEFT_FAULT_MPA_CLOSED, 2, 0, 1, 0, false },
	{ "MPA_CRC", WEFT_FAULT_MPA_CRC, 2, 0, 2, 0, true },
	{ "MPA_MARKER", WEFT_FAULT_MPA_MARKER, 2, 0, 3, 0, true },
	{ "MPA_START", WEFT_FAULT_MPA_START, 2, 0, 4, 0, false },
	/* RFC 6581, 8 */
	{ "MPA_LOCAL", WEFT_FAULT_MPA_LOCAL, 2, 0, 5, 0, true },
	{ "MPA_IRD", WEFT_FAULT_MPA_IRD, 2, 0, 6, 0, true },
	{ "MPA_RTR", WEFT_FAULT_MPA_RTR, 2, 0, 7, 0, true },

	/* RFC 5041, 7.2, type 1 */
	{ "TAGGED_STAG", WEFT_FAULT_TAGGED_STAG, 1, 1, 0, DDP_ONLY, true },
	{ "TAGGED_BOUNDS", WEFT_FAULT_TAGGED_BOUNDS, 1, 1, 1, DDP_ONLY, true },
	{ "TAGGED_STREAM", WEFT_FAULT_TAGGED_STREAM, 1, 1, 2, DDP_ONLY, true },
	{ "TAGGED_WRAP", WEFT_FAULT_TAGGED_WRAP, 1, 1, 3, DDP_ONLY, true },
	{ "TAGGED_VERSION", WEFT_FAULT_TAGGED_VERSION, 1, 1, 4, DDP_ONLY, true },

	/* RFC 5041, 7.2, type 2 */
	{ "UNTAGGED_QN", WEFT_FAULT_UNTAGGED_QN, 1, 2, 1, DDP_ONLY, true },
	{ "UNTAGGED_NO_BUFFER", WEFT_FAULT_UNTAGGED_NO_BUFFER, 1, 2, 2, DDP_ONLY, true },
	{ "UNTAGGED_MSN", WEFT_FAULT_UNTAGGED_MSN, 1, 2, 3, DDP_ONLY, true },
	{ "UNTAGGED_MO", WEFT_FAULT_UNTAGGED_MO, 1, 2, 4, DDP_ONLY, true },
	{ "UNTAGGED_TOO_LONG", WEFT_FAULT_UNTAGGED_TOO_LONG, 1, 2, 5, DDP_ONLY, true },
	{ "UNTAGGED_VERSION", WEFT_FAULT_UNTAGGED_VERSION, 1, 2, 6, DDP_ONLY, true },

	/* RFC 5040, 4.8, remote protection */
	{ "RDMAP_STAG", WEFT_FAULT_RDMAP_STAG, 0, 1, 0, DDP_AND_READ, true },
	{ "RDMAP_BOUNDS", WEFT_FAULT_RDMAP_BOUNDS, 0, 1, 1, DDP_AND_READ, true },
	{ "RDMAP_ACCESS", WEFT_FAULT_RDMAP_ACCESS, 0, 1, 2, DDP_AND_READ, true },
	{ "RDMAP_STREAM", WEFT_FAULT_RDMAP_STREAM, 0, 1, 3, DDP_AND_READ, true },
	{ "RDMAP_WRAP", WEFT_FAULT_RDMAP_WRAP, 0, 1, 4, DDP_AND_READ, true },
	{ "RDMAP_INVALIDATE", WEFT_FAULT_RDMAP_INVALIDATE, 0, 1, 9, DDP_AND_READ, true },
	{ "RDMAP_PROTECTION", WEFT_FAULT_RDMAP_PROTECTION, 0, 1, 255, DDP_AND_READ, true },

	/* RFC 5040, 4.8, remote operation */
	{ "RDMAP_VERSION", WEFT_FAULT_RDMAP_VERSION, 0, 2, 5, DDP_ONLY, true },
	{ "RDMAP_OPCODE", WEFT_FAULT_RDMAP_OPCODE, 0, 2, 6, DDP_ONLY, true },
	{ "RDMAP_CATASTROPHIC", WEFT_FAULT_RDMAP_CATASTROPHIC, 0, 2, 7, DDP_ONLY, true },
	{ "RDMAP_GLOBAL", WEFT_FAULT_RDMAP_GLOBAL, 0, 2, 8, DDP_ONLY, true },
	{ "RDMAP_OPERATION", WEFT_FAULT_RDMAP_OPERATION, 0, 2, 255, DDP_ONLY, true },

	/* RFC 5040, 7.1 (1): nothing attached */
	{ "LOCAL_PROTECTION", WEFT_FAULT_LOCAL_PROTECTION, 0, 0, 0, 0, true },
	{ "LOCAL_LENGTH", WEFT_FAULT_LOCAL_LENGTH, 0, 0, 0, 0, true },
	{ "LOCAL_QP_OP", WEFT_FAULT_LOCAL_QP_OP, 0, 0, 0, 0, true },
	{ "LOCAL_BIND", WEFT_FAULT_LOCAL_BIND, 0, 0, 0, 0, true },
	{ "LOCAL_CATASTROPHIC", WEFT_FAULT_LOCAL_CATASTROPHIC, 0, 0, 0, 0, true },

	{ "REMOTE_ACCESS", WEFT_FAULT_REMOTE_ACCESS },
	{ "REMOTE_OPERATION", WEFT_FAULT_REMOTE_OPERATION },
	{ "REMOTE_INVALID", WEFT_FAULT_REMOTE_INVALID },
	{ "BAD_RESPONSE", WEFT_FAULT_BAD_RESPONSE },
	{ "UNREACHABLE", WEFT_FAULT_UNREACHABLE },
	{ "NO_RECEIVE", WEFT_FAULT_NO_RECEIVE },
	{ "FLUSHED", WEFT_FAULT_FLUSHED },
	{ "STOPPED", WEFT_FAULT_STOPPED },
	{ "NOT_READY", WEFT_FAULT_NOT_READY },
};

WEFT_ROWS(fault_rows)

static void info_terminate_fields(struct kunit *test)
{
	const struct fault_row *row = test->param_value;
	const struct weft_fault_info *info = weft_fault_info(row->fault);

	KUNIT_ASSERT_NOT_NULL(test, info->name);
	KUNIT_EXPECT_STREQ(test, info->name, row->name);
	KUNIT_EXPECT_EQ(test, info->layer, row->layer);
	KUNIT_EXPECT_EQ(test, info->etype, row->etype);
	KUNIT_EXPECT_EQ(test, info->ecode, row->ecode);
	KUNIT_EXPECT_EQ(test, info->headers, row->headers);
	KUNIT_EXPECT_EQ(test, info->terminate, row->terminate);
	KUNIT_EXPECT_EQ(test, info->status == WEFT_STATUS_SUCCESS, row->fault == WEFT_FAULT_NONE);
}

static void info_every_fault_has_a_row(struct kunit *test)
{
	u32 i;

	KUNIT_ASSERT_EQ(test, ARRAY_SIZE(fault_rows), (size_t)WEFT_FAULT_COUNT);
	for (i = 0; i < WEFT_FAULT_COUNT; i++)
		KUNIT_EXPECT_EQ_MSG(test, (u32)fault_rows[i].fault, i, "row %u", i);
}

/* Two remote faults never share a code, or the peer could not tell them apart. */
static void info_codes_are_unique(struct kunit *test)
{
	u32 i, k;

	for (i = 0; i < WEFT_FAULT_LOCAL_PROTECTION; i++) {
		const struct weft_fault_info *a = weft_fault_info(i);

		for (k = i + 1; k < WEFT_FAULT_LOCAL_PROTECTION; k++) {
			const struct weft_fault_info *b = weft_fault_info(k);

			if (a->terminate && b->terminate)
				KUNIT_EXPECT_FALSE_MSG(test,
						       a->layer == b->layer &&
							       a->etype == b->etype &&
							       a->ecode == b->ecode,
						       "%s and %s", a->name, b->name);
		}
	}
}

struct status_row {
	const char *name;
	enum weft_fault first;
	enum weft_fault last;
	u8 status;
};

/* What the verbs require of a completion (enum ib_wc_status), of faults in their order. */
static const struct status_row status_rows[] = {
	{ "success", WEFT_FAULT_NONE, WEFT_FAULT_NONE, 0 },
	{ "connection_unusable", WEFT_FAULT_MPA_CLOSED, WEFT_FAULT_MPA_START, 5 },
	{ "stream_not_started", WEFT_FAULT_MPA_LOCAL, WEFT_FAULT_MPA_LOCAL, 19 },
	{ "no_terms", WEFT_FAULT_MPA_IRD, WEFT_FAULT_MPA_RTR, 5 },
	{ "tagged_refused", WEFT_FAULT_TAGGED_STAG, WEFT_FAULT_TAGGED_WRAP, 10 },
	{ "tagged_malformed", WEFT_FAULT_TAGGED_VERSION, WEFT_FAULT_TAGGED_VERSION, 7 },
	{ "untagged_no_queue", WEFT_FAULT_UNTAGGED_QN, WEFT_FAULT_UNTAGGED_QN, 7 },
	{ "no_receive", WEFT_FAULT_UNTAGGED_NO_BUFFER, WEFT_FAULT_UNTAGGED_NO_BUFFER, 11 },
	{ "untagged_out_of_order", WEFT_FAULT_UNTAGGED_MSN, WEFT_FAULT_UNTAGGED_MO, 7 },
	{ "receive_too_small", WEFT_FAULT_UNTAGGED_TOO_LONG, WEFT_FAULT_UNTAGGED_TOO_LONG, 1 },
	{ "untagged_malformed", WEFT_FAULT_UNTAGGED_VERSION, WEFT_FAULT_UNTAGGED_VERSION, 7 },
	{ "access_refused", WEFT_FAULT_RDMAP_STAG, WEFT_FAULT_RDMAP_PROTECTION, 10 },
	{ "message_malformed", WEFT_FAULT_RDMAP_VERSION, WEFT_FAULT_RDMAP_OPCODE, 7 },
	{ "stream_broken", WEFT_FAULT_RDMAP_CATASTROPHIC, WEFT_FAULT_RDMAP_GLOBAL, 11 },
	{ "message_unexpected", WEFT_FAULT_RDMAP_OPERATION, WEFT_FAULT_RDMAP_OPERATION, 7 },
	{ "own_key_refused", WEFT_FAULT_LOCAL_PROTECTION, WEFT_FAULT_LOCAL_PROTECTION, 4 },
	{ "own_length", WEFT_FAULT_LOCAL_LENGTH, WEFT_FAULT_LOCAL_LENGTH, 1 },
	{ "own_request_malformed", WEFT_FAULT_LOCAL_QP_OP, WEFT_FAULT_LOCAL_QP_OP, 2 },
	{ "bind_refused", WEFT_FAULT_LOCAL_BIND, WEFT_FAULT_LOCAL_BIND, 6 },
	{ "own_trouble", WEFT_FAULT_LOCAL_CATASTROPHIC, WEFT_FAULT_LOCAL_CATASTROPHIC, 19 },
	{ "peer_refuses_access", WEFT_FAULT_REMOTE_ACCESS, WEFT_FAULT_REMOTE_ACCESS, 10 },
	{ "peer_has_trouble", WEFT_FAULT_REMOTE_OPERATION, WEFT_FAULT_REMOTE_OPERATION, 11 },
	{ "peer_calls_it_invalid", WEFT_FAULT_REMOTE_INVALID, WEFT_FAULT_REMOTE_INVALID, 9 },
	{ "peer_answers_wrongly", WEFT_FAULT_BAD_RESPONSE, WEFT_FAULT_BAD_RESPONSE, 7 },
	{ "no_peer", WEFT_FAULT_UNREACHABLE, WEFT_FAULT_UNREACHABLE, 12 },
	{ "peer_has_no_receive", WEFT_FAULT_NO_RECEIVE, WEFT_FAULT_NO_RECEIVE, 13 },
	{ "flushed", WEFT_FAULT_FLUSHED, WEFT_FAULT_NOT_READY, 5 },
};

WEFT_ROWS(status_rows)

static void info_completion_status(struct kunit *test)
{
	const struct status_row *row = test->param_value;
	u32 fault;

	/* none is left out */
	KUNIT_EXPECT_EQ(test, (u32)row->first, row == status_rows ? 0 : row[-1].last + 1U);
	for (fault = row->first; fault <= row->last; fault++)
		KUNIT_EXPECT_EQ_MSG(test, weft_fault_info(fault)->status, row->status, "%s",
				    weft_fault_info(fault)->name);
}

struct verdict_row {
	const char *name;
	u8 layer;
	u8 etype;
	u8 ecode;
	enum weft_fault fault;
};

/* A Terminate that came in, as seen by the request it hits. */
static const struct verdict_row verdict_rows[] = {
	{ "rdmap_local_catastrophic", 0, 0, 0, WEFT_FAULT_REMOTE_OPERATION },
	{ "rdmap_invalid_stag", 0, 1, 0, WEFT_FAULT_REMOTE_ACCESS },
	{ "rdmap_bounds", 0, 1, 1, WEFT_FAULT_REMOTE_ACCESS },
	{ "rdmap_access", 0, 1, 2, WEFT_FAULT_REMOTE_ACCESS },
	{ "rdmap_stream", 0, 1, 3, WEFT_FAULT_REMOTE_ACCESS },
	{ "rdmap_wrap", 0, 1, 4, WEFT_FAULT_REMOTE_ACCESS },
	/* protocol-rules, CHOICE-6: sent as type 1, accepted as either */
	{ "rdmap_cannot_invalidate", 0, 1, 9, WEFT_FAULT_REMOTE_ACCESS },
	{ "rdmap_cannot_invalidate_as_operation", 0, 2, 9, WEFT_FAULT_REMOTE_ACCESS },
	{ "rdmap_protection", 0, 1, 255, WEFT_FAULT_REMOTE_ACCESS },
	{ "rdmap_version", 0, 2, 5, WEFT_FAULT_REMOTE_INVALID },
	{ "rdmap_opcode", 0, 2, 6, WEFT_FAULT_REMOTE_INVALID },
	{ "rdmap_catastrophic", 0, 2, 7, WEFT_FAULT_REMOTE_OPERATION },
	{ "rdmap_global", 0, 2, 8, WEFT_FAULT_REMOTE_OPERATION },
	{ "rdmap_operation", 0, 2, 255, WEFT_FAULT_REMOTE_OPERATION },
	{ "ddp_local_catastrophic", 1, 0, 0, WEFT_FAULT_REMOTE_OPERATION },
	{ "ddp_tagged_stag", 1, 1, 0, WEFT_FAULT_REMOTE_ACCESS },
	{ "ddp_tagged_bounds", 1, 1, 1, WEFT_FAULT_REMOTE_ACCESS },
	{ "ddp_tagged_stream", 1, 1, 2, WEFT_FAULT_REMOTE_ACCESS },
	{ "ddp_tagged_wrap", 1, 1, 3, WEFT_FAULT_REMOTE_ACCESS },
	{ "ddp_tagged_version", 1, 1, 4, WEFT_FAULT_REMOTE_INVALID },
	{ "ddp_no_buffer", 1, 2, 2, WEFT_FAULT_REMOTE_OPERATION },
	{ "ddp_too_long", 1, 2, 5, WEFT_FAULT_REMOTE_INVALID },
	{ "ddp_untagged_version", 1, 2, 6, WEFT_FAULT_REMOTE_INVALID },
	{ "mpa_crc", 2, 0, 2, WEFT_FAULT_REMOTE_OPERATION },
	{ "mpa_ird", 2, 0, 6, WEFT_FAULT_REMOTE_OPERATION },
};

WEFT_ROWS(verdict_rows)

static void from_terminate_known_code(struct kunit *test)
{
	const struct verdict_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, weft_fault_from_terminate(row->layer, row->etype, row->ecode),
			row->fault);
}

static bool is_remote(enum weft_fault fault)
{
	return fault == WEFT_FAULT_REMOTE_ACCESS || fault == WEFT_FAULT_REMOTE_OPERATION ||
	       fault == WEFT_FAULT_REMOTE_INVALID;
}

/* Whatever a peer writes there, it is an error of a remote kind, and not answered. */
static void from_terminate_any_code(struct kunit *test)
{
	u32 kind, ecode;
	enum weft_fault fault;

	for (kind = 0; kind < 256; kind++) {
		for (ecode = 0; ecode < 256; ecode++) {
			fault = weft_fault_from_terminate(kind >> 4, kind & 15, ecode);
			KUNIT_EXPECT_TRUE_MSG(test, is_remote(fault), "%02x %02x", kind, ecode);
		}
	}
	KUNIT_EXPECT_TRUE(test, is_remote(weft_fault_from_terminate(255, 255, 255)));
}

/* What we tell a peer, a peer that tells us so has found. */
static void of_terminate_finds_the_fault(struct kunit *test)
{
	const struct weft_fault_info *told, *found;
	enum weft_fault fault;
	u32 i;

	for (i = 0; i < WEFT_FAULT_COUNT; i++) {
		told = weft_fault_info(i);
		if (!told->terminate)
			continue;
		fault = weft_fault_of_terminate(told->layer, told->etype, told->ecode);
		KUNIT_ASSERT_LT(test, fault, WEFT_FAULT_COUNT);
		found = weft_fault_info(fault);
		KUNIT_EXPECT_TRUE_MSG(test, found->terminate, "%s", told->name);
		KUNIT_EXPECT_EQ(test, found->layer, told->layer);
		KUNIT_EXPECT_EQ(test, found->etype, told->etype);
		KUNIT_EXPECT_EQ(test, found->ecode, told->ecode);
	}
	KUNIT_EXPECT_EQ(test, weft_fault_of_terminate(1, 2, 2), WEFT_FAULT_UNTAGGED_NO_BUFFER);
	KUNIT_EXPECT_EQ(test, weft_fault_of_terminate(2, 0, 2), WEFT_FAULT_MPA_CRC);
	/* A trouble of the peer's own: it does not say which. */
	KUNIT_EXPECT_EQ(test, weft_fault_of_terminate(0, 0, 0), WEFT_FAULT_LOCAL_CATASTROPHIC);
	KUNIT_EXPECT_EQ(test, weft_fault_of_terminate(3, 0, 0), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, weft_fault_of_terminate(255, 255, 255), WEFT_FAULT_NONE);
}

static struct kunit_case fault_cases[] = {
	KUNIT_CASE_PARAM(info_terminate_fields, fault_rows_gen_params),
	KUNIT_CASE(info_every_fault_has_a_row),
	KUNIT_CASE(info_codes_are_unique),
	KUNIT_CASE_PARAM(info_completion_status, status_rows_gen_params),
	KUNIT_CASE_PARAM(from_terminate_known_code, verdict_rows_gen_params),
	KUNIT_CASE(from_terminate_any_code),
	KUNIT_CASE(of_terminate_finds_the_fault),
	{},
};

static struct kunit_suite fault_suite = {
	.name = "weft_fault",
	.test_cases = fault_cases,
};

kunit_test_suite(fault_suite);
