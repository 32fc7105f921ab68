// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A handler in front of the core's. It has to be called in a softirq or an interrupt of its own,
 * with no lock held: neither that of a socket nor one of the device.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include "event.h"

#include <linux/atomic.h>
#include <linux/preempt.h>
#include <linux/sched.h>

#include "op.h"
#include "world.h"

static ib_comp_handler core_handler;
static atomic_t in_process, under_lock, calls;
static struct ib_qp *answer_to;
static struct op *answer;

/* The last that this context took, as lockdep knows. What it has interrupted may hold others. */
static const char *lock_held_here(void)
{
#ifdef CONFIG_LOCKDEP
	unsigned int here = in_hardirq() ? 2 : 1;	/* bits of irq_context */
	int i;

	for (i = current->lockdep_depth - 1; i >= 0; i--)
		if (current->held_locks[i].irq_context & here)
			return current->held_locks[i].instance->name;
#endif
	return NULL;
}

/* An idle CPU that is about to sleep takes calls of others without being interrupted. */
static bool is_process(void)
{
	return !in_hardirq() && !in_serving_softirq() && !is_idle_task(current);
}

static void on_event(struct ib_cq *cq, void *private)
{
	struct op *op = xchg(&answer, NULL);
	const char *lock;

	atomic_inc(&calls);
	if (is_process()) {
		if (!atomic_fetch_inc(&in_process))
			pr_err("handler called by a process\n");
	} else {
		lock = lock_held_here();
		if (lock && !atomic_fetch_inc(&under_lock))
			pr_err("handler called under %s\n", lock);
	}
	if (op && op_post_send(answer_to, op, IB_WR_SEND, 0)) {
		op->status = IB_WC_GENERAL_ERR;
		complete(&op->done);
	}
	core_handler(cq, private);
}

/* Before anything completes there. */
void event_watch(struct ib_cq *cq)
{
	atomic_set(&in_process, 0);
	atomic_set(&under_lock, 0);
	atomic_set(&calls, 0);
	answer = NULL;
	core_handler = cq->comp_handler;
	cq->comp_handler = on_event;
}

/* The next event posts a Send to @qp; @op NULL: it does not. */
void event_answer(struct ib_qp *qp, struct op *op)
{
	answer_to = qp;
	xchg(&answer, op);
}

int event_check(void)
{
	CHECK(!atomic_read(&in_process));
	CHECK(!atomic_read(&under_lock));
	return 0;
}

int event_count(void)
{
	return atomic_read(&calls);
}
