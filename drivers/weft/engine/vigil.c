// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Waking a process on an idle CPU takes longer than anything else in a short
 * exchange by events. So a thread of each CPU, of the policy SCHED_IDLE, is there to
 * run between two of its events: any other task has the CPU at once, and it ends when
 * the next message does not come soon. Where that happens again and again, few
 * of the messages are waited for (Documentation/decisions/0013-*.md).
 *
 * What is kept of a CPU is touched on that CPU only, by its thread and by processes
 * that cannot be preempted then. So nothing here is atomic.
 */
#include "engine/vigil.h"

#include <linux/compiler.h>
#include <linux/ktime.h>
#include <linux/percpu.h>
#include <linux/processor.h>
#include <linux/sched.h>
#include <linux/sched/idle.h>
#include <linux/smpboot.h>
#include <linux/time64.h>
#include <uapi/linux/sched/types.h>

#include "base/compat.h"
#include "base/patience.h"

/**
 * struct vigil - of one CPU
 * @thread: that keeps it
 * @asleep: the thread has to be woken
 * @marks: messages whose answers are to be waited for
 * @seen: of these, the ones that the thread has heard of
 * @us: for how long to wait, as the last of them said
 * @until: ktime_get_ns() when it is over, 0: there is none
 * @patience: with exchanges that are too slow
 */
struct vigil {
	struct task_struct *thread;
	bool asleep;
	u32 marks;
	u32 seen;
	u32 us;
	u64 until;
	struct weft_patience patience;
};

static DEFINE_PER_CPU(struct vigil, vigils);

static bool has_news(const struct vigil *v)
{
	return READ_ONCE(v->marks) != v->seen;
}

static void begin_or_prolong(struct vigil *v)
{
	if (v->until)
		weft_patience_won(&v->patience);
	v->seen = READ_ONCE(v->marks);
	v->until = ktime_get_ns() + (u64)READ_ONCE(v->us) * NSEC_PER_USEC;
}

static void end(struct vigil *v, bool in_vain)
{
	v->until = 0;
	if (in_vain)
		weft_patience_lost(&v->patience);
	else
		weft_patience_won(&v->patience);
}

/*
 * Return: true when somebody else wants the CPU, false when it is over. Who wakes a task
 * here sees that this one looks by itself, and need not interrupt it.
 */
static bool stand(const struct vigil *v)
{
	bool wanted = current_set_polling_and_test();

	while (!wanted && ktime_get_ns() < v->until) {
		cpu_relax();
		wanted = compat_cpu_is_wanted();
	}
	current_clr_polling();
	return wanted;
}

/*
 * Called again and again, between looks whether the thread shall park or stop. Now and
 * then the scheduler holds that it is this thread's turn after all, since a little of the
 * CPU is due to it: then it has to sleep for the others to run.
 */
static void run(unsigned int cpu)
{
	struct vigil *v = per_cpu_ptr(&vigils, cpu);
	unsigned long switches;
	bool wanted;

	preempt_disable();
	if (has_news(v))
		begin_or_prolong(v);
	switches = current->nivcsw;
	wanted = stand(v);
	if (!wanted)
		end(v, true);
	preempt_enable();
	if (compat_cpu_is_wanted())
		schedule();
	if (wanted && current->nivcsw == switches)
		end(v, false);
}

/* The thread is about to sleep: a mark made from now on wakes it. */
static int should_run(unsigned int cpu)
{
	struct vigil *v = per_cpu_ptr(&vigils, cpu);
	bool yes = v->until || has_news(v);

	WRITE_ONCE(v->asleep, !yes);
	return yes;
}

static void become_idle_class(unsigned int cpu)
{
	const struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = SCHED_IDLE,
	};

	sched_setattr_nocheck(current, &attr);
}

static void forget(unsigned int cpu)
{
	per_cpu_ptr(&vigils, cpu)->until = 0;
}

static struct smp_hotplug_thread threads = {
	.store = &vigils.thread,
	.setup = become_idle_class,
	.park = forget,
	.thread_should_run = should_run,
	.thread_fn = run,
	.thread_comm = "weft/%u",
};

int weft_vigil_module_init(void)
{
	return smpboot_register_percpu_thread(&threads);
}

/* Nobody calls weft_vigil_keep() any more. */
void weft_vigil_module_exit(void)
{
	smpboot_unregister_percpu_thread(&threads);
}

/**
 * weft_vigil_keep - keep this CPU from going idle for a while
 * @us: at most so many microseconds from when it has nothing else to do
 *
 * Context: process. Return: false if that was in vain too often of late.
 */
bool weft_vigil_keep(u32 us)
{
	struct vigil *v = get_cpu_ptr(&vigils);
	bool kept = weft_patience_try(&v->patience);

	if (kept) {
		WRITE_ONCE(v->us, us);
		WRITE_ONCE(v->marks, v->marks + 1);
		if (READ_ONCE(v->asleep)) {
			WRITE_ONCE(v->asleep, false);
			wake_up_process(v->thread);
		}
	}
	put_cpu_ptr(&vigils);
	return kept;
}
