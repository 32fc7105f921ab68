// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Posts the kernel need not be told of at once. */
#include "lazy.h"

#include <stddef.h>

/* Requests without a rest from which on an application is said to stream. */
#define STREAM 8

void weft_lazy_cq_init(struct weft_lazy_cq *cq)
{
	weft_lock_init(&cq->lock, false);
}

static void add(struct weft_lazy_cq *cq, struct weft_lazy_link *link)
{
	weft_lock(&cq->lock);
	if (!link->listed) {
		link->listed = true;
		link->next = cq->first;
		__atomic_store_n(&cq->first, link, __ATOMIC_RELAXED);
	}
	weft_unlock(&cq->lock);
}

static void drop(struct weft_lazy_cq *cq, struct weft_lazy_link *link)
{
	struct weft_lazy_link **at;

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
static bool is_kicked(const struct weft_lazy_link *link)
{
	return link->kicks && link->generation == weft_generation;
}

/* Its QP is not destroyed before finish(). */
static struct weft_lazy_link *take(struct weft_lazy_cq *cq)
{
	struct weft_lazy_link *link;

	weft_lock(&cq->lock);
	link = cq->first;
	if (link) {
		link->kicks = is_kicked(link) ? link->kicks + 1 : 1;
		link->generation = weft_generation;
		link->listed = false;
		__atomic_store_n(&cq->first, link->next, __ATOMIC_RELAXED);
	}
	weft_unlock(&cq->lock);
	return link;
}

static void finish(struct weft_lazy_cq *cq, struct weft_lazy_link *link)
{
	weft_lock(&cq->lock);
	link->kicks--;
	weft_unlock(&cq->lock);
}

/* An error means that the QP or its device is gone, which other calls tell. */
void weft_lazy_flush(struct weft_lazy_cq *cq)
{
	struct weft_lazy_link *link;

	while ((link = take(cq))) {
		weft_kick(link->kick);
		finish(cq, link);
	}
}

void weft_lazy_init(struct weft_lazy *lazy, const struct weft_kick *kick,
		    struct weft_lazy_cq *send_cq, struct weft_lazy_cq *recv_cq)
{
	lazy->cq[0] = send_cq;
	lazy->cq[1] = recv_cq != send_cq ? recv_cq : NULL;
	lazy->link[0].kick = kick;
	lazy->link[1].kick = kick;
}

static void wait_for_kicks(struct weft_lazy_cq *cq, const struct weft_lazy_link *link)
{
	bool kicked;

	for (;;) {
		weft_lock(&cq->lock);
		kicked = is_kicked(link);
		weft_unlock(&cq->lock);
		if (!kicked)
			return;
		weft_doze();
	}
}

void weft_lazy_leave(struct weft_lazy *lazy)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (!lazy->cq[i])
			continue;
		drop(lazy->cq[i], &lazy->link[i]);
		wait_for_kicks(lazy->cq[i], &lazy->link[i]);
	}
}

void weft_lazy_settle(const struct weft_lazy *lazy)
{
	if (lazy->link[0].listed || lazy->link[1].listed)
		weft_kick(lazy->link[0].kick);
}

static uint32_t rests(const struct weft_lazy_cq *cq)
{
	return cq ? __atomic_load_n(&cq->rests, __ATOMIC_RELAXED) : 0;
}

static bool armed(const struct weft_lazy_cq *cq)
{
	return cq && __atomic_load_n(&cq->armed, __ATOMIC_RELAXED) > 0;
}

bool weft_lazy_streams(struct weft_lazy *lazy, uint32_t posted)
{
	uint32_t now = rests(lazy->cq[0]) + rests(lazy->cq[1]);

	if (now != lazy->rests) {
		lazy->streams = lazy->batch >= STREAM;
		lazy->rests = now;
		lazy->batch = 0;
	}
	lazy->batch += posted;
	if (lazy->batch >= STREAM)
		lazy->streams = true;
	return lazy->streams && !armed(lazy->cq[0]) && !armed(lazy->cq[1]);
}

bool weft_lazy_defer(struct weft_lazy *lazy)
{
	int i;

	for (i = 0; i < 2; i++)
		if (lazy->cq[i] && !lazy->link[i].listed)
			add(lazy->cq[i], &lazy->link[i]);
	/* Pairs with weft_lazy_arm(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return !armed(lazy->cq[0]) && !armed(lazy->cq[1]);
}
