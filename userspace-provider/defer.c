// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Posts the kernel need not be told of at once. */
#include "defer.h"

#include <stddef.h>

/* Requests without an empty CQ from which on an application is said to stream. */
#define STREAM 8

void weft_defer_cq_init(struct weft_defer_cq *cq)
{
	weft_lock_init(&cq->lock, false);
}

static void add(struct weft_defer_cq *cq, struct weft_defer_link *link)
{
	weft_lock(&cq->lock);
	if (!link->listed) {
		link->listed = true;
		link->next = cq->first;
		__atomic_store_n(&cq->first, link, __ATOMIC_RELAXED);
	}
	weft_unlock(&cq->lock);
}

static void drop(struct weft_defer_cq *cq, struct weft_defer_link *link)
{
	struct weft_defer_link **at;

	weft_lock(&cq->lock);
	for (at = &cq->first; link->listed && *at; at = &(*at)->next) {
		if (*at == link) {
			__atomic_store_n(at, link->next, __ATOMIC_RELAXED);
			link->listed = false;
			break;
		}
	}
	weft_unlock(&cq->lock);
}

/* Calls of threads that a parent had are not under way here. */
static bool is_called(const struct weft_defer_link *link)
{
	return link->calls && link->generation == weft_generation;
}

/* Its QP is not destroyed before finish(). */
static struct weft_defer_link *take(struct weft_defer_cq *cq)
{
	struct weft_defer_link *link;

	weft_lock(&cq->lock);
	link = cq->first;
	if (link) {
		link->calls = is_called(link) ? link->calls + 1 : 1;
		link->generation = weft_generation;
		link->listed = false;
		__atomic_store_n(&cq->first, link->next, __ATOMIC_RELAXED);
	}
	weft_unlock(&cq->lock);
	return link;
}

static void finish(struct weft_defer_cq *cq, struct weft_defer_link *link)
{
	weft_lock(&cq->lock);
	link->calls--;
	weft_unlock(&cq->lock);
}

/* An error means that the QP or its device is gone, which other calls tell. */
void weft_defer_flush(struct weft_defer_cq *cq)
{
	struct weft_defer_link *link;

	while ((link = take(cq))) {
		weft_doorbell(link->doorbell);
		finish(cq, link);
	}
}

void weft_defer_init(struct weft_defer *defer, const struct weft_doorbell *doorbell,
		     struct weft_defer_cq *send_cq, struct weft_defer_cq *recv_cq)
{
	defer->cq[0] = send_cq;
	defer->cq[1] = recv_cq != send_cq ? recv_cq : NULL;
	defer->link[0].doorbell = doorbell;
	defer->link[1].doorbell = doorbell;
}

static void wait_for_calls(struct weft_defer_cq *cq, const struct weft_defer_link *link)
{
	bool called;

	for (;;) {
		weft_lock(&cq->lock);
		called = is_called(link);
		weft_unlock(&cq->lock);
		if (!called)
			return;
		weft_lock_pause();
	}
}

void weft_defer_remove(struct weft_defer *defer)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (!defer->cq[i])
			continue;
		drop(defer->cq[i], &defer->link[i]);
		wait_for_calls(defer->cq[i], &defer->link[i]);
	}
}

void weft_defer_flush_qp(const struct weft_defer *defer)
{
	if (defer->link[0].listed || defer->link[1].listed)
		weft_doorbell(defer->link[0].doorbell);
}

static uint32_t empty_polls(const struct weft_defer_cq *cq)
{
	return cq ? __atomic_load_n(&cq->empty_polls, __ATOMIC_RELAXED) : 0;
}

static bool armed(const struct weft_defer_cq *cq)
{
	return cq && __atomic_load_n(&cq->armed, __ATOMIC_RELAXED) > 0;
}

bool weft_defer_is_streaming(struct weft_defer *defer, uint32_t posted)
{
	uint32_t now = empty_polls(defer->cq[0]) + empty_polls(defer->cq[1]);

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
	int i;

	for (i = 0; i < 2; i++)
		if (defer->cq[i] && !defer->link[i].listed)
			add(defer->cq[i], &defer->link[i]);
	/* Pairs with weft_defer_arm(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return !armed(defer->cq[0]) && !armed(defer->cq[1]);
}
