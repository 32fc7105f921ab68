/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Receive queue, of one QP or shared by many. Entries are handed out once, as
 * private checked copies, in the order they were posted.
 */
#ifndef WEFT_RING_RECVQ_H
#define WEFT_RING_RECVQ_H

#include <linux/spinlock.h>
#include <linux/types.h>

#include "ring/ring.h"
#include "ring/rq_wait.h"
#include "uapi/weft-abi.h"

/**
 * struct weft_rwr - a private, checked copy of a receive queue entry
 * @wr_id: handed back in the completion
 * @length: sum of the elements
 * @num_sge: elements of @sge
 * @sge: scatter list; the owner's, with room for as many as the queue allows
 */
struct weft_rwr {
	u64 wr_id;
	u64 length;
	u32 num_sge;
	struct weft_sge *sge;
};

/**
 * struct weft_recvq - a receive queue
 * @ring: memory
 * @ctl: control block, in @ring
 * @user: a process posts to it
 * @shared: by streams that fetch at the same time; set by the owner before there are any
 * @max_sge: elements an entry has room for
 * @has_doorbell: a process that rings when @ctl asks for it, or the kernel; set by the owner
 * @lock: for kernel producers @prod; @waiters; of a shared queue all that follows, @ring and
 *	@ctl. What only one stream fetches from, it fetches without
 * @cons: next entry to hand out
 * @seen: the producer index as last read from the control block
 * @prod: kernel producers' private producer index
 * @waiters: streams that wait for a receive
 * @limit: raise @limit_event once fewer entries than this remain, 0: disarmed
 * @limit_event: called without @lock, any context; may be NULL
 * @owner: handed to it
 */
struct weft_recvq {
	struct weft_ring ring;
	struct weft_rq_ctl *ctl;
	bool user;
	bool shared;
	bool has_doorbell;
	u16 max_sge;
	spinlock_t lock; /* prod, waiters, limit; weft_ring_lock() */
	u32 cons;
	u32 seen;
	u32 prod;
	struct weft_rq_waiters waiters;
	u32 limit;
	void (*limit_event)(void *owner);
	void *owner;
};

/* A snapshot, for resource tracking and queries. */
struct weft_recvq_details {
	u32 entries;
	u32 max_sge;
	u32 waiting;
	u32 consumed;
	u32 limit;
};

int weft_recvq_init(struct weft_recvq *rq, u32 entries, u32 max_sge, struct weft_ring_space *space);
void weft_recvq_free(struct weft_recvq *rq);
int weft_recvq_fetch(struct weft_recvq *rq, struct weft_rwr *out);
int weft_recvq_fetch_waited(struct weft_recvq *rq, struct weft_rq_waiter *w, struct weft_rwr *out);
void weft_recvq_wait(struct weft_recvq *rq, struct weft_rq_waiter *w);
void weft_recvq_leave(struct weft_recvq *rq, struct weft_rq_waiter *w);
void weft_recvq_posted(struct weft_recvq *rq);
int weft_recvq_discard(struct weft_recvq *rq);
void weft_recvq_set_flushing(struct weft_recvq *rq, bool flushing);
u32 weft_recvq_depth(const struct weft_recvq *rq);
void weft_recvq_inspect(struct weft_recvq *rq, struct weft_recvq_details *out);
int weft_recvq_set_limit(struct weft_recvq *rq, u32 limit);
int weft_recvq_resize(struct weft_recvq *rq, struct weft_ring *ring);

/* Kernel producers: all under @lock, taken by the caller for a whole list. */
struct weft_rqe *weft_recvq_reserve(struct weft_recvq *rq);
void weft_recvq_commit(struct weft_recvq *rq);
void weft_recvq_grant(struct weft_recvq *rq);

bool weft_recvq_needs_doorbell(const struct weft_recvq *rq);

#endif
