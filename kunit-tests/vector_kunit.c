// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Notifications of a completion vector: on its CPU, each one that is due, and none after the end.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/preempt.h>
#include <linux/smp.h>
#include <linux/workqueue.h>

#include "suite.h"
#include "verbs/vector.h"

/**
 * struct vector_world - a vector, and what its consumer sees
 * @v: the vector
 * @release: sets @go_on
 * @calls: that have begun
 * @ended: of these
 * @cpu: of the last one
 * @holds: the first one lasts until @go_on
 * @go_on: it may end
 */
struct vector_world {
	struct weft_vector v;
	struct delayed_work release;
	atomic_t calls;
	atomic_t ended;
	int cpu;
	bool holds;
	bool go_on;
};

static void notify(void *arg)
{
	struct vector_world *w = arg;
	ktime_t end = ktime_add_ms(ktime_get(), 5000);

	WRITE_ONCE(w->cpu, raw_smp_processor_id());
	if (atomic_inc_return(&w->calls) == 1 && w->holds) {
		while (!READ_ONCE(w->go_on) && ktime_before(ktime_get(), end))
			cpu_relax();
	}
	atomic_inc(&w->ended);
}

static void release(struct work_struct *work)
{
	WRITE_ONCE(container_of(work, struct vector_world, release.work)->go_on, true);
}

static struct vector_world *make_vector(struct kunit *test)
{
	struct vector_world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	INIT_DELAYED_WORK(&w->release, release);
	return w;
}

/* Of another CPU than the one on which the test stays from here on: migrate_enable() is owed. */
static struct vector_world *make_distant(struct kunit *test)
{
	struct vector_world *w = make_vector(test);
	u32 vector = 0;

	if (num_online_cpus() < 2)
		kunit_skip(test, "there is one CPU");
	w->holds = true;
	migrate_disable();
	do
		weft_vector_init(&w->v, vector++, notify, w);
	while (w->v.cpu == raw_smp_processor_id());
	return w;
}

/* So many have begun, within seconds. */
static bool await_calls(const struct vector_world *w, int calls)
{
	u32 i;

	for (i = 0; i < 500 && atomic_read(&w->calls) < calls; i++)
		msleep(20);
	return atomic_read(&w->calls) == calls;
}

/* Vectors take turns on the CPUs, and each is notified on its own. */
static void weft_vector_has_a_cpu(struct kunit *test)
{
	struct vector_world *w = make_vector(test);
	u32 vector = 0;
	int cpu;

	for_each_online_cpu(cpu) {
		weft_vector_init(&w->v, vector, notify, w);
		KUNIT_EXPECT_EQ(test, w->v.cpu, cpu);
		weft_vector_fire(&w->v);
		KUNIT_EXPECT_TRUE(test, await_calls(w, vector + 1));
		weft_vector_sync(&w->v);
		KUNIT_EXPECT_EQ(test, w->cpu, cpu);
		vector++;
	}
	weft_vector_init(&w->v, vector, notify, w);
	KUNIT_EXPECT_EQ(test, w->v.cpu, (int)cpumask_first(cpu_online_mask));
}

/* What comes while the consumer is told is told, too: it may have looked already. */
static void weft_vector_tells_what_comes_meanwhile(struct kunit *test)
{
	struct vector_world *w = make_distant(test);

	weft_vector_fire(&w->v);
	KUNIT_EXPECT_TRUE(test, await_calls(w, 1));
	weft_vector_fire(&w->v);
	WRITE_ONCE(w->go_on, true);
	KUNIT_EXPECT_TRUE(test, await_calls(w, 2));
	weft_vector_sync(&w->v);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->ended), 2);
	migrate_enable();
}

/* Afterwards the queue is freed, and the consumer may be gone. */
static void weft_vector_sync_waits(struct kunit *test)
{
	struct vector_world *w = make_distant(test);

	weft_vector_fire(&w->v);
	KUNIT_EXPECT_TRUE(test, await_calls(w, 1));
	schedule_delayed_work_on(raw_smp_processor_id(), &w->release, HZ / 10);
	weft_vector_sync(&w->v);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->ended), 1);
	flush_delayed_work(&w->release);
	weft_vector_sync(&w->v);
	migrate_enable();
}

/*
 * A CPU that has gone offline, as one that never was: each notification is made here, and the end
 * waits for none that was sent there.
 */
static void weft_vector_of_no_cpu(struct kunit *test)
{
	struct vector_world *w = make_vector(test);
	int i;

	weft_vector_init(&w->v, 0, notify, w);
	w->v.cpu = nr_cpu_ids;
	for (i = 1; i <= 3; i++) {
		weft_vector_fire(&w->v);
		KUNIT_EXPECT_TRUE(test, await_calls(w, i));
		/* or weft_vector_sync() would not return */
		KUNIT_ASSERT_EQ(test, atomic_read(&w->v.done), atomic_read(&w->v.sent));
	}
	weft_vector_sync(&w->v);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->ended), 3);
}

static struct kunit_case vector_cases[] = {
	KUNIT_CASE(weft_vector_has_a_cpu),
	KUNIT_CASE(weft_vector_tells_what_comes_meanwhile),
	KUNIT_CASE(weft_vector_sync_waits),
	KUNIT_CASE(weft_vector_of_no_cpu),
	{},
};

static struct kunit_suite vector_suite = {
	.name = "weft_vector",
	.test_cases = vector_cases,
};

kunit_test_suite(vector_suite);
