/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Completion queues: poll, arm, forget a QP. */
#ifndef WEFT_CQ_H
#define WEFT_CQ_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "defer.h"
#include "lock.h"
#include "private-abi/private.h"
#include "queue.h"

struct weft_cq {
	struct verbs_cq vcq;
	uint32_t generation;	/* that made it */
	struct weft_lock lock;	/* cons, taken, wall_clock */
	struct weft_lock arming;	/* to arm, maybe amid an extended poll: @ctl */
	struct weft_queue queue;	/* changes under both locks */
	struct weft_cq_ctl *ctl;
	struct weft_defer_cq defer;
	uint32_t cons;			/* next entry to look at */
	const struct weft_cqe *taken;	/* the extended poll stands here */
	int64_t wall_clock;		/* realtime minus monotonic, in ns */
	bool wants_wall_clock;
};

static inline struct weft_cq *weft_cq(struct ibv_cq *ibcq)
{
	return container_of(ibcq, struct weft_cq, vcq.cq);
}

int weft_cq_init(struct weft_cq *cq, struct weft_regions *regions, const struct weft_queue_map *map,
		 bool single_threaded);

/*
 * Under both locks: go on in the region that took this one's place. If that fails the queue
 * is lost, since the kernel has switched: hence the room, which was kept before.
 */
int weft_cq_move(struct weft_cq *cq, struct weft_regions *regions, const struct weft_queue_map *map,
		 struct weft_va_range *room);

/* Entries there are to take: a count, or a negative errno. Under the lock. */
int weft_cq_pending(const struct weft_cq *cq);

enum ibv_wc_opcode weft_cqe_opcode(const struct weft_cqe *cqe);
unsigned int weft_cqe_flags(const struct weft_cqe *cqe);

/* Drop the completions of a QP that the kernel will add no more to. */
void weft_cq_forget(struct weft_cq *cq, uint32_t qp_num);

/* No poll follows soon: doorbells that were put off are due. Not under the lock. */
static inline void weft_cq_flush(struct weft_cq *cq)
{
	if (__atomic_load_n(&cq->defer.first, __ATOMIC_RELAXED))
		weft_defer_flush(&cq->defer);
}

int weft_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc);
int weft_req_notify_cq(struct ibv_cq *ibcq, int solicited_only);
void weft_cq_event(struct ibv_cq *ibcq);

#endif
