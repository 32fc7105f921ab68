// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A hardware RNIC has an interrupt per completion vector, and consumers choose
 * vectors to spread their work over the CPUs. Here the interrupt is a call to
 * the vector's CPU. A process's queues need none of this: what notifies them
 * only wakes the process, wherever it sleeps.
 *
 * The word @pending, which merges notifications until the call has begun:
 *
 *	0 --- weft_vector_fire() ---> 1 --- arrive(), before it notifies ---> 0
 */
#include "verbs/vector.h"

#include <linux/bitops.h>
#include <linux/bottom_half.h>
#include <linux/cpumask.h>
#include <linux/delay.h>

/* On the vector's CPU, as from an interrupt. */
static void arrive(void *data)
{
	struct weft_vector *v = data;

	clear_bit(0, &v->pending);
	smp_mb__after_atomic();	/* what is posted from here on sends its own call */
	v->notify(v->arg);
	smp_mb__before_atomic(); /* pairs with weft_vector_sync() */
	atomic_inc(&v->done);
}

/* On the CPU that completed, in a softirq of its own. */
static void notify_here(struct tasklet_struct *t)
{
	struct weft_vector *v = from_tasklet(v, t, here);

	v->notify(v->arg);
}

/**
 * weft_vector_init - choose the CPU
 * @v: what to fill in
 * @vector: number of a completion vector
 * @notify: to be called there, in interrupt context, with @arg, and no lock held
 * @arg: handed to @notify
 *
 * Context: any.
 */
void weft_vector_init(struct weft_vector *v, u32 vector, void (*notify)(void *arg), void *arg)
{
	u32 n = vector % num_online_cpus();
	int cpu;

	/* The n-th CPU that is online now, counting round. */
	v->cpu = cpumask_first(cpu_online_mask);
	for_each_online_cpu(cpu) {
		if (!n--) {
			v->cpu = cpu;
			break;
		}
	}
	v->pending = 0;
	atomic_set(&v->sent, 0);
	atomic_set(&v->done, 0);
	INIT_CSD(&v->csd, arrive, v);
	tasklet_setup(&v->here, notify_here);
	v->notify = notify;
	v->arg = arg;
}

/**
 * weft_vector_fire - notify on the vector's CPU, here if that is this one
 * @v: from weft_vector_init()
 *
 * Notifications that meet one on its way are merged with it. The caller may hold the socket
 * lock or that of the send queue, under which no consumer's code may run: here a tasklet runs it,
 * before this returns where bottom halves are on.
 *
 * Context: any up to softirq.
 */
void weft_vector_fire(struct weft_vector *v)
{
	local_bh_disable();
	if (raw_smp_processor_id() == v->cpu) {
		tasklet_schedule(&v->here);
	} else if (!test_and_set_bit(0, &v->pending)) {
		atomic_inc(&v->sent);
		if (smp_call_function_single_async(v->cpu, &v->csd)) {
			/* That CPU has gone offline. */
			clear_bit(0, &v->pending);
			atomic_inc(&v->done);
			tasklet_schedule(&v->here);
		}
	}
	local_bh_enable();
}

/**
 * weft_vector_sync - wait for the notifications that were sent before
 * @v: from weft_vector_init()
 *
 * Context: may sleep.
 */
void weft_vector_sync(struct weft_vector *v)
{
	int sent = atomic_read(&v->sent);

	while (atomic_read(&v->done) - sent < 0)
		usleep_range(10, 50);
	smp_rmb();	/* pairs with arrive() */
	while (test_bit(TASKLET_STATE_SCHED, &v->here.state))
		usleep_range(10, 50);
	tasklet_unlock_wait(&v->here);
}
