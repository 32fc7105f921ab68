// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The private data of directly connected QPs, and which end connects. All numbers are big
 * endian. Documentation/protocol.md has the layout.
 */
#include "proto/direct.h"

#define MAGIC		0x57465451	/* "WFTQ" */

#define VERSION_AT	4
#define FLAGS_AT	5
#define REASON_AT	5
#define EXTENSIONS_AT	6
#define QPN_AT		8
#define PEER_QPN_AT	12
#define RQ_PSN_AT	16
#define SQ_PSN_AT	20

#define FLAG_SQ_PSN	(1 << 0)
#define FLAG_RNR_RETRY	(1 << 1)
#define RNR_RETRY_SHIFT	5

/* QP numbers and PSNs of InfiniBand have 24 bits. */
#define NUMBER_MASK	0xffffff

/* IBTA, 9.7.6.1.3: the local ACK timeout is 4.096 us times a power of two, for 1 to 31. */
#define TIMEOUT_UNIT_NS	4096
#define TIMEOUT_MASK	0x1f
#define RETRY_MASK	0x7
/* And a requester may take four times as long to notice. */
#define TIMEOUT_SLACK	4
/* TCP repeats a lost SYN after a second, and data seldom earlier than after 200 ms. */
#define RETRY_MIN_NS	3000000000ULL

/* IBTA, 9.7.5.2.8: codes of the RNR NAK timer; all is a multiple of 10 us. */
#define RNR_TIMER_UNIT_US	10
#define RNR_TIMER_MASK		0x1f
#define RNR_RETRY_FOREVER	7

/**
 * weft_direct_build - write the private data of a request, or of an accepting reply
 * @hello: the own end
 * @out: WEFT_DIRECT_LEN bytes
 */
void weft_direct_build(const struct weft_direct_hello *hello, u8 *out)
{
	memset(out, 0, WEFT_DIRECT_LEN);
	put_unaligned_be32(MAGIC, out);
	out[VERSION_AT] = WEFT_DIRECT_VERSION;
	put_unaligned_be16(hello->extensions, out + EXTENSIONS_AT);
	put_unaligned_be32(hello->qpn & NUMBER_MASK, out + QPN_AT);
	put_unaligned_be32(hello->peer_qpn & NUMBER_MASK, out + PEER_QPN_AT);
	put_unaligned_be32(hello->rq_psn & NUMBER_MASK, out + RQ_PSN_AT);
	if (hello->has_sq_psn) {
		out[FLAGS_AT] |= FLAG_SQ_PSN;
		put_unaligned_be32(hello->sq_psn & NUMBER_MASK, out + SQ_PSN_AT);
	}
	if (hello->has_rnr_retry) {
		out[FLAGS_AT] |= FLAG_RNR_RETRY;
		out[FLAGS_AT] |= (hello->rnr_retry & RETRY_MASK) << RNR_RETRY_SHIFT;
	}
}

/**
 * weft_direct_parse - read the private data of the peer
 * @pd: what it sent
 * @len: bytes of it; more than WEFT_DIRECT_LEN are ignored
 * @out: filled only if the result is WEFT_DIRECT_OK
 *
 * Flags and extensions that are not known are ignored; numbers of more than 24 bits are
 * malformed.
 */
enum weft_direct_reason weft_direct_parse(const u8 *pd, u32 len, struct weft_direct_hello *out)
{
	struct weft_direct_hello hello = {};

	if (len < WEFT_DIRECT_REJECT_LEN || get_unaligned_be32(pd) != MAGIC)
		return WEFT_DIRECT_MALFORMED;
	if (pd[VERSION_AT] != WEFT_DIRECT_VERSION)
		return WEFT_DIRECT_BAD_VERSION;
	if (len < WEFT_DIRECT_LEN)
		return WEFT_DIRECT_MALFORMED;
	hello.has_sq_psn = pd[FLAGS_AT] & FLAG_SQ_PSN;
	hello.has_rnr_retry = pd[FLAGS_AT] & FLAG_RNR_RETRY;
	hello.rnr_retry = pd[FLAGS_AT] >> RNR_RETRY_SHIFT;
	hello.extensions = get_unaligned_be16(pd + EXTENSIONS_AT) & WEFT_DIRECT_EXTENSIONS;
	hello.qpn = get_unaligned_be32(pd + QPN_AT);
	hello.peer_qpn = get_unaligned_be32(pd + PEER_QPN_AT);
	hello.rq_psn = get_unaligned_be32(pd + RQ_PSN_AT);
	hello.sq_psn = get_unaligned_be32(pd + SQ_PSN_AT);
	if ((hello.qpn | hello.peer_qpn | hello.rq_psn | hello.sq_psn) & ~NUMBER_MASK)
		return WEFT_DIRECT_MALFORMED;
	*out = hello;
	return WEFT_DIRECT_OK;
}

/**
 * weft_direct_match - do the two ends mean each other?
 * @own: of this side
 * @peer: of the other
 *
 * A PSN that its owner does not know yet is not compared; that end does so itself once it
 * knows, with the @rq_psn it was told.
 */
enum weft_direct_reason weft_direct_match(const struct weft_direct_hello *own,
					  const struct weft_direct_hello *peer)
{
	if (own->qpn != peer->peer_qpn || own->peer_qpn != peer->qpn)
		return WEFT_DIRECT_NO_QP;
	if (own->has_sq_psn && ((own->sq_psn ^ peer->rq_psn) & NUMBER_MASK))
		return WEFT_DIRECT_BAD_PSN;
	if (peer->has_sq_psn && ((peer->sq_psn ^ own->rq_psn) & NUMBER_MASK))
		return WEFT_DIRECT_BAD_PSN;
	return WEFT_DIRECT_OK;
}

/**
 * weft_direct_build_reject - write the private data of a rejecting reply
 * @reason: why
 * @out: WEFT_DIRECT_REJECT_LEN bytes
 */
void weft_direct_build_reject(enum weft_direct_reason reason, u8 *out)
{
	memset(out, 0, WEFT_DIRECT_REJECT_LEN);
	put_unaligned_be32(MAGIC, out);
	out[VERSION_AT] = WEFT_DIRECT_VERSION;
	out[REASON_AT] = reason;
}

/**
 * weft_direct_parse_reject - read why the peer has rejected the request
 * @pd: what it sent
 * @len: bytes of it
 *
 * Return: the reason; WEFT_DIRECT_MALFORMED if none is given that is known.
 */
enum weft_direct_reason weft_direct_parse_reject(const u8 *pd, u32 len)
{
	if (len < WEFT_DIRECT_REJECT_LEN || get_unaligned_be32(pd) != MAGIC)
		return WEFT_DIRECT_MALFORMED;
	if (!pd[REASON_AT] || pd[REASON_AT] >= WEFT_DIRECT_REASONS)
		return WEFT_DIRECT_MALFORMED;
	return pd[REASON_AT];
}

/**
 * weft_direct_reason_name - for the log
 * @reason: any value
 */
const char *weft_direct_reason_name(enum weft_direct_reason reason)
{
	static const char *const names[WEFT_DIRECT_REASONS] = {
		/* clang-format off */
		[WEFT_DIRECT_OK]		= "accepted",
		[WEFT_DIRECT_MALFORMED]		= "malformed private data",
		[WEFT_DIRECT_BAD_VERSION]	= "another version",
		[WEFT_DIRECT_NO_QP]		= "no such QP, or it has another peer",
		[WEFT_DIRECT_BAD_PSN]		= "wrong PSN",
		[WEFT_DIRECT_BUSY]		= "busy",
		/* clang-format on */
	};

	return (size_t)reason < ARRAY_SIZE(names) ? names[reason] : "?";
}

/**
 * weft_direct_role - which end of a pair of QPs connects
 * @gid: of this side, WEFT_DIRECT_GID_LEN bytes
 * @qpn: of this side
 * @peer_gid: of the other side
 * @peer_qpn: of the other side
 *
 * The smaller one, by GID and then by number. Both ends come to the same answer.
 */
enum weft_direct_role weft_direct_role(const u8 *gid, u32 qpn, const u8 *peer_gid, u32 peer_qpn)
{
	int order = memcmp(gid, peer_gid, WEFT_DIRECT_GID_LEN);

	if (!order && qpn == peer_qpn)
		return WEFT_DIRECT_ITSELF;
	if (!order)
		order = qpn < peer_qpn ? -1 : 1;
	return order < 0 ? WEFT_DIRECT_CONNECTS : WEFT_DIRECT_ACCEPTS;
}

/**
 * weft_direct_retry_ns - how long a request may wait for a peer that does not answer
 * @timeout: of the QP, 5 bits: 0: for ever
 * @retry_cnt: of the QP, 3 bits
 *
 * What InfiniBand allows a requester to take, and no less than TCP needs to repeat something.
 *
 * Return: nanoseconds, 0: for ever.
 */
u64 weft_direct_retry_ns(u8 timeout, u8 retry_cnt)
{
	u64 ns = (u64)TIMEOUT_UNIT_NS << (timeout & TIMEOUT_MASK);

	if (!(timeout & TIMEOUT_MASK))
		return 0;
	ns *= TIMEOUT_SLACK * ((retry_cnt & RETRY_MASK) + 1);
	return max_t(u64, ns, RETRY_MIN_NS);
}

/**
 * weft_direct_rnr_ms - how long a message may wait for a receive
 * @rnr_retry: of its sender, 3 bits
 * @min_rnr_timer: of the QP that it comes to, 5 bits
 *
 * On InfiniBand the sender repeats it that often, each time after that time.
 *
 * Return: milliseconds, or WEFT_DIRECT_RNR_FOREVER.
 */
u32 weft_direct_rnr_ms(u8 rnr_retry, u8 min_rnr_timer)
{
	u32 code = min_rnr_timer & RNR_TIMER_MASK;
	u32 units;

	rnr_retry &= RETRY_MASK;
	if (rnr_retry == RNR_RETRY_FOREVER)
		return WEFT_DIRECT_RNR_FOREVER;
	/* Powers of two, and what is half-way between them; 0 is the longest. */
	if (!code)
		code = RNR_TIMER_MASK + 1;
	if (code == 1)
		units = 1;
	else if (code % 2)
		units = 3U << (code - 3) / 2;
	else
		units = 1U << code / 2;
	return (rnr_retry * units * RNR_TIMER_UNIT_US + 999) / 1000;
}
