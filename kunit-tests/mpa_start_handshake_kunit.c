// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What two sides make of each other's start frames: RFC 5044, 7.1; RFC 6581, 9 and 10.
 */
#include "proto/mpa_start.h"
#include "start_frame.h"
#include "suite.h"

/* Only where asked for, and never where the initiator promised a first message. */
static void respond_eagerly(struct kunit *test)
{
	struct weft_mpa_policy own = { .revision = 2, .p2p = true, .rtr = WEFT_RTR_WRITE };
	struct weft_mpa_frame peer = { .revision = 2, .enhanced = true, .rtr = WEFT_RTR_WRITE };
	struct weft_mpa_result result;
	u32 bits;

	for (bits = 0; bits < 4; bits++) {
		own.early_send = bits & 1;
		peer.p2p = bits & 2;
		KUNIT_EXPECT_EQ(test, weft_mpa_respond(&peer, &own, &result), WEFT_FAULT_NONE);
		KUNIT_EXPECT_EQ(test, result.early_send, bits == 1);
	}
	peer = (struct weft_mpa_frame){ .revision = 1 };
	KUNIT_EXPECT_EQ(test, weft_mpa_respond(&peer, &own, &result), WEFT_FAULT_NONE);
	KUNIT_EXPECT_TRUE(test, result.early_send);
	own.revision = 1;
	own.p2p = false;
	KUNIT_EXPECT_EQ(test, weft_mpa_conclude(&peer, &own, &result), WEFT_FAULT_NONE);
	KUNIT_EXPECT_FALSE(test, result.early_send);
}

/* RFC 5044, 7.1.1: M asks the other side; C of either side is for both. */
static void settle_markers_and_crc(struct kunit *test)
{
	struct weft_mpa_policy own = { .revision = 1 };
	struct weft_mpa_frame peer = { .revision = 1 };
	struct weft_mpa_result result[2];
	u32 bits, i;

	for (bits = 0; bits < 16; bits++) {
		own.markers = bits & 1;
		peer.markers = bits & 2;
		own.crc = bits & 4 ? WEFT_MPA_CRC_ON : WEFT_MPA_CRC_OFF;
		peer.crc = bits & 8;
		KUNIT_EXPECT_EQ(test, weft_mpa_respond(&peer, &own, &result[0]), WEFT_FAULT_NONE);
		KUNIT_EXPECT_EQ(test, weft_mpa_conclude(&peer, &own, &result[1]), WEFT_FAULT_NONE);
		for (i = 0; i < 2; i++) {
			KUNIT_EXPECT_EQ(test, result[i].markers_tx, peer.markers);
			KUNIT_EXPECT_EQ(test, result[i].markers_rx, own.markers);
			KUNIT_EXPECT_EQ(test, result[i].crc, own.crc || peer.crc);
		}
	}
}

/* Only a side that requires CRCs depends on the peer's wish; the result has them anyway. */
static void crc_required_of_the_peer(struct kunit *test)
{
	struct weft_mpa_policy own = { .revision = 1 };
	struct weft_mpa_frame peer = { .revision = 1 };
	struct weft_mpa_result result;
	u32 bits;

	for (bits = 0; bits < 6; bits++) {
		bool missing = bits == WEFT_MPA_CRC_REQUIRE << 1;

		own.crc = bits >> 1;
		peer.crc = bits & 1;
		KUNIT_EXPECT_EQ(test, weft_mpa_crc_missing(&peer, &own), missing);
		KUNIT_EXPECT_EQ(test, weft_mpa_conclude(&peer, &own, &result),
				missing ? WEFT_FAULT_MPA_START : WEFT_FAULT_NONE);
		KUNIT_EXPECT_EQ(test, result.crc, own.crc != WEFT_MPA_CRC_OFF || peer.crc);
	}
}

struct reply_row {
	const char *name;
	u8 sent_revision;
	bool sent_p2p;
	struct weft_mpa_frame reply;
	enum weft_fault fault;
};

static const struct reply_row reply_rows[] = {
	{ "plain_to_plain", 1, false, { .revision = 1 } },
	{ "enhanced_to_enhanced", 2, false, { .revision = 2, .enhanced = true } },
	/* RFC 6581, 10: an enhanced request is answered enhanced, a plain one plain */
	{ "plain_to_enhanced", 2, false, { .revision = 2 }, BAD },
	{ "revision_1_to_enhanced", 2, false, { .revision = 1 }, BAD },
	{ "plain_to_peer_to_peer", 2, true, { .revision = 2 }, BAD },
	{ "enhanced_to_plain", 1, false, { .revision = 2, .enhanced = true }, BAD },
	/* 9.2: the responder mirrors A; without it there is no kind in common */
	{ "cs_to_p2p", 2, true, { .revision = 2, .enhanced = true }, WEFT_FAULT_MPA_RTR },
	{ "p2p_to_cs", 2, false, { .revision = 2, .enhanced = true, .p2p = true, .rtr = RTR_ALL } },
};

WEFT_ROWS(reply_rows)

static void conclude_kind_of_reply(struct kunit *test)
{
	const struct reply_row *row = test->param_value;
	struct weft_mpa_policy sent = {
		.revision = row->sent_revision,
		.p2p = row->sent_p2p,
		.rtr = RTR_ALL,
	};
	struct weft_mpa_result result;

	KUNIT_EXPECT_EQ(test, weft_mpa_conclude(&row->reply, &sent, &result), row->fault);
	KUNIT_EXPECT_TRUE(test, result.rtr == 0);
}

/* One handshake over the bytes; returns what the initiator concludes. */
struct handshake {
	struct weft_mpa_policy initiator;
	struct weft_mpa_policy responder;
	struct weft_mpa_result at_initiator;
	struct weft_mpa_result at_responder;
};

static enum weft_fault shake_hands(struct kunit *test, struct handshake *h, u8 *wire)
{
	struct weft_mpa_frame request, reply;
	enum weft_fault fault;
	int len = weft_mpa_build_request(&h->initiator, "pd", 2, wire);

	if (weft_mpa_start_parse(wire, len, true, &request))
		return WEFT_FAULT_MPA_START;
	fault = weft_mpa_respond(&request, &h->responder, &h->at_responder);
	if (fault)
		return fault;
	len = weft_mpa_build_accept(&request, &h->responder, &h->at_responder, "pd", 2, wire);
	KUNIT_EXPECT_EQ(test, weft_mpa_start_parse(wire, len, false, &reply), WEFT_FAULT_NONE);
	return weft_mpa_conclude(&reply, &h->initiator, &h->at_initiator);
}

static void random_policy(u64 *seed, struct weft_mpa_policy *policy)
{
	static const u32 depths[] = { 0, 1, 2, 8, 127, 0x3ffe };
	u64 bits = weft_next_random(seed);

	*policy = (struct weft_mpa_policy){
		.revision = 2,
		.crc = bits & 1,
		.markers = bits & 2,
		.p2p = bits & 4,
		.rtr = bits >> 3 & 7,
		.ird = depths[(bits >> 8) % ARRAY_SIZE(depths)],
		.ord = depths[(bits >> 16) % ARRAY_SIZE(depths)],
		.ird_max = depths[(bits >> 24) % ARRAY_SIZE(depths)],
	};
}

static void expect_agreement(struct kunit *test, const struct handshake *h, u32 round)
{
	const struct weft_mpa_result *i = &h->at_initiator, *r = &h->at_responder;

	KUNIT_EXPECT_EQ_MSG(test, i->crc, r->crc, "round %u", round);
	KUNIT_EXPECT_EQ_MSG(test, i->markers_tx, r->markers_rx, "round %u", round);
	KUNIT_EXPECT_EQ_MSG(test, i->markers_rx, r->markers_tx, "round %u", round);
	/* RFC 6581, 9.1: no side asks for more than the other takes */
	KUNIT_EXPECT_LE_MSG(test, i->ord, r->ird, "round %u", round);
	KUNIT_EXPECT_LE_MSG(test, r->ord, i->ird, "round %u", round);
	/* 9.2: one kind, and one the responder waits for */
	KUNIT_EXPECT_EQ_MSG(test, i->rtr & ~r->rtr, 0, "round %u", round);
	KUNIT_EXPECT_EQ_MSG(test, i->rtr & (i->rtr - 1), 0, "round %u", round);
	KUNIT_EXPECT_EQ_MSG(test, !!i->rtr, h->initiator.p2p, "round %u", round);
	KUNIT_EXPECT_TRUE_MSG(test, i->rtr != WEFT_RTR_READ || i->ord, "round %u", round);
}

static void handshake_both_sides_agree(struct kunit *test)
{
	u64 seed = 6581;
	struct handshake h;
	enum weft_fault fault;
	u8 *wire = frame_space(test);
	u32 round, agreed = 0;

	for (round = 0; round < 20000; round++) {
		random_policy(&seed, &h.initiator);
		random_policy(&seed, &h.responder);
		fault = shake_hands(test, &h, wire);
		if (!fault) {
			expect_agreement(test, &h, round);
			agreed++;
			continue;
		}
		KUNIT_EXPECT_TRUE_MSG(test,
				      fault == WEFT_FAULT_MPA_IRD || fault == WEFT_FAULT_MPA_RTR,
				      "round %u", round);
	}
	KUNIT_EXPECT_GT(test, agreed, 10000U);
}

static struct kunit_case mpa_start_handshake_cases[] = {
	KUNIT_CASE(settle_markers_and_crc),
	KUNIT_CASE(crc_required_of_the_peer),
	KUNIT_CASE(respond_eagerly),
	KUNIT_CASE_PARAM(conclude_kind_of_reply, reply_rows_gen_params),
	KUNIT_CASE(handshake_both_sides_agree),
	{},
};

static struct kunit_suite mpa_start_handshake_suite = {
	.name = "weft_mpa_start_handshake",
	.test_cases = mpa_start_handshake_cases,
};

kunit_test_suite(mpa_start_handshake_suite);
