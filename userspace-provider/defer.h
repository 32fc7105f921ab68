/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Posts the kernel need not be told of at once. While an application streams, it
 * posts many requests between polls that leave nothing behind; then one doorbell does
 * for all of them. A queue whose posts wait is on the lists of its CQs, and the
 * first of them that is polled empty rings it. For an application that never
 * polls the kernel polls the queue (Documentation/abi.md).
 */
#ifndef WEFT_DEFER_H
#define WEFT_DEFER_H

#include <stdbool.h>
#include <stdint.h>

#include "doorbell.h"
#include "lock.h"

struct weft_defer_link {
	struct weft_defer_link *next;
	const struct weft_doorbell *doorbell;
	bool listed;
	uint32_t calls;			/* calls under way of threads that took it off the list */
	uint32_t generation;		/* that made them */
};

/* A CQ's part: the queues that wait for it to be polled empty. */
struct weft_defer_cq {
	struct weft_lock lock;		/* first, weft_defer_link.next, weft_defer_link.listed */
	struct weft_defer_link *first;
	uint32_t empty_polls;			/* polls that left nothing in it */
	int32_t armed;			/* events asked for and not delivered yet */
};

/* A send queue's part, under the lock of the queue. */
struct weft_defer {
	struct weft_defer_cq *cq[2];	/* the second may be missing */
	struct weft_defer_link link[2];
	uint32_t empty_polls;			/* of both, as last seen */
	uint32_t batch;			/* requests posted since */
	bool streams;
};

/* A poll left nothing to take; under the CQ's lock. */
static inline void weft_defer_note_empty(struct weft_defer_cq *cq)
{
	__atomic_store_n(&cq->empty_polls, cq->empty_polls + 1, __ATOMIC_RELAXED);
}

/* Rings them. After the CQ's lock. */
void weft_defer_flush(struct weft_defer_cq *cq);

/*
 * The application will sleep until an event: no post may wait any more. The fence pairs
 * with the one in weft_defer_add(): the thread that flushes now finds the queue that was put
 * on the list, or the thread that put it there finds the CQ armed.
 */
static inline void weft_defer_arm(struct weft_defer_cq *cq)
{
	__atomic_fetch_add(&cq->armed, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* One such event has reached the application. */
static inline void weft_defer_disarm(struct weft_defer_cq *cq)
{
	__atomic_fetch_sub(&cq->armed, 1, __ATOMIC_RELAXED);
}

/*
 * No thread is to ring for its sake any more. Waits for the calls that threads which poll
 * its CQs have under way: the kernel does not destroy a QP whose doorbell is being rung.
 */
void weft_defer_remove(struct weft_defer *defer);

/* Rings if a doorbell was put off: the QP is about to change. */
void weft_defer_flush_qp(const struct weft_defer *defer);

/* Has no CQ been polled empty for long? @posted requests more. */
bool weft_defer_is_streaming(struct weft_defer *defer, uint32_t posted);

/*
 * The doorbell may wait for the CQs. Returns false if one of them was armed meanwhile: then it
 * is due now.
 */
bool weft_defer_add(struct weft_defer *defer);

#endif
