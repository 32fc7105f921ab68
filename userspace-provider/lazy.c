// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Posts the kernel need not be told of at once. */
#include "lazy.h"

#include <stddef.h>

/* Requests without a rest from which on an application is said to stream. */
#define STREAM 8

void weft_lazy_cq_init(struct weft_lazy_cq *cq)
{
	pthread_spin_init(&cq->lock, PTHREAD_PROCESS_PRIVATE);
}

void weft_lazy_cq_fini(struct weft_lazy_cq *cq)
{
	pthread_spin_destroy(&cq->lock);
}

static void add(struct weft_lazy_cq *cq, struct weft_lazy_link *link)
{
	pthread_spin_lock(&cq->lock);
	if (!link->listed) {
		link->listed = true;
		link->next = cq->first;
		__atomic_store_n(&cq->first, link, __ATOMIC_RELAXED);
	}
	pthread_spin_unlock(&cq->lock);
}

static void drop(struct weft_lazy_cq *cq, struct weft_lazy_link *link)
{
	struct weft_lazy_link **at;

	pthread_spin_lock(&cq->lock);
	for (at = &cq->first; link->listed && *at; at = &(*at)->next) {
		if (*at == link) {
			__atomic_store_n(at, link->next, __ATOMIC_RELAXED);
			link->listed = false;
			break;
		}
	}
	pthread_spin_unlock(&cq->lock);
}

/* The kick is copied: once the lock is let go, the queue may be destroyed. */
static bool take(struct weft_lazy_cq *cq, struct weft_kick *kick)
{
	struct weft_lazy_link *link;

	pthread_spin_lock(&cq->lock);
	link = cq->first;
	if (link) {
		*kick = *link->kick;
		link->listed = false;
		__atomic_store_n(&cq->first, link->next, __ATOMIC_RELAXED);
	}
	pthread_spin_unlock(&cq->lock);
	return link;
}

/* An error means that the QP or its device is gone, which other calls tell. */
void weft_lazy_flush(struct weft_lazy_cq *cq)
{
	struct weft_kick kick;

	while (take(cq, &kick))
		weft_kick(&kick);
}

void weft_lazy_init(struct weft_lazy *lazy, const struct weft_kick *kick,
		    struct weft_lazy_cq *send_cq, struct weft_lazy_cq *recv_cq)
{
	lazy->cq[0] = send_cq;
	lazy->cq[1] = recv_cq != send_cq ? recv_cq : NULL;
	lazy->link[0].kick = kick;
	lazy->link[1].kick = kick;
}

void weft_lazy_fini(struct weft_lazy *lazy)
{
	int i;

	for (i = 0; i < 2; i++)
		if (lazy->cq[i])
			drop(lazy->cq[i], &lazy->link[i]);
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
	return cq && __atomic_load_n(&cq->armed, __ATOMIC_RELAXED);
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

void weft_lazy_defer(struct weft_lazy *lazy)
{
	int i;

	for (i = 0; i < 2; i++)
		if (lazy->cq[i] && !lazy->link[i].listed)
			add(lazy->cq[i], &lazy->link[i]);
}
