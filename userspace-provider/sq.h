/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The send queue of a QP: entries, payload, publication. */
#ifndef WEFT_SQ_H
#define WEFT_SQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "doorbell.h"
#include "defer.h"
#include "lock.h"
#include "queue.h"

struct weft_sq {
	struct weft_lock lock;		/* prod, cons, direct; defer, the entries in between */
	struct weft_queue queue;
	struct weft_sq_ctl *ctl;
	struct weft_doorbell doorbell;
	struct weft_defer defer;
	uint32_t prod;			/* next entry to fill */
	uint32_t cons;		/* the kernel's word as last seen */
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t max_inline;
	bool direct;			/* connected by ibv_modify_qp() */
	uint8_t sticky_flags;		/* SIGNALED when every WR is */
};

struct weft_sq_cap {
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t max_inline;
	struct weft_defer_cq *send_cq;
	struct weft_defer_cq *recv_cq;
	bool signal_all;
	bool single_threaded;
};

int weft_sq_init(struct weft_sq *sq, struct weft_regions *regions, const struct weft_queue_map *map,
		 const struct weft_sq_cap *cap);

/*
 * Under the lock: the next free entry with a head that says @opcode and no
 * payload, or NULL with *@err set. It counts once sq->prod is advanced.
 */
struct weft_sqe *weft_sq_open(struct weft_sq *sq, uint64_t wr_id, uint8_t opcode,
			      unsigned int send_flags, int *err);

/*
 * Payload of an open entry: 0; EINVAL when it does not fit or belong; EFAULT when it is in
 * memory that a parent has registered.
 */
int weft_sq_put_sges(const struct weft_sq *sq, struct weft_sqe *sqe, const struct ibv_sge *sges,
		     size_t count);
int weft_sq_put_inline(const struct weft_sq *sq, struct weft_sqe *sqe, const void *data,
		       size_t length);

/*
 * Under the lock: pass everything before sq->prod on, of which @posted requests
 * are new. True: the kernel asks for a doorbell, to be given after the lock.
 */
bool weft_sq_publish(struct weft_sq *sq, uint32_t posted);

/*
 * Operands of an entry. A plain compare and swap has masks of ones, a plain fetch and add
 * masks of zeros and nothing to swap.
 */
static inline void weft_sq_put_atomic(struct weft_sqe *sqe, uint64_t compare_add, uint64_t swap,
				      uint64_t masks)
{
	sqe->atomic.compare_add = compare_add;
	sqe->atomic.swap = swap;
	sqe->atomic.compare_mask = masks;
	sqe->atomic.swap_mask = masks;
}

void weft_sq_put_bind(struct weft_sqe *sqe, const struct ibv_mw *mw, uint32_t rkey,
		      const struct ibv_mw_bind_info *info);

#endif
