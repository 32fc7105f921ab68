// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Untrusted start frames. Input: one byte for the side we are on, twelve of
 * our wishes, then the frame.
 */
#include "fuzz.h"
#include "proto/mpa_start.h"

static struct weft_mpa_policy own_wishes(struct input *in)
{
	u8 bits = take(in, 1);
	struct weft_mpa_policy policy = {
		.revision = bits & 1 ? 2 : 1,
		.crc = bits & 2,
		.markers = bits & 4,
		.p2p = bits & 8,
		.rtr = bits >> 4 & 7,
		.ird = take(in, 3),
		.ord = take(in, 3),
		.ird_max = take(in, 3),
	};

	take(in, 2);
	return policy;
}

/* What we answer has to be a frame that we would take ourselves. */
static void must_parse(const u8 *wire, int len, struct weft_mpa_frame *out)
{
	u8 *copy = exact(wire, len);
	struct weft_mpa_frame frame;

	PROMISE(len >= WEFT_MPA_START_LEN && len <= WEFT_MPA_FRAME_MAX);
	PROMISE(!weft_mpa_start_parse(copy, len, false, &frame));
	*out = frame;
	free(copy);
}

static void answer(const struct weft_mpa_frame *request, const struct weft_mpa_policy *own)
{
	u8 *wire = malloc(WEFT_MPA_FRAME_MAX);
	struct weft_mpa_result result;
	struct weft_mpa_frame reply;
	int len;

	if (!weft_mpa_respond(request, own, &result)) {
		len = weft_mpa_build_accept(request, own, &result, request->pd, request->pd_len,
					    wire);
		must_parse(wire, len, &reply);
		PROMISE(!reply.reject);
		PROMISE(reply.enhanced == request->enhanced);
		PROMISE(!request->p2p || (reply.p2p && reply.rtr));
		PROMISE(!request->enhanced || request->ird == WEFT_MPA_ENH_DEPTH ||
			result.ord <= request->ird);
	}
	len = weft_mpa_build_reject(request, own, request->pd, request->pd_len, wire);
	must_parse(wire, len, &reply);
	PROMISE(reply.reject);
	free(wire);
}

static void conclude(const struct weft_mpa_frame *reply, const struct weft_mpa_policy *own)
{
	struct weft_mpa_result result;

	if (reply->reject || weft_mpa_conclude(reply, own, &result))
		return;
	PROMISE(!(result.rtr & (result.rtr - 1)));
	PROMISE(!result.rtr || (result.rtr & own->rtr & reply->rtr));
	PROMISE(result.rtr != WEFT_RTR_READ || result.ord);
	PROMISE(!reply->enhanced || reply->ord == WEFT_MPA_ENH_DEPTH || result.ird >= reply->ord);
}

int fuzz_one(const u8 *data, size_t size)
{
	struct input in = { data, size };
	bool request = take(&in, 1) & 1;
	struct weft_mpa_policy own = own_wishes(&in);
	u8 *wire = exact(in.at, in.left);
	struct weft_mpa_frame frame;
	u16 pd_len;

	if (in.left >= WEFT_MPA_START_LEN && !weft_mpa_start_length(wire, request, &pd_len))
		PROMISE(pd_len <= WEFT_MPA_PD_MAX);
	if (weft_mpa_start_parse(wire, in.left, request, &frame)) {
		say("refused");
	} else {
		say("rev=%u m=%u c=%u r=%u s=%u a=%u rtr=%u ird=%u ord=%u pd=", frame.revision,
		    frame.markers, frame.crc, frame.reject, frame.enhanced, frame.p2p, frame.rtr,
		    frame.ird, frame.ord);
		say_bytes(frame.pd, frame.pd_len);
		PROMISE(frame.pd + frame.pd_len == wire + in.left);
		PROMISE(frame.ird <= WEFT_MPA_ENH_DEPTH && frame.ord <= WEFT_MPA_ENH_DEPTH);
		PROMISE(frame.p2p || !frame.rtr);
		if (request)
			answer(&frame, &own);
		else
			conclude(&frame, &own);
	}
	free(wire);
	return 0;
}
