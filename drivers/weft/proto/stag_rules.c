// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * May a request touch an STag: one order of checks, three ways to word the
 * refusal. RFC 5041, 7.1 and 8; RFC 5040, 7.2 and 8.1.
 */
#include "proto/stag_rules.h"
#include "proto/ddp.h"

enum stag_refusal {
	REFUSE_STAG,
	REFUSE_STREAM,
	REFUSE_ACCESS,
	REFUSE_WRAP,
	REFUSE_BOUNDS,
	REFUSALS
};

/* DDP has no code for a missing right: an STag that may not be written is none. */
static const enum weft_fault wording[WEFT_STAG_CONTEXTS][REFUSALS] = {
	[WEFT_STAG_TAGGED] = {
		[REFUSE_STAG]	= WEFT_FAULT_TAGGED_STAG,
		[REFUSE_STREAM]	= WEFT_FAULT_TAGGED_STREAM,
		[REFUSE_ACCESS]	= WEFT_FAULT_TAGGED_STAG,
		[REFUSE_WRAP]	= WEFT_FAULT_TAGGED_WRAP,
		[REFUSE_BOUNDS]	= WEFT_FAULT_TAGGED_BOUNDS,
	},
	[WEFT_STAG_READ] = {
		[REFUSE_STAG]	= WEFT_FAULT_RDMAP_STAG,
		[REFUSE_STREAM]	= WEFT_FAULT_RDMAP_STREAM,
		[REFUSE_ACCESS]	= WEFT_FAULT_RDMAP_ACCESS,
		[REFUSE_WRAP]	= WEFT_FAULT_RDMAP_WRAP,
		[REFUSE_BOUNDS]	= WEFT_FAULT_RDMAP_BOUNDS,
	},
	[WEFT_STAG_LOCAL] = {
		[REFUSE_STAG]	= WEFT_FAULT_LOCAL_PROTECTION,
		[REFUSE_STREAM]	= WEFT_FAULT_LOCAL_PROTECTION,
		[REFUSE_ACCESS]	= WEFT_FAULT_LOCAL_PROTECTION,
		[REFUSE_WRAP]	= WEFT_FAULT_LOCAL_PROTECTION,
		[REFUSE_BOUNDS]	= WEFT_FAULT_LOCAL_PROTECTION,
	},
};

/**
 * weft_stag_refusal - why a request may not touch an STag, if it may not
 * @stag: a snapshot of the STag
 * @req: the requester, what it asks for, and which layer's faults refuse it
 *
 * Return: the first refusal in the order of protocol-rules, ORDER-5, or WEFT_FAULT_NONE.
 */
enum weft_fault weft_stag_refusal(const struct weft_stag_view *stag,
				  const struct weft_stag_req *req)
{
	const enum weft_fault *refusal = wording[req->context];
	u64 offset = req->to - stag->base;

	if (!req->len)
		return WEFT_FAULT_NONE;
	if (!stag->valid)
		return refusal[REFUSE_STAG];
	if (stag->pd != req->pd || (stag->qpn && stag->qpn != req->qpn))
		return refusal[REFUSE_STREAM];
	if ((stag->access & req->right) != req->right)
		return refusal[REFUSE_ACCESS];
	if (weft_ddp_to_wraps(req->to, req->len))
		return refusal[REFUSE_WRAP];
	/* Only differences are formed, so nothing can overflow. */
	if (req->to < stag->base || offset > stag->length || req->len > stag->length - offset)
		return refusal[REFUSE_BOUNDS];
	return WEFT_FAULT_NONE;
}
