/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * May this request touch this STag? RFC 5041, 7.1; RFC 5040, 7 and 8.
 */
#ifndef WEFT_PROTO_STAG_RULES_H
#define WEFT_PROTO_STAG_RULES_H

#include "proto/fault.h"

/* Values of enum ib_access_flags, which this room may not include. */
enum weft_access {
	WEFT_ACCESS_LOCAL_WRITE		= 1 << 0,
	WEFT_ACCESS_REMOTE_WRITE	= 1 << 1,
	WEFT_ACCESS_REMOTE_READ		= 1 << 2,
	WEFT_ACCESS_REMOTE_ATOMIC	= 1 << 3,
};

/* In whose words a refusal is told. */
enum weft_stag_context {
	WEFT_STAG_TAGGED,	/* DDP tagged buffer: RDMA Write */
	WEFT_STAG_READ,		/* RDMAP: Read Request, Atomic Request */
	WEFT_STAG_LOCAL,	/* an own work request */
	WEFT_STAG_CONTEXTS
};

/* A value snapshot; @valid false: no such STag, wrong key, or invalidated. */
struct weft_stag_view {
	bool valid;
	u32 pd;
	u32 qpn;	/* 0: any QP of the domain */
	u32 access;
	u64 base;
	u64 length;
};

/* @right: the bit needed, 0: none. @pd, @qpn: of the QP that asks. */
struct weft_stag_req {
	enum weft_stag_context context;
	u32 right;
	u32 pd;
	u32 qpn;
	u64 to;
	u32 len;
};

enum weft_fault weft_stag_refusal(const struct weft_stag_view *stag,
				  const struct weft_stag_req *req);

/* All the rules at once, in no order and without a branch: true is never refused. */
static __always_inline bool weft_stag_allows(const struct weft_stag_view *stag,
					     const struct weft_stag_req *req)
{
	u64 offset = req->to - stag->base;
	u64 last = req->to + req->len - 1;

	return stag->valid & (stag->pd == req->pd) & ((stag->qpn == 0) | (stag->qpn == req->qpn)) &
	       ((stag->access & req->right) == req->right) & (last >= req->to) &
	       (req->to >= stag->base) & (offset <= stag->length) &
	       (req->len <= stag->length - offset);
}

/**
 * weft_stag_check - may this request touch this STag?
 * @stag: a snapshot of the STag
 * @req: the requester, what it asks for, and which layer's faults refuse it
 *
 * An empty request touches nothing and is not checked at all (RFC 5041, 5.2;
 * RFC 5040, 5.2.1).
 *
 * Return: WEFT_FAULT_NONE, or the first refusal in the order of protocol-rules, ORDER-5.
 */
static inline enum weft_fault weft_stag_check(const struct weft_stag_view *stag,
					      const struct weft_stag_req *req)
{
	return weft_stag_allows(stag, req) ? WEFT_FAULT_NONE : weft_stag_refusal(stag, req);
}

#endif
