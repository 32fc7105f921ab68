// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * MPA start frames: build them, take them apart, and work out what both sides
 * agree on. RFC 5044, 7.1; RFC 6581, 6, 9 and 10.
 */
#include "proto/mpa_start.h"

#define REVISION_PLAIN		1
#define REVISION_ENHANCED	2

/* Bytes of private data: IRD half and ORD half of the enhanced block. */
#define ENH_IRD_AT		WEFT_MPA_START_LEN
#define ENH_ORD_AT		(WEFT_MPA_START_LEN + 2)

/* The largest depth that is one: WEFT_MPA_ENH_DEPTH means "not negotiated". */
#define DEPTH_MAX		(WEFT_MPA_ENH_DEPTH - 1)

/* In revision 1 the bit of S is a reserved one, to be ignored (RFC 5044, 7.1.1). */
static bool is_enhanced(const u8 *start)
{
	return start[WEFT_MPA_REV_AT] >= REVISION_ENHANCED &&
	       (start[WEFT_MPA_FLAGS_AT] & WEFT_MPA_FLAG_S);
}

/**
 * weft_mpa_start_length - judge the fixed part of a start frame
 * @start: WEFT_MPA_START_LEN bytes
 * @request: which kind is due
 * @pd_length: set to the bytes that follow
 *
 * Return: WEFT_FAULT_NONE or WEFT_FAULT_MPA_START.
 */
enum weft_fault weft_mpa_start_length(const u8 *start, bool request, u16 *pd_length)
{
	const char *key = request ? WEFT_MPA_KEY_REQ : WEFT_MPA_KEY_REP;
	u8 revision = start[WEFT_MPA_REV_AT];
	u16 len = get_unaligned_be16(start + WEFT_MPA_PDLEN_AT);

	if (memcmp(start, key, WEFT_MPA_KEY_LEN))
		return WEFT_FAULT_MPA_START;
	if (revision != REVISION_PLAIN && revision != REVISION_ENHANCED)
		return WEFT_FAULT_MPA_START;
	if (len > WEFT_MPA_PD_MAX || (is_enhanced(start) && len < WEFT_MPA_ENH_LEN))
		return WEFT_FAULT_MPA_START;
	*pd_length = len;
	return WEFT_FAULT_NONE;
}

static void parse_enhanced(const u8 *frame, struct weft_mpa_frame *out)
{
	u16 ird_half = get_unaligned_be16(frame + ENH_IRD_AT);
	u16 ord_half = get_unaligned_be16(frame + ENH_ORD_AT);

	out->enhanced = true;
	out->ird = ird_half & WEFT_MPA_ENH_DEPTH;
	out->ord = ord_half & WEFT_MPA_ENH_DEPTH;
	out->p2p = ird_half & WEFT_MPA_ENH_A;
	/* Without A the bits B, C and D say nothing (RFC 6581, 9.2). */
	if (out->p2p) {
		out->rtr |= ird_half & WEFT_MPA_ENH_B ? WEFT_RTR_SEND : 0;
		out->rtr |= ord_half & WEFT_MPA_ENH_C ? WEFT_RTR_WRITE : 0;
		out->rtr |= ord_half & WEFT_MPA_ENH_D ? WEFT_RTR_READ : 0;
	}
	out->pd += WEFT_MPA_ENH_LEN;
	out->pd_len -= WEFT_MPA_ENH_LEN;
}

/**
 * weft_mpa_start_parse - take a whole start frame apart
 * @frame: stays the caller's; @out points into it
 * @len: bytes of it
 * @request: which kind is due; R means nothing in a request
 * @out: filled only if the result is WEFT_FAULT_NONE
 *
 * Return: WEFT_FAULT_NONE or WEFT_FAULT_MPA_START.
 */
enum weft_fault weft_mpa_start_parse(const u8 *frame, u32 len, bool request,
				     struct weft_mpa_frame *out)
{
	u8 flags;
	u16 pd_len;

	if (len < WEFT_MPA_START_LEN || weft_mpa_start_length(frame, request, &pd_len) ||
	    len != (u32)WEFT_MPA_START_LEN + pd_len)
		return WEFT_FAULT_MPA_START;

	flags = frame[WEFT_MPA_FLAGS_AT];
	memset(out, 0, sizeof(*out));
	out->revision = frame[WEFT_MPA_REV_AT];
	out->markers = flags & WEFT_MPA_FLAG_M;
	out->crc = flags & WEFT_MPA_FLAG_C;
	out->reject = !request && (flags & WEFT_MPA_FLAG_R);
	out->pd = frame + WEFT_MPA_START_LEN;
	out->pd_len = pd_len;
	if (is_enhanced(frame))
		parse_enhanced(frame, out);
	return WEFT_FAULT_NONE;
}

/**
 * weft_mpa_pd_space - how much private data a consumer may give
 * @enhanced: the frame has an enhanced block
 */
u32 weft_mpa_pd_space(bool enhanced)
{
	return enhanced ? WEFT_MPA_PD_MAX - WEFT_MPA_ENH_LEN : WEFT_MPA_PD_MAX;
}

/* The inverse of weft_mpa_start_parse(). Depths are at most WEFT_MPA_ENH_DEPTH, as on the wire. */
static int store_frame(const struct weft_mpa_frame *f, bool request, const void *pd, u32 pd_len,
		       u8 *out)
{
	u32 block = f->enhanced ? WEFT_MPA_ENH_LEN : 0;
	u16 ird_half = f->ird;
	u16 ord_half = f->ord;

	if (pd_len > weft_mpa_pd_space(f->enhanced))
		return -EINVAL;
	memcpy(out, request ? WEFT_MPA_KEY_REQ : WEFT_MPA_KEY_REP, WEFT_MPA_KEY_LEN);
	out[WEFT_MPA_FLAGS_AT] =
		(f->markers ? WEFT_MPA_FLAG_M : 0) | (f->crc ? WEFT_MPA_FLAG_C : 0) |
		(f->reject ? WEFT_MPA_FLAG_R : 0) | (f->enhanced ? WEFT_MPA_FLAG_S : 0);
	out[WEFT_MPA_REV_AT] = f->revision;
	put_unaligned_be16(block + pd_len, out + WEFT_MPA_PDLEN_AT);
	if (f->p2p) {
		ird_half |= WEFT_MPA_ENH_A;
		ird_half |= f->rtr & WEFT_RTR_SEND ? WEFT_MPA_ENH_B : 0;
		ord_half |= f->rtr & WEFT_RTR_WRITE ? WEFT_MPA_ENH_C : 0;
		ord_half |= f->rtr & WEFT_RTR_READ ? WEFT_MPA_ENH_D : 0;
	}
	if (f->enhanced) {
		put_unaligned_be16(ird_half, out + ENH_IRD_AT);
		put_unaligned_be16(ord_half, out + ENH_ORD_AT);
	}
	if (pd_len)
		memcpy(out + WEFT_MPA_START_LEN + block, pd, pd_len);
	return WEFT_MPA_START_LEN + block + pd_len;
}

/**
 * weft_mpa_build_request - write a request frame
 * @policy: depths of WEFT_MPA_ENH_DEPTH and more are sent as "not negotiated"
 * @pd: private data of the consumer
 * @pd_len: its bytes
 * @out: WEFT_MPA_FRAME_MAX bytes
 */
int weft_mpa_build_request(const struct weft_mpa_policy *policy, const void *pd, u32 pd_len,
			   u8 *out)
{
	const struct weft_mpa_frame frame = {
		.revision	= policy->revision,
		.markers	= policy->markers,
		.crc		= policy->crc,
		.enhanced	= policy->revision >= REVISION_ENHANCED,
		.p2p		= policy->p2p,
		.rtr		= policy->rtr,
		.ird		= min_t(u32, policy->ird, WEFT_MPA_ENH_DEPTH),
		.ord		= min_t(u32, policy->ord, WEFT_MPA_ENH_DEPTH),
	};

	return store_frame(&frame, true, pd, pd_len, out);
}

/* What accept and reject have in common; everything of the block mirrors @request. */
static void reply_frame(const struct weft_mpa_frame *request, const struct weft_mpa_policy *policy,
			u32 ird, u32 ord, struct weft_mpa_frame *reply)
{
	memset(reply, 0, sizeof(*reply));
	reply->revision = request->revision;
	reply->markers = policy->markers;
	reply->crc = policy->crc;
	reply->enhanced = request->enhanced;
	reply->p2p = request->p2p;
	reply->ird = request->ord == WEFT_MPA_ENH_DEPTH ? WEFT_MPA_ENH_DEPTH :
							  min_t(u32, ird, DEPTH_MAX);
	reply->ord = request->ird == WEFT_MPA_ENH_DEPTH ? WEFT_MPA_ENH_DEPTH :
							  min_t(u32, ord, DEPTH_MAX);
}

/**
 * weft_mpa_build_accept - write an accepting reply
 * @request: what it answers
 * @policy: M and C state what this side wants, not what was agreed on
 * @result: from weft_mpa_respond()
 * @pd: private data of the consumer
 * @pd_len: its bytes
 * @out: WEFT_MPA_FRAME_MAX bytes
 */
int weft_mpa_build_accept(const struct weft_mpa_frame *request,
			  const struct weft_mpa_policy *policy,
			  const struct weft_mpa_result *result, const void *pd, u32 pd_len, u8 *out)
{
	struct weft_mpa_frame reply;

	reply_frame(request, policy, result->ird, result->ord, &reply);
	reply.rtr = result->rtr;
	return store_frame(&reply, false, pd, pd_len, out);
}

/* Kinds of RTR to accept; one at least, though none was offered (RFC 6581, 9.2). */
static u8 accepted_rtr(const struct weft_mpa_frame *request, const struct weft_mpa_policy *policy)
{
	u8 own = policy->rtr ? policy->rtr : WEFT_RTR_SEND | WEFT_RTR_WRITE | WEFT_RTR_READ;

	if (!request->p2p)
		return 0;
	return request->rtr & own ? request->rtr & own : own;
}

/**
 * weft_mpa_build_reject - write a rejecting reply
 * @request: what it answers
 * @policy: its depths go into the block, as those this side would need
 * @pd: private data of the consumer
 * @pd_len: its bytes
 * @out: WEFT_MPA_FRAME_MAX bytes
 */
int weft_mpa_build_reject(const struct weft_mpa_frame *request,
			  const struct weft_mpa_policy *policy, const void *pd, u32 pd_len, u8 *out)
{
	struct weft_mpa_frame reply;

	reply_frame(request, policy, policy->ird, policy->ord, &reply);
	reply.reject = true;
	reply.rtr = accepted_rtr(request, policy);
	return store_frame(&reply, false, pd, pd_len, out);
}

/**
 * weft_mpa_crc_missing - does the peer lack what this side requires?
 * @peer: its frame
 * @own: the policy of this side
 */
bool weft_mpa_crc_missing(const struct weft_mpa_frame *peer, const struct weft_mpa_policy *own)
{
	return own->crc == WEFT_MPA_CRC_REQUIRE && !peer->crc;
}

/* What both revisions settle, with the depths of this side's consumer. */
static void settle_plain(const struct weft_mpa_frame *peer, const struct weft_mpa_policy *own,
			 struct weft_mpa_result *out)
{
	memset(out, 0, sizeof(*out));
	out->revision = peer->revision;
	out->crc = peer->crc || own->crc;
	out->markers_tx = peer->markers;
	out->markers_rx = own->markers;
	out->enhanced = peer->enhanced;
	out->ird = own->ird;
	out->ord = min_t(u32, own->ord, WEFT_MPA_BLIND_ORD);
}

/* Own ORD under the IRD of the peer's enhanced frame, own IRD over its ORD as far as that goes. */
static void settle_depths(const struct weft_mpa_frame *peer, const struct weft_mpa_policy *own,
			  struct weft_mpa_result *out)
{
	u32 peer_ird = peer->ird == WEFT_MPA_ENH_DEPTH ? WEFT_MPA_BLIND_ORD : peer->ird;
	u32 most = max_t(u32, own->ird, own->ird_max);

	out->ord = min_t(u32, own->ord, peer_ird);
	out->ird = own->ird;
	if (peer->ord != WEFT_MPA_ENH_DEPTH)
		out->ird = max_t(u32, own->ird, min_t(u32, peer->ord, most));
}

/**
 * weft_mpa_respond - responder: what an acceptance would mean
 * @request: parsed
 * @policy: what this side wants; IRD is raised up to @policy->ird_max if asked for,
 *	ORD is lowered to what the initiator takes
 * @out: filled in any case
 *
 * The peer-to-peer model is the initiator's choice and always mirrored.
 *
 * Return: WEFT_FAULT_MPA_IRD if the only ready-to-receive message left is a Read
 * and there is no place for it: a reject is due.
 */
enum weft_fault weft_mpa_respond(const struct weft_mpa_frame *request,
				 const struct weft_mpa_policy *policy, struct weft_mpa_result *out)
{
	settle_plain(request, policy, out);
	out->early_send = policy->early_send && !request->p2p;
	if (!request->enhanced)
		return WEFT_FAULT_NONE;
	settle_depths(request, policy, out);
	out->rtr = accepted_rtr(request, policy);
	/*
	 * A zero-length Read takes a place like any other, so where it may come, there
	 * must be one; where there can be none, it may not come.
	 */
	if ((out->rtr & WEFT_RTR_READ) && !out->ird) {
		if (policy->ird_max)
			out->ird = 1;
		else
			out->rtr &= ~WEFT_RTR_READ;
	}
	return request->p2p && !out->rtr ? WEFT_FAULT_MPA_IRD : WEFT_FAULT_NONE;
}

/* The RTR to send: a Write costs the responder least, a Send most. */
static u8 chosen_rtr(const struct weft_mpa_frame *reply, const struct weft_mpa_policy *sent)
{
	static const u8 by_preference[] = { WEFT_RTR_WRITE, WEFT_RTR_READ, WEFT_RTR_SEND };
	u8 common = reply->rtr & sent->rtr;
	size_t i;

	if (!reply->ird)	/* no place for a Read */
		common &= ~WEFT_RTR_READ;
	for (i = 0; i < ARRAY_SIZE(by_preference); i++)
		if (common & by_preference[i])
			return by_preference[i];
	return 0;
}

/**
 * weft_mpa_conclude - initiator: what an accepting reply means
 * @reply: parsed, and not a reject
 * @sent: the policy the request was built from
 * @out: filled in any case; all of it is valid also on a fault of the terms
 *
 * Return: WEFT_FAULT_MPA_START for a reply with a block that was not asked for, or
 * without the one we asked for (RFC 6581, 10: the reply mirrors the request), or
 * without the CRC that @sent requires,
 * WEFT_FAULT_MPA_IRD or WEFT_FAULT_MPA_RTR if the terms cannot be met.
 */
enum weft_fault weft_mpa_conclude(const struct weft_mpa_frame *reply,
				  const struct weft_mpa_policy *sent, struct weft_mpa_result *out)
{
	bool asked = sent->revision >= REVISION_ENHANCED;

	settle_plain(reply, sent, out);
	if (reply->enhanced != asked || weft_mpa_crc_missing(reply, sent))
		return WEFT_FAULT_MPA_START;
	if (!asked)
		return WEFT_FAULT_NONE;

	settle_depths(reply, sent, out);
	if (sent->p2p)
		out->rtr = chosen_rtr(reply, sent);
	if (out->rtr == WEFT_RTR_READ)
		out->ord = max_t(u32, out->ord, 1);

	if (reply->ord != WEFT_MPA_ENH_DEPTH && reply->ord > out->ird)
		return WEFT_FAULT_MPA_IRD;
	if (sent->p2p && !out->rtr)
		return WEFT_FAULT_MPA_RTR;
	return WEFT_FAULT_NONE;
}
