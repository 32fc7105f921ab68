// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What waits to be read is taken out of the socket and read on another CPU, without the
 * socket lock: the sender's CPU may go on to queue more behind it. Who reads it there is
 * the process that polls for it, if messages are long or reading is slow, and reading here
 * was not faster when it was last tried.
 *
 * Where no process polls, what takes long is read by a softirq of another CPU, which
 * would let a worker wait. Short work stays where it is, since calling a CPU takes time
 * too; which it is, is measured. After a while the softirq stands in line again, so that
 * others are served and the kernel may move it to ksoftirqd.
 */
#include "engine/away.h"

#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/processor.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/time64.h>

#include "base/compat.h"
#include "base/counters.h"
#include "engine/helper.h"
#include "engine/relay.h"
#include "engine/rx.h"
#include "engine/stream_state.h"
#include "net/tcp_socket.h"
#include "proto/hot.h"
#include "ring/cq.h"

#define NEIGHBOURS	8U	/* CPUs among which streams are spread */
#define TURN_NS		(2 * NSEC_PER_MSEC)	/* as long as softirqs go on in a row */

/* Of a process that reads for itself. */
#define LATE_NS		(50 * NSEC_PER_USEC)	/* then it is not waited for any more */
#define LINGER_NS	(100 * NSEC_PER_USEC)	/* for anything */
#define QUIET_NS	(30 * NSEC_PER_USEC)	/* for more of what is coming */
#define LOOK_NS		(4 * NSEC_PER_USEC)	/* between two looks for it */
#define TELL_NS		(50 * NSEC_PER_USEC)	/* in all, with something to tell it */
#define READS_NS	(150 * NSEC_PER_USEC)	/* or so long, as Reads of much more are due */
#define STAY_NS		NSEC_PER_MSEC		/* in all */
#define BATCH		(512U * 1024)		/* worth reading at once */

static u8 state_of(const struct weft_stream *st)
{
	return smp_load_acquire(&st->away.state); /* pairs with set_state() */
}

/* What the next owner looks at comes first. */
static void set_state(struct weft_stream *st, enum weft_away_state state)
{
	smp_store_release(&st->away.state, state); /* pairs with state_of() */
}

/* What a process may know of by a completion, as a number that changes. */
static u32 news(const struct weft_stream *st)
{
	return READ_ONCE(st->cfg.send_cq->prod) + READ_ONCE(st->cfg.recv_cq->prod);
}

/* Has it asked for so much that completions of parts of it can wait for each other? */
static bool much_is_due(const struct weft_stream *st)
{
	return weft_readq_due(&st->readq) >= WEFT_AWAY_LONG;
}

/* Does that come in short Reads? Of long ones each is worth telling. Context: owner of rx. */
static bool many_are_due(struct weft_stream *st)
{
	const struct weft_readq_sent *sent = weft_readq_sent_head(&st->readq);

	return sent && sent->length < WEFT_AWAY_LONG && much_is_due(st);
}

/* How much is read between one completion and the next, or comes for Reads under way. */
static void measure(struct weft_stream *st, u32 octets)
{
	struct weft_away *away = &st->away;
	u32 now = news(st);

	if (now != away->told && !much_is_due(st)) {
		away->run_before = away->run;
		away->run = 0;
	}
	away->told = now;
	away->run = min(away->run, WEFT_AWAY_LONG) + octets;
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
	u64 now = ktime_get_ns();
	u64 took = min_t(u64, now - since, NSEC_PER_SEC);
	u32 pace = took / (octets / 1024);
	u32 slower = st->away.pace + st->away.pace / 16 + 1;

	st->away.pace = st->away.pace ? min(pace, slower) : pace;
	measure(st, octets);
	if (st->away.trip)
		weft_trial_add(&st->away.trip->trial, octets, now);
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

/**
 * struct exchange - what happens under the lock
 * @st: stream
 * @more: rx is the caller's, and there is something in the inbox unless @stay
 * @stay: keep rx even if there is nothing
 * @leave: do not go on with what there is: the process comes again
 */
struct exchange {
	struct weft_stream *st;
	bool more;
	bool stay;
	bool leave;
};

static void lend(struct weft_stream *st)
{
	WRITE_ONCE(st->away.trip->lent, ktime_get_ns());
	set_state(st, WEFT_AWAY_LENT);
	weft_helper_wants(st, WEFT_ERRAND_READ | (many_are_due(st) ? WEFT_ERRAND_TRAIN : 0));
}

/* Gives back what was read and takes what has come. Socket lock held. */
static void exchange_locked(void *arg)
{
	struct exchange *x = arg;
	struct weft_stream *st = x->st;
	struct weft_inbox *in = &st->away.trip->inbox;

	take_back(st);
	x->more = in->done && can_go(st) && !st->rx.sock.starved;
	if (x->more && x->leave && weft_inbox_waiting(st->sock)) {
		x->more = false;
		return lend(st);
	}
	x->more = x->more &&
		  (weft_inbox_take(in, st->sock) || (x->stay && !weft_inbox_waiting(st->sock)));
	if (!x->more)
		come_home(st);
}

/* Return: false if rx is not ours any more. */
static bool exchange(struct exchange *x)
{
	x->more = false;
	if (!weft_inbox_with_lock(x->st->sock, exchange_locked, x))
		park(x->st);
	return x->more;
}

static void run(struct tasklet_struct *task)
{
	struct weft_trip *trip = from_tasklet(trip, task, task);
	struct exchange x = { .st = trip->st };
	u64 start = ktime_get_ns();

	do {
		read_inbox(trip->st);
		if (!exchange(&x))
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
	WRITE_ONCE(st->away.trip, trip);
	return trip;
}

/*
 * Does it come in large messages, or take long, and does a process wait for it? Such a process
 * comes by itself; its CPU would have to be called.
 */
static bool may_lend(struct weft_stream *st, u32 octets)
{
	const struct weft_away *away = &st->away;
	bool large = max(away->run, away->run_before) >= WEFT_AWAY_LONG;

	if (!(large || takes_long(st, octets)) || !can_go(st))
		return false;
	if (away->trip && away->trip->trial.way != WEFT_AWAY_BY_PROCESS)
		return false;
	return weft_helper_may_read(st) && (away->trip || new_trip(st));
}

/**
 * weft_away_takes_over - shall another CPU or the process read?
 * @st: stream whose rx is at home
 * @octets: that wait, WEFT_AWAY_BULK or more
 *
 * Context: a callback, socket lock held. Return: true if it does: then rx is not the
 * caller's any more.
 */
bool weft_away_takes_over(struct weft_stream *st, u32 octets)
{
	struct weft_trip *trip;

	if (may_lend(st, octets)) {
		lend(st);
		return true;
	}
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
	switch (state_of(st)) {
	case WEFT_AWAY_OUT:
		return false;
	case WEFT_AWAY_LENT:
		if (ktime_get_ns() - st->away.trip->lent < LATE_NS)
			return false;
		weft_helper_failed(st);
		break;
	case WEFT_AWAY_PARKED:
		take_back(st);
		break;
	}
	set_state(st, WEFT_AWAY_HOME);
	return true;
}

/**
 * weft_away_recall - do not wait for a process
 * @st: stream
 *
 * Context: socket lock held.
 */
void weft_away_recall(struct weft_stream *st)
{
	if (state_of(st) == WEFT_AWAY_LENT)
		set_state(st, WEFT_AWAY_HOME);
}

/* --- the process ---------------------------------------------------------- */

static void take_lent(void *arg)
{
	struct exchange *x = arg;
	struct weft_stream *st = x->st;

	if (state_of(st) != WEFT_AWAY_LENT)
		return;
	x->more = can_go(st) && weft_inbox_take(&st->away.trip->inbox, st->sock);
	if (x->more)
		set_state(st, WEFT_AWAY_OUT);
	else
		come_home(st);
}

/* Where we look, the other CPU writes: each look costs it a line that it has to get back. */
static void look_away(void)
{
	u64 end = ktime_get_ns() + LOOK_NS;

	while (ktime_get_ns() < end)
		cpu_relax();
}

/*
 * Waits for a batch, as long as it grows: the fewer exchanges, the fewer acknowledgements
 * and the less both CPUs want the same lines. Return: there is something.
 */
static bool linger(struct weft_stream *st)
{
	u64 end = ktime_get_ns() + LINGER_NS;
	u32 before = 0, now;

	while ((now = weft_inbox_waiting(st->sock)) < BATCH) {
		if (now != before)
			end = ktime_get_ns() + QUIET_NS;
		before = now;
		if (compat_cpu_is_wanted() || signal_pending(current) || ktime_get_ns() >= end)
			break;
		look_away();
	}
	return now;
}

/**
 * struct visit - of a process that reads for itself
 * @relay: where it finds what is to be sent meanwhile
 * @start: of ktime_get_ns()
 * @before: news() then
 */
struct visit {
	struct weft_relay relay;
	u64 start;
	u32 before;
};

/* Reads once, or waits for more. */
static void read_on(struct exchange *x, const struct visit *v)
{
	struct weft_stream *st = x->st;
	bool some = !skb_queue_empty(&st->away.trip->inbox.skbs);
	bool told, many;
	u64 most;

	if (some)
		read_inbox(st);
	told = news(st) != v->before || weft_relay_owes(&v->relay);
	many = many_are_due(st);
	most = !told ? STAY_NS : many ? READS_NS : TELL_NS;
	x->leave = ktime_get_ns() - v->start > most || compat_cpu_is_wanted() ||
		   signal_pending(current);
	x->stay = !x->leave && (!told || many) && (some || linger(st));
}

/**
 * weft_away_serve - the process that polls is here to read
 * @st: stream that was lent, unless somebody has taken it back
 *
 * Context: process.
 */
void weft_away_serve(struct weft_stream *st)
{
	struct exchange x = { .st = st };
	struct visit v = { .start = ktime_get_ns(), .before = news(st) };

	weft_relay_open(&v.relay, NULL);
	local_bh_disable();
	if (!weft_inbox_with_lock(st->sock, take_lent, &x))
		queue_work(weft_stream_wq, &st->rx_work);
	local_bh_enable();
	while (x.more) {
		read_on(&x, &v);
		local_bh_disable();
		exchange(&x);
		local_bh_enable();
	}
	weft_relay_close(&v.relay);
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
		weft_away_recall(st);
		home = weft_away_home(st);
		weft_sock_unlock(st->sock);
		if (home)
			break;
		usleep_range(20, 100);
	}
	if (st->away.trip)
		tasklet_kill(&st->away.trip->task);
}
