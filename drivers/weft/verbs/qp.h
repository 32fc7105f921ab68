/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A queue pair: ib_core's object, two rings and a stream.
 */
#ifndef WEFT_VERBS_QP_H
#define WEFT_VERBS_QP_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/mutex.h>
#include <rdma/ib_verbs.h>

#include "engine/life/stream.h"
#include "ring/recvq.h"
#include "ring/sendq.h"
#include "verbs/qp_attrs.h"
#include "verbs/tracked.h"

struct weft_direct;

/**
 * struct weft_qp - a queue pair
 * @stream: everything it does; lives as long as the QP
 * @modify_lock: @attrs, @direct; one modify at a time
 * @attrs: as set by modifies
 * @direct: a modify has connected it to a peer; NULL: none has, or it is over
 * @signal_all: every send completes
 * @muted: its owner resets it, and gets no events of that
 * @lookups: by iw_cm, which has not taken its reference yet
 * @iw_refs: ids of iw_cm that work on it; RESET waits until there are none
 * @tracked: references of dumps, and one for each of @iw_refs; while it is hidden its owner gets no
 *	events
 * @rq: its own receive queue, unused with an SRQ; another CPU takes from it than sends
 */
struct weft_qp {
	struct ib_qp ib;
	struct weft_stream *stream;
	struct mutex modify_lock; /* attrs, direct */
	struct weft_qp_attrs attrs;
	struct weft_direct *direct;
	atomic_t lookups;
	atomic_t iw_refs;
	struct weft_tracked tracked;
	bool signal_all;
	bool muted;
	struct weft_recvq rq;
	struct weft_sendq sq ____cacheline_aligned_in_smp;
};

static inline struct weft_qp *to_weft_qp(struct ib_qp *ib)
{
	return container_of(ib, struct weft_qp, ib);
}

void weft_qp_caps(const struct weft_qp *qp, bool srq, struct ib_qp_cap *cap);

int weft_create_qp(struct ib_qp *ib, struct ib_qp_init_attr *init, struct ib_udata *udata);
int weft_destroy_qp(struct ib_qp *ib, struct ib_udata *udata);

/* verbs/qp_modify.c */
int weft_modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
int weft_query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init);

/* verbs/qp_direct.c; modify_lock held, may sleep. */
int weft_qp_direct_rtr(struct weft_qp *qp, const struct weft_qp_attrs *attrs);
int weft_qp_direct_rts(struct weft_qp *qp, const struct weft_qp_attrs *attrs);
void weft_qp_direct_end(struct weft_qp *qp);

/* For iw_cm. */
struct ib_qp *weft_iw_get_qp(struct ib_device *ib, int qpn);
void weft_iw_add_ref(struct ib_qp *ib);
void weft_iw_rem_ref(struct ib_qp *ib);
void weft_iw_disown(struct ib_device *ib, u32 qpn);

#endif
