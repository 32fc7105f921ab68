// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Posts the kernel need not be told of at once. */
#include "defer.h"

#include <stddef.h>
#include <time.h>

/* Requests without an empty CQ from which on an application is said to stream. */
#define STREAM 8

/* A QP is not destroyed while its link counts a call. */
void weft_defer_flush(struct weft_defer_cq *cq)
{
	struct weft_defer_link *link;

	weft_lock(&cq->lock);
	while ((link = cq->first)) {
		/* Calls of threads that a parent had are not under way here. */
		if (link->generation != weft_generation)
			link->calls = 0;
		link->calls++;
		link->generation = weft_generation;
		link->listed = false;
		__atomic_store_n(&cq->first, link->next, __ATOMIC_RELAXED);
		weft_unlock(&cq->lock);

		/* An error means that the QP or its device is gone, which other calls tell. */
		weft_doorbell(link->doorbell);

		weft_lock(&cq->lock);
		link->calls--;
	}
	weft_unlock(&cq->lock);
}

void weft_defer_remove(struct weft_defer *defer)
{
	const struct timespec moment = { .tv_nsec = WEFT_PAUSE_NS };
	struct weft_defer_link *link, **at;
	struct weft_defer_cq *cq;
	int i;

	for (i = 0; i < 2; i++) {
		cq = defer->cq[i];
		link = &defer->link[i];
		if (!cq)
			continue;

		weft_lock(&cq->lock);
		for (at = &cq->first; link->listed && *at; at = &(*at)->next) {
			if (*at != link)
				continue;
			__atomic_store_n(at, link->next, __ATOMIC_RELAXED);
			link->listed = false;
			break;
		}
		while (link->calls && link->generation == weft_generation) {
			weft_unlock(&cq->lock);
			nanosleep(&moment, NULL);
			weft_lock(&cq->lock);
		}
		weft_unlock(&cq->lock);
	}
}

void weft_defer_flush_qp(const struct weft_defer *defer)
{
	if (defer->link[0].listed || defer->link[1].listed)
		weft_doorbell(defer->link[0].doorbell);
}

static bool armed(const struct weft_defer_cq *cq)
{
	return cq && __atomic_load_n(&cq->armed, __ATOMIC_RELAXED) > 0;
}

bool weft_defer_is_streaming(struct weft_defer *defer, uint32_t posted)
{
	uint32_t now = 0;
	int i;

	for (i = 0; i < 2; i++) {
		if (defer->cq[i])
			now += __atomic_load_n(&defer->cq[i]->empty_polls, __ATOMIC_RELAXED);
	}
	if (now != defer->empty_polls) {
		defer->streams = defer->batch >= STREAM;
		defer->empty_polls = now;
		defer->batch = 0;
	}
	defer->batch += posted;
	if (defer->batch >= STREAM)
		defer->streams = true;
	return defer->streams && !armed(defer->cq[0]) && !armed(defer->cq[1]);
}

bool weft_defer_add(struct weft_defer *defer)
{
	struct weft_defer_link *link;
	struct weft_defer_cq *cq;
	int i;

	for (i = 0; i < 2; i++) {
		cq = defer->cq[i];
		link = &defer->link[i];
		if (!cq || link->listed)
			continue;
		weft_lock(&cq->lock);
		if (!link->listed) {
			link->listed = true;
			link->next = cq->first;
			__atomic_store_n(&cq->first, link, __ATOMIC_RELAXED);
		}
		weft_unlock(&cq->lock);
	}
	/* Pairs with weft_defer_arm(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return !armed(defer->cq[0]) && !armed(defer->cq[1]);
}
