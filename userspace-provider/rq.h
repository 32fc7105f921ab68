/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Receive queues, a QP's own or shared. */
#ifndef WEFT_RQ_H
#define WEFT_RQ_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "lock.h"
#include "queue.h"

struct weft_doorbell;

struct weft_rq {
	struct weft_lock lock;		/* prod, cons, the entries in between */
	struct weft_queue queue;
	struct weft_rq_ctl *ctl;
	const struct weft_doorbell *doorbell;	/* of the QP, or of the SRQ */
	uint32_t prod;			/* next entry to fill */
	uint32_t cons;			/* the kernel's word as last seen */
	uint32_t max_wr;
	uint32_t max_sge;
};

struct weft_rq_cap {
	uint32_t max_wr;
	uint32_t max_sge;
	bool single_threaded;
};

int weft_rq_init(struct weft_rq *rq, struct weft_regions *regions, const struct weft_queue_map *map,
		 const struct weft_rq_cap *cap);

/*
 * Under the lock: go on in the region that took this one's place. If that fails the queue
 * is lost, since the kernel has switched: hence the room, which was kept before.
 */
int weft_rq_move(struct weft_rq *rq, struct weft_regions *regions, const struct weft_queue_map *map,
		 struct weft_va_range *room);

/* ibv_post_recv() and ibv_post_srq_recv(). Errors leave @bad_wr at the culprit. */
int weft_rq_post(struct weft_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

#endif
