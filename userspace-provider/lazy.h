/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Posts the kernel need not be told of at once. While an application streams, it
 * posts many requests between polls that leave nothing behind; then one kick does
 * for all of them. A queue whose posts wait is on the lists of its CQs, and the
 * first of them that is polled in vain kicks it. For an application that never
 * polls the kernel watches the queue (Documentation/abi.md).
 */
#ifndef WEFT_LAZY_H
#define WEFT_LAZY_H

#include <stdbool.h>
#include <stdint.h>

#include "kick.h"
#include "lock.h"

struct weft_lazy_link {
	struct weft_lazy_link *next;
	const struct weft_kick *kick;
	bool listed;
	uint32_t kicks;			/* calls under way of those who took it off the list */
	uint32_t generation;		/* that made them */
};

/* A CQ's part: who waits for it to be polled in vain. */
struct weft_lazy_cq {
	struct weft_lock lock;		/* the list, and the links in it */
	struct weft_lazy_link *first;
	uint32_t rests;			/* polls that left nothing in it */
	int32_t armed;			/* events asked for and not delivered yet */
};

/* A send queue's part, under the lock of the queue. */
struct weft_lazy {
	struct weft_lazy_cq *cq[2];	/* the second may be missing */
	struct weft_lazy_link link[2];
	uint32_t rests;			/* of both, as last seen */
	uint32_t batch;			/* requests posted since */
	bool streams;
};

void weft_lazy_cq_init(struct weft_lazy_cq *cq);

/* A poll left nothing to take; under the CQ's lock. */
static inline void weft_lazy_rest(struct weft_lazy_cq *cq)
{
	__atomic_store_n(&cq->rests, cq->rests + 1, __ATOMIC_RELAXED);
}

/* Does anybody wait to be kicked? */
static inline bool weft_lazy_owes(const struct weft_lazy_cq *cq)
{
	return __atomic_load_n(&cq->first, __ATOMIC_RELAXED);
}

/* Kicks them. After the CQ's lock. */
void weft_lazy_flush(struct weft_lazy_cq *cq);

/*
 * The application will sleep until an event: no post may wait any more. The fence pairs
 * with the one in weft_lazy_defer(): whoever flushes now finds the queue that was put
 * on the list, or whoever put it there finds the CQ armed.
 */
static inline void weft_lazy_arm(struct weft_lazy_cq *cq)
{
	__atomic_fetch_add(&cq->armed, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* One such event has reached the application. */
static inline void weft_lazy_disarm(struct weft_lazy_cq *cq)
{
	__atomic_fetch_sub(&cq->armed, 1, __ATOMIC_RELAXED);
}

void weft_lazy_init(struct weft_lazy *lazy, const struct weft_kick *kick,
		    struct weft_lazy_cq *send_cq, struct weft_lazy_cq *recv_cq);

/*
 * Nobody is to kick for its sake any more. Waits for the calls that threads which poll
 * its CQs have under way: the kernel does not destroy a QP that is being kicked.
 */
void weft_lazy_leave(struct weft_lazy *lazy);

/* Kicks if a kick was put off: the QP is about to change. */
void weft_lazy_settle(const struct weft_lazy *lazy);

/* Has the application not come to rest for long? @posted requests more. */
bool weft_lazy_streams(struct weft_lazy *lazy, uint32_t posted);

/*
 * The kick may wait for the CQs. Returns false if one of them was armed meanwhile: then it
 * is due now.
 */
bool weft_lazy_defer(struct weft_lazy *lazy);

#endif
