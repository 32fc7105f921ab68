/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Where both ends of a connection are on one host, what we send is received on
 * top of the very task that sends. What that owes a short answer is run by this
 * task when its own work is done, not by a worker that must be woken first.
 */
#ifndef WEFT_ENGINE_RELAY_H
#define WEFT_ENGINE_RELAY_H

#include <linux/llist.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/types.h>

struct weft_stream;

/* Of a CPU. */
struct weft_relay_seat {
	struct task_struct *task;
	struct llist_head owed;
};

/* On the stack of a task that runs tx, or reads for itself. */
struct weft_relay {
	struct weft_relay_seat *seat;
	struct weft_stream *st;
};

DECLARE_PER_CPU(struct weft_relay_seat, weft_relay_seats);

/**
 * weft_relay_open - be there for what this task's sending brings in
 * @relay: for weft_relay_close()
 * @st: stream that it runs tx of; NULL: it reads
 *
 * Context: process; not nested.
 */
static inline void weft_relay_open(struct weft_relay *relay, struct weft_stream *st)
{
	struct weft_relay_seat *seat = get_cpu_ptr(&weft_relay_seats);

	relay->seat = NULL;
	relay->st = st;
	/* Pairs with weft_relay_close(). An empty seat is taken on its CPU only. */
	if (!smp_load_acquire(&seat->task)) {
		WRITE_ONCE(seat->task, current);
		relay->seat = seat;
	}
	put_cpu_ptr(&weft_relay_seats);
}

void weft_relay_run(const struct weft_relay *relay);

/* Has something been left there? Context: the task's. */
static inline bool weft_relay_owes(const struct weft_relay *relay)
{
	return relay->seat && !llist_empty(&relay->seat->owed);
}

/**
 * weft_relay_close - do what came in meanwhile
 * @relay: from weft_relay_open()
 *
 * Whatever this brings in goes to workers, so there is an end to it.
 * Context: process, may sleep.
 */
static inline void weft_relay_close(struct weft_relay *relay)
{
	struct weft_relay_seat *seat = relay->seat;

	if (!seat)
		return;
	/* First nothing more is added; pairs with weft_relay_open(). */
	smp_store_release(&seat->task, NULL);
	if (!llist_empty(&seat->owed))
		weft_relay_run(relay);
}

bool weft_relay_offer(struct weft_stream *st);
void weft_relay_wait(struct weft_stream *st);

#endif
