// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What waits to be read is taken out of the socket and read by a softirq of another
 * CPU, without the socket lock: the sender's CPU may go on to queue more behind it.
 * Short work stays where it is, since calling a CPU takes time too; which it is,
 * is measured.
 *
 * A softirq, since the other CPU as a rule runs a process that polls for just what
 * is being read, and would let a worker wait. After a while it stands in line
 * again, so that others are served and the kernel may move it to ksoftirqd.
 */
#include "engine/away.h"

#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/time64.h>

#include "base/counters.h"
#include "engine/rx.h"
#include "engine/stream_state.h"
#include "net/tcpsock.h"
#include "proto/hot.h"
#include "ring/cq.h"

#define NEIGHBOURS	8U	/* CPUs among which streams are spread */
#define TURN_NS		(2 * NSEC_PER_MSEC)	/* as long as softirqs go on in a row */

static u8 state_of(const struct weft_stream *st)
{
	return smp_load_acquire(&st->away.state); /* pairs with set_state() */
}

/* What the next owner looks at comes first. */
static void set_state(struct weft_stream *st, enum weft_away_state state)
{
	smp_store_release(&st->away.state, state); /* pairs with state_of() */
}

/**
 * weft_away_learn - how long reading takes
 * @st: stream
 * @octets: that were read; WEFT_AWAY_BULK or more
 * @since: when that began, of ktime_get_ns()
 *
 * The fastest of late: what took longer was interrupted, as a rule, and going away for
 * that would cost more than it brings. Context: owner of rx.
 */
void weft_away_learn(struct weft_stream *st, u32 octets, u64 since)
{
	u64 took = min_t(u64, ktime_get_ns() - since, NSEC_PER_SEC);
	u32 pace = took / (octets / 1024);
	u32 slower = st->away.pace + st->away.pace / 16 + 1;

	st->away.pace = st->away.pace ? min(pace, slower) : pace;
}

static bool takes_long(const struct weft_stream *st, u32 octets)
{
	u64 limit = (u64)READ_ONCE(st->index->handover) * NSEC_PER_USEC;

	return limit && (u64)octets * st->away.pace / 1024 > limit;
}

static bool can_go(const struct weft_stream *st)
{
	return num_online_cpus() > 1 && !weft_inbox_barred(st->sock) && !st->rx.held.busy &&
	       !st->rx.sock.discard;
}

/* Another CPU than this one; streams of one sender have different ones. */
static int other_cpu(const struct weft_stream *st)
{
	u32 steps = 1 + st->qpn % min(num_online_cpus() - 1, NEIGHBOURS);
	int cpu = smp_processor_id();

	while (steps--) {
		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(cpu_online_mask);
	}
	return cpu;
}

/* From the interrupt: the softirq follows at once. */
static void arrive(void *data)
{
	struct weft_trip *trip = data;

	tasklet_hi_schedule(&trip->task);
}

static void read_inbox(struct weft_stream *st)
{
	struct weft_inbox *in = &st->away.trip->inbox;
	struct weft_cq_batch batch = {};
	u64 start = ktime_get_ns();

	weft_rx_read(st, in, &batch);
	if (in->done >= WEFT_AWAY_BULK)
		weft_away_learn(st, in->done, start);
	weft_cq_batch_fire(&batch);
}

/* The lock is a process's: whoever has it next goes on, the worker if nobody does. */
static void park(struct weft_stream *st)
{
	set_state(st, WEFT_AWAY_PARKED);
	queue_work(weft_stream_wq, &st->rx_work);
}

/* Nothing to read, or not for us: a lack of memory, an end, urgent data. */
static void come_home(struct weft_stream *st)
{
	set_state(st, WEFT_AWAY_HOME);
	weft_rx_judge(st);
	if (weft_inbox_waiting(st->sock))
		queue_work(weft_stream_wq, &st->rx_work);
}

/* Socket lock held. */
static void take_back(struct weft_stream *st)
{
	if (!weft_inbox_give_back(&st->away.trip->inbox, st->sock))
		weft_rxsock_lose(&st->rx.sock);
}

struct exchange {
	struct weft_stream *st;
	bool more;
};

/* Gives back what was read and takes what has come. Socket lock held. */
static void exchange_locked(void *arg)
{
	struct exchange *x = arg;
	struct weft_stream *st = x->st;
	struct weft_inbox *in = &st->away.trip->inbox;

	take_back(st);
	x->more = in->done && can_go(st) && !st->rx.sock.starved && weft_inbox_take(in, st->sock);
	if (!x->more)
		come_home(st);
}

/* Return: false if rx is not ours any more. */
static bool exchange(struct weft_stream *st)
{
	struct exchange x = { .st = st };

	if (!weft_inbox_with_lock(st->sock, exchange_locked, &x))
		park(st);
	return x.more;
}

static void run(struct tasklet_struct *task)
{
	struct weft_trip *trip = from_tasklet(trip, task, task);
	struct weft_stream *st = trip->st;
	u64 start = ktime_get_ns();

	do {
		read_inbox(st);
		if (!exchange(st))
			return;
	} while (ktime_get_ns() - start < TURN_NS);
	tasklet_hi_schedule(task);
}

/* Without memory it is read here. */
static struct weft_trip *new_trip(struct weft_stream *st)
{
	struct weft_trip *trip = kzalloc(sizeof(*trip), GFP_ATOMIC | __GFP_NOWARN);

	if (!trip)
		return NULL;
	trip->st = st;
	weft_inbox_init(&trip->inbox);
	INIT_CSD(&trip->csd, arrive, trip);
	tasklet_setup(&trip->task, run);
	st->away.trip = trip;
	return trip;
}

/**
 * weft_away_takes_over - shall another CPU read?
 * @st: stream whose rx is at home
 * @octets: that wait, WEFT_AWAY_BULK or more
 *
 * Context: a callback, socket lock held. Return: true if it does: then rx is not the
 * caller's any more.
 */
bool weft_away_takes_over(struct weft_stream *st, u32 octets)
{
	struct weft_trip *trip;

	if (!takes_long(st, octets) || !can_go(st))
		return false;
	trip = st->away.trip ?: new_trip(st);
	if (!trip || !weft_inbox_take(&trip->inbox, st->sock))
		return false;
	set_state(st, WEFT_AWAY_OUT);
	if (!smp_call_function_single_async(other_cpu(st), &trip->csd)) {
		weft_count(st->cfg.counters, WEFT_CTR_RX_HANDOVERS);
		return true;
	}
	set_state(st, WEFT_AWAY_HOME); /* it has gone offline */
	take_back(st);
	return false;
}

/**
 * weft_away_home - does rx belong to the caller?
 * @st: stream
 *
 * Context: socket lock held. Return: false while another CPU reads; it will look
 * at the socket once more before it goes.
 */
bool weft_away_home(struct weft_stream *st)
{
	u8 state = state_of(st);

	if (state == WEFT_AWAY_PARKED) {
		take_back(st);
		set_state(st, WEFT_AWAY_HOME);
	}
	return state != WEFT_AWAY_OUT;
}

/**
 * weft_away_stop - have rx at home for good
 * @st: stream with a socket
 *
 * Context: process, without the socket lock; the reader has been told to stop.
 */
void weft_away_stop(struct weft_stream *st)
{
	bool home;

	for (;;) {
		weft_sock_lock(st->sock);
		home = weft_away_home(st);
		weft_sock_unlock(st->sock);
		if (home)
			break;
		usleep_range(20, 100);
	}
	if (st->away.trip)
		tasklet_kill(&st->away.trip->task);
}
