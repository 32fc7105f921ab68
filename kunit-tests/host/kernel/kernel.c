// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory, time and workers of kernel.h. Nothing happens by itself: the program says when time
 * goes by and when a worker runs.
 */
#include "kernel.h"

#include <sanitizer/asan_interface.h>

struct host host;
struct task_struct host_task;
unsigned long jiffies;

void host_broken(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: broken: %s\n", file, line, what);
	abort();
}

void host_softirq_enter(void)
{
	HOST_CHECK(!host.in_softirq);
	host.in_softirq = true;
	host.atomic++;
}

void host_softirq_leave(void)
{
	host.in_softirq = false;
	host.atomic--;
}

/* Distinct numbers whose low byte is 0, so that an STag is known by its index. */
u32 get_random_u32(void)
{
	host.random += 0x100;
	return host.random;
}

/* --- memory --- */

static bool may_fail(gfp_t gfp)
{
	if (gfp & __GFP_DIRECT_RECLAIM)
		might_sleep();
	if (gfp & __GFP_NOFAIL || !host.fail_after)
		return false;
	return !--host.fail_after;
}

void *host_alloc(size_t bytes, gfp_t gfp)
{
	void *mem;

	if (may_fail(gfp))
		return NULL;
	mem = malloc(bytes);
	HOST_CHECK(mem);
	memset(mem, gfp & __GFP_ZERO ? 0 : 0xa5, bytes);
	return mem;
}

/*
 * Pages are numbers of an arena, so that an address leads back to its page. A run of them has
 * one count, at its first page. What is free is poisoned.
 */
#define ARENA_PAGES	1024U

static u8 arena[ARENA_PAGES][4096] __aligned(4096);
static struct page pages[ARENA_PAGES];
static u16 page_first[ARENA_PAGES], page_run[ARENA_PAGES];
static u32 pages_used;

static u32 find_run(u32 count)
{
	u32 i, free = 0;

	for (i = 0; i < ARENA_PAGES; i++) {
		free = page_run[i] ? 0 : free + 1;
		if (free == count)
			return i + 1 - count;
	}
	return ARENA_PAGES;
}

/* A run of pages, with one reference. */
struct page *host_pages(u32 count, gfp_t gfp)
{
	u32 first, i;

	if (may_fail(gfp))
		return NULL;
	first = find_run(count);
	if (first == ARENA_PAGES)
		return NULL;
	for (i = first; i < first + count; i++) {
		page_first[i] = first;
		page_run[i] = count;
	}
	__asan_unpoison_memory_region(arena[first], count * PAGE_SIZE);
	pages[first] = (struct page){ .address = arena[first], .count = 1 };
	pages_used += count;
	return &pages[first];
}

void put_page(struct page *page)
{
	u32 first = page - pages, count = page_run[first];

	HOST_CHECK(page->count);
	if (--page->count)
		return;
	__asan_poison_memory_region(arena[first], count * PAGE_SIZE);
	memset(&page_run[first], 0, count * sizeof(page_run[0]));
	pages_used -= count;
}

bool virt_addr_valid(const void *addr)
{
	u64 at = (u64)addr - (u64)arena;

	return at < sizeof(arena) && page_run[at / PAGE_SIZE];
}

/* Of a run of pages, the first; the offset in it is up to the caller. */
struct page *virt_to_page(const void *addr)
{
	u64 at = (u64)addr - (u64)arena;

	HOST_CHECK(virt_addr_valid(addr) && page_run[at / PAGE_SIZE] == 1);
	return &pages[at / PAGE_SIZE];
}

#define FRAG_PAGES	4U

bool skb_page_frag_refill(unsigned int size, struct page_frag *frag, gfp_t gfp)
{
	if (frag->page && frag->page->count == 1)
		frag->offset = 0;
	if (frag->page && frag->offset + size <= frag->size)
		return true;
	if (frag->page)
		put_page(frag->page);
	frag->page = host_pages(FRAG_PAGES, gfp);
	frag->offset = 0;
	frag->size = FRAG_PAGES * PAGE_SIZE;
	return frag->page;
}

void ib_umem_release(struct ib_umem *umem)
{
	u32 i;

	for (i = 0; i < umem->sgt_append.sgt.count; i++)
		put_page(umem->sgt_append.sgt.pages[i]);
	free(umem->sgt_append.sgt.pages);
	free(umem);
}

/* --- an array of pointers by number --- */

static struct xa_slot *xa_find(struct xarray *xa, unsigned long index)
{
	u32 i;

	for (i = 0; i < xa->count; i++)
		if (xa->slots[i].index == index)
			return &xa->slots[i];
	return NULL;
}

int xa_alloc(struct xarray *xa, u32 *id, void *entry, struct xa_limit limit, gfp_t gfp)
{
	u32 index;

	if (may_fail(gfp))
		return -ENOMEM;
	for (index = limit.min; index <= limit.max; index++) {
		if (xa_find(xa, index))
			continue;
		xa->slots = realloc(xa->slots, (xa->count + 1) * sizeof(*xa->slots));
		HOST_CHECK(xa->slots);
		xa->slots[xa->count++] = (struct xa_slot){ index, entry };
		*id = index;
		return 0;
	}
	return -EBUSY;
}

int xa_alloc_cyclic_irq(struct xarray *xa, u32 *id, void *entry, struct xa_limit limit, u32 *next,
			gfp_t gfp)
{
	int err = xa_alloc(xa, id, entry, XA_LIMIT(max(limit.min, *next), limit.max), gfp);

	if (!err)
		*next = *id + 1;
	return err;
}

void *xa_load(struct xarray *xa, unsigned long index)
{
	struct xa_slot *slot = xa_find(xa, index);

	return slot ? slot->entry : NULL;
}

/* Where there is one already. */
void xa_store_irq(struct xarray *xa, unsigned long index, void *entry, gfp_t gfp)
{
	(void)gfp;
	xa_find(xa, index)->entry = entry;
}

void xa_erase(struct xarray *xa, unsigned long index)
{
	struct xa_slot *slot = xa_find(xa, index);

	if (slot)
		*slot = xa->slots[--xa->count];
}

void xa_destroy(struct xarray *xa)
{
	free(xa->slots);
	memset(xa, 0, sizeof(*xa));
}

/* --- RCU --- */

static struct rcu_head *rcu_callbacks;

void call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	*head = (struct rcu_head){ .func = func, .next = rcu_callbacks };
	rcu_callbacks = head;
}

void host_kfree_rcu(struct rcu_head *head, void *block)
{
	call_rcu(head, NULL);
	head->block = block;
}

void host_grace_period(void)
{
	struct rcu_head *head;

	HOST_CHECK(!host.rcu);
	while ((head = rcu_callbacks)) {
		rcu_callbacks = head->next;
		if (!head->func) {
			free(head->block);
			continue;
		}
		local_bh_disable();
		head->func(head);
		local_bh_enable();
	}
}

/* --- time --- */

static struct timer_list *timers;

static void drop_timer(struct timer_list *timer)
{
	struct timer_list **at = &timers;

	while (*at != timer)
		at = &(*at)->next;
	*at = timer->next;
	timer->active = false;
}

void mod_timer(struct timer_list *timer, unsigned long expires)
{
	timer->expires = expires;
	if (timer->active)
		return;
	timer->active = true;
	timer->next = timers;
	timers = timer;
}

void timer_delete(struct timer_list *timer)
{
	if (timer->active)
		drop_timer(timer);
}

void timer_delete_sync(struct timer_list *timer)
{
	might_sleep();
	timer_delete(timer);
}

static struct timer_list *first_timer(void)
{
	struct timer_list *timer, *first = timers;

	for (timer = timers; timer; timer = timer->next)
		if (time_before(timer->expires, first->expires))
			first = timer;
	return first;
}

long host_next_timer(void)
{
	struct timer_list *first = first_timer();

	return first ? max((long)(first->expires - jiffies), 0L) : -1;
}

void host_pass_time(unsigned long ms)
{
	unsigned long end = jiffies + ms;
	struct timer_list *first;

	while ((first = first_timer()) && !time_after(first->expires, end)) {
		if (time_after(first->expires, jiffies))
			jiffies = first->expires;
		drop_timer(first);
		host_softirq_enter();
		first->function(first);
		host_softirq_leave();
	}
	jiffies = end;
}

static void hrtimer_fire(struct timer_list *timer)
{
	struct hrtimer *t = container_of(timer, struct hrtimer, timer);

	if (t->function(t) == HRTIMER_RESTART)
		mod_timer(timer, max(t->expires / NSEC_PER_JIFFY, (ktime_t)jiffies + 1));
}

void hrtimer_setup(struct hrtimer *t, enum hrtimer_restart (*function)(struct hrtimer *t),
		   int clock, int mode)
{
	(void)clock;
	(void)mode;
	*t = (struct hrtimer){ .function = function };
	timer_setup(&t->timer, hrtimer_fire, 0);
}

void hrtimer_start(struct hrtimer *t, ktime_t after, int mode)
{
	(void)mode;
	mod_timer(&t->timer, jiffies + max(after / NSEC_PER_JIFFY, (ktime_t)1));
}

void hrtimer_cancel(struct hrtimer *t)
{
	timer_delete_sync(&t->timer);
}

/* --- workers --- */

static struct work_struct *works;
static u32 workers;

bool queue_work(struct workqueue_struct *wq, struct work_struct *work)
{
	struct work_struct **at = &works;

	(void)wq;
	if (work->pending)
		return false;
	work->pending = true;
	work->next = NULL;
	while (*at)
		at = &(*at)->next;
	*at = work;
	return true;
}

static void drop_work(struct work_struct *work)
{
	struct work_struct **at = &works;

	while (*at != work)
		at = &(*at)->next;
	*at = work->next;
	work->pending = false;
}

/* One worker at a time for each work. */
bool host_run_work(void)
{
	struct work_struct *work = works;

	while (work && work->runs)
		work = work->next;
	if (!work)
		return false;
	might_sleep();
	drop_work(work);
	/* It may free itself, but for what is left to a grace period. */
	work->runs = true;
	workers++;
	work->func(work);
	workers--;
	work->runs = false;
	HOST_CHECK(!host.atomic);
	return true;
}

void cancel_work_sync(struct work_struct *work)
{
	might_sleep();
	HOST_CHECK(!work->runs);
	if (work->pending)
		drop_work(work);
}

static void delay_over(struct timer_list *timer)
{
	queue_work(NULL, &container_of(timer, struct delayed_work, timer)->work);
}

void host_delayed_work_init(struct delayed_work *work, void (*func)(struct work_struct *work))
{
	INIT_WORK(&work->work, func);
	timer_setup(&work->timer, delay_over, 0);
}

bool queue_delayed_work(struct workqueue_struct *wq, struct delayed_work *work, unsigned long delay)
{
	if (delayed_work_pending(work))
		return false;
	if (!delay)
		return queue_work(wq, &work->work);
	mod_timer(&work->timer, jiffies + delay);
	return true;
}

void cancel_delayed_work_sync(struct delayed_work *work)
{
	timer_delete_sync(&work->timer);
	cancel_work_sync(&work->work);
}

/* --- waiting --- */

#define WAITS_MAX	100000U	/* of one run, in all */

static u32 waits;

/*
 * A worker might want a mutex that the one that waits holds, or wait for the worker that waits
 * itself: then only time goes by.
 */
void host_wait(void)
{
	long next;

	might_sleep();
	HOST_CHECK(waits++ < WAITS_MAX);
	if (host.outside && host.outside())
		return;
	if (!host.mutexes && !workers && host_run_work())
		return;
	next = host_next_timer();
	host_pass_time(next > 0 ? next : 1);
}

void host_reset(void)
{
	memset(&host, 0, sizeof(host));
	jiffies = 1000;
	waits = 0;
}

bool host_is_clean(void)
{
	struct page_frag *frag = &host_task.task_frag;

	host_grace_period();
	if (frag->page)
		put_page(frag->page);
	memset(frag, 0, sizeof(*frag));
	return !timers && !works && !pages_used && !host.atomic && !host.rcu && !host.mutexes;
}
