// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Races on purpose, by which the suite kcsan shows that the kernel's KCSAN finds them. Two threads,
 * each on a CPU of its own, work on the same word until the module goes. (KCSAN takes no notice of
 * functions of which kcsan_ is a part of the name, or of the module's.)
 *
 *	insmod data_race.ko kind=unmarked	plain accesses at the same time
 *	insmod data_race.ko kind=marked	the same with READ_ONCE() and WRITE_ONCE()
 *	insmod data_race.ko kind=unordered	in turns, which no barrier hands over
 *	insmod data_race.ko kind=ordered	in turns, by release and acquire
 */
#include <linux/compiler.h>
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <asm/barrier.h>

static char *kind = "";
module_param(kind, charp, 0444);
MODULE_PARM_DESC(kind, "unmarked, marked, unordered or ordered");

static ulong rounds[2];
module_param_array(rounds, ulong, NULL, 0444);
MODULE_PARM_DESC(rounds, "how often each thread has been around");

static struct task_struct *threads[2];
static unsigned long word;
static int turn;

/* Of each of them the name stands in KCSAN's report. */
static noinline void race_unmarked(int me)
{
	word++;
}

static noinline void race_marked(int me)
{
	WRITE_ONCE(word, READ_ONCE(word) + 1);
}

static noinline void race_unordered(int me)
{
	if (READ_ONCE(turn) != me)
		return;
	word++;
	WRITE_ONCE(turn, !me);
}

static noinline void race_ordered(int me)
{
	/* Pairs with the release below, of the other thread. */
	if (smp_load_acquire(&turn) != me)
		return;
	word++;
	/* Pairs with the acquire above: the word before the turn. */
	smp_store_release(&turn, !me);
}

static const struct race {
	const char *kind;
	void (*once)(int me);
} races[] = {
	{ .kind = "unmarked", .once = race_unmarked },
	{ .kind = "marked", .once = race_marked },
	{ .kind = "unordered", .once = race_unordered },
	{ .kind = "ordered", .once = race_ordered },
};

static const struct race *race;

static int around(void *arg)
{
	int me = (long)arg;

	while (!kthread_should_stop()) {
		race->once(me);
		WRITE_ONCE(rounds[me], rounds[me] + 1);
		cond_resched();
	}
	return 0;
}

static void stop(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(threads); i++)
		if (!IS_ERR_OR_NULL(threads[i]))
			kthread_stop(threads[i]);
}

static int start(void)
{
	int cpu = cpumask_first(cpu_online_mask);
	long i;

	for (i = 0; i < ARRAY_SIZE(threads); i++) {
		threads[i] = kthread_create(around, (void *)i, "data_race%ld", i);
		if (IS_ERR(threads[i]))
			return PTR_ERR(threads[i]);
		kthread_bind(threads[i], cpu);
		cpu = cpumask_next(cpu, cpu_online_mask);
	}
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		wake_up_process(threads[i]);
	return 0;
}

static int __init data_race_init(void)
{
	int i, ret;

	for (i = 0; i < ARRAY_SIZE(races); i++)
		if (!strcmp(kind, races[i].kind))
			race = &races[i];
	if (!race || num_online_cpus() < ARRAY_SIZE(threads))
		return -EINVAL;
	ret = start();
	if (ret)
		stop();
	return ret;
}

static void __exit data_race_exit(void)
{
	stop();
}

module_init(data_race_init);
module_exit(data_race_exit);
MODULE_DESCRIPTION("Data races on purpose");
MODULE_LICENSE("Dual BSD/GPL");
