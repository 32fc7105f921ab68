/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Time, timers, work and waits: nothing happens by itself. Included by kernel.h. */
#ifndef WEFT_HOST_TIMERS_H
#define WEFT_HOST_TIMERS_H

#define HZ			1000
#define NSEC_PER_USEC		1000L
#define MSEC_PER_SEC		1000L
#define NSEC_PER_JIFFY		1000000L
#define CLOCK_MONOTONIC		1
#define HRTIMER_MODE_REL_SOFT	1

extern unsigned long jiffies;

#define msecs_to_jiffies(ms)	((unsigned long)(ms))
#define time_after(a, b)	((long)((b) - (a)) < 0)
#define time_before(a, b)	time_after(b, a)
#define time_after_eq(a, b)	((long)((a) - (b)) >= 0)
#define ns_to_ktime(ns)		((ktime_t)(ns))
#define ktime_add_ns(t, ns)	((t) + (ktime_t)(ns))
#define ktime_get_ns()		((u64)jiffies * NSEC_PER_JIFFY)

struct timer_list {
	void (*function)(struct timer_list *timer);
	unsigned long expires;
	bool active;
	struct timer_list *next;
};

void mod_timer(struct timer_list *timer, unsigned long expires);
void timer_delete(struct timer_list *timer);
void timer_delete_sync(struct timer_list *timer);

#define timer_setup(t, f, flags) (*(t) = (struct timer_list){ .function = (f) })
#define timer_pending(t)	((t)->active)
#define timer_container_of(var, t, member) container_of(t, __typeof__(*(var)), member)

enum hrtimer_restart {
	HRTIMER_NORESTART,
	HRTIMER_RESTART,
};

struct hrtimer {
	struct timer_list timer;
	enum hrtimer_restart (*function)(struct hrtimer *timer);
	ktime_t expires;
};

void hrtimer_setup(struct hrtimer *t, enum hrtimer_restart (*function)(struct hrtimer *t),
		   int clock, int mode);
void hrtimer_start(struct hrtimer *t, ktime_t after, int mode);
void hrtimer_cancel(struct hrtimer *t);

#define hrtimer_start_range_ns(t, after, slack, mode) hrtimer_start(t, (after) + (slack), mode)
#define hrtimer_active(t)	((t)->timer.active)
#define hrtimer_cb_get_time(t)	((ktime_t)ktime_get_ns())
#define hrtimer_set_expires_range_ns(t, at, slack) ((t)->expires = (at) + (ktime_t)(slack))

struct work_struct {
	void (*func)(struct work_struct *work);
	bool pending;
	bool runs;
	struct work_struct *next;
};

/* Never scheduled: weft_tcp_in_burst() finds no burst here. */
struct tasklet_struct {
	void (*func)(struct tasklet_struct *tasklet);
};

#define tasklet_setup(t, f)	((t)->func = (f))
#define tasklet_schedule(t)	HOST_CHECK(!(t)->func)
#define tasklet_kill(t)		((void)(t))

struct delayed_work {
	struct work_struct work;
	struct timer_list timer;
};

struct workqueue_struct;

bool queue_work(struct workqueue_struct *wq, struct work_struct *work);
bool queue_delayed_work(struct workqueue_struct *wq, struct delayed_work *work,
			unsigned long delay);
void cancel_work_sync(struct work_struct *work);
void cancel_delayed_work_sync(struct delayed_work *work);
void host_delayed_work_init(struct delayed_work *work, void (*func)(struct work_struct *work));

#define INIT_WORK(w, f)		(*(w) = (struct work_struct){ .func = (f) })
#define INIT_DELAYED_WORK(w, f)	host_delayed_work_init(w, f)
#define work_pending(w)		((w)->pending)
#define delayed_work_pending(w)	((w)->work.pending || (w)->timer.active)
#define WQ_UNBOUND		0
#define WQ_HIGHPRI		0
#define WQ_MEM_RECLAIM		0
#define alloc_workqueue(name, flags, most) ((struct workqueue_struct *)1)
#define destroy_workqueue(wq)

/* The oldest work that waits. Return: there was one. */
bool host_run_work(void);
/* Time goes by, and timers fire. */
void host_pass_time(unsigned long ms);
/* Milliseconds until the next timer; -1: there is none. */
long host_next_timer(void);

/* A thread that waits lets others go on. */
void host_wait(void);

#define wait_var_event(var, holds)		\
	do {					\
		might_sleep();			\
		while (!(holds))		\
			host_wait();		\
	} while (0)
#define wait_var_event_timeout(var, holds, timeout)			\
	({								\
		unsigned long host_end = jiffies + (timeout);		\
		might_sleep();						\
		while (!(holds) && time_before(jiffies, host_end))	\
			host_wait();					\
		(holds);						\
	})
#define wake_up_var(var)
#define usleep_range(from, to)	host_wait()

#endif
