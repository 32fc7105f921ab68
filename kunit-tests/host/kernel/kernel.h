/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * As much of the kernel as the engine, its queues, its memory and the framing use, for a
 * program. One thread plays all contexts, one after the other, so a lock that is taken twice,
 * a wait in atomic context, and a wait that nothing can end, end the program.
 *
 * Included in front of each file; the kernel's own headers are empty then (host/Makefile).
 */
#ifndef WEFT_HOST_KERNEL_H
#define WEFT_HOST_KERNEL_H

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/env.h"

#define WEFT_HOST_KERNEL_DONE	/* from here on <linux/...> is empty */

typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef uint64_t __u64;
typedef uint64_t __aligned_u64;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef s64 ktime_t;
typedef unsigned int gfp_t;

#undef __always_inline
#define __always_inline		inline __attribute__((__always_inline__))
#define __aligned(n)		__attribute__((__aligned__(n)))
#define noinline		__attribute__((__noinline__))
#define ____cacheline_aligned_in_smp
#define __uninitialized
#define __percpu
#define __rcu
#define __acquires(x)
#define __releases(x)
#define __must_hold(x)
#define data_race(x)		(x)
#define likely(x)		(x)
#define unlikely(x)		(x)
#define barrier()		__asm__ __volatile__("" ::: "memory")
#define smp_mb()		__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define smp_wmb()		smp_mb()
#define smp_rmb()		smp_mb()
#define smp_mb__before_atomic()	smp_mb()
#define smp_mb__after_atomic()	smp_mb()

/* clang-format off */

#define U8_MAX			0xffU
#define U16_MAX			0xffffU
#define U32_MAX			0xffffffffU
#define U64_MAX			(~(u64)0)
#define SZ_2K			0x800
#define SZ_64K			0x10000
#define SZ_256K			0x40000
#define SZ_512K			0x80000
#define BIT(n)			(1UL << (n))
#define BIT_ULL(n)		(1ULL << (n))
#define GENMASK(h, l)		((~0UL << (l)) & (~0UL >> (63 - (h))))
#define GENMASK_ULL(h, l)	((~0ULL << (l)) & (~0ULL >> (63 - (h))))
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define ALIGN(n, a)		(((n) + (a) - 1) & ~((__typeof__(n))(a) - 1))
#define IS_ALIGNED(n, a)	(!((n) & ((a) - 1)))
#define IS_ENABLED(option)	0
#define roundup(n, d)		(DIV_ROUND_UP(n, d) * (d))
#define is_power_of_2(n)	((n) && !((n) & ((n) - 1)))
#define array_index_nospec(i, n) (i)
#define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))
#define struct_size(p, member, n) (sizeof(*(p)) + sizeof((p)->member[0]) * (size_t)(n))

#define min(a, b)				\
	({					\
		__auto_type host_a = (a);	\
		__auto_type host_b = (b);	\
		host_a < host_b ? host_a : host_b; \
	})
#define max(a, b)				\
	({					\
		__auto_type host_c = (a);	\
		__auto_type host_d = (b);	\
		host_c > host_d ? host_c : host_d; \
	})
#define min3(a, b, c)		min(min(a, b), c)
#define clamp(n, lo, hi)	min(max(n, lo), hi)
#define clamp_t(type, n, lo, hi) clamp((type)(n), (type)(lo), (type)(hi))
#define swap(a, b)				\
	do {					\
		__auto_type host_t = (a);	\
		(a) = (b);			\
		(b) = host_t;			\
	} while (0)

#define be32_to_cpu(n)		__builtin_bswap32(n)
#define cpu_to_be32(n)		__builtin_bswap32(n)
#define get_unaligned(p)						\
	({								\
		__typeof__(*(p) + 0) host_v;				\
		memcpy(&host_v, (p), sizeof(*(p)));			\
		host_v;							\
	})
#define put_unaligned(v, p)						\
	do {								\
		__typeof__(*(p)) host_w = (v);				\
		memcpy((p), &host_w, sizeof(host_w));			\
	} while (0)
#define fls64(n)		((n) ? 64 - __builtin_clzll(n) : 0)

/* clang-format on */

static inline void *ERR_PTR(long err)
{
	return (void *)err;
}

static inline long PTR_ERR(const void *p)
{
	return (long)p;
}

static inline bool IS_ERR(const void *p)
{
	return (unsigned long)p >= (unsigned long)-4095;
}

static inline bool IS_ERR_OR_NULL(const void *p)
{
	return !p || IS_ERR(p);
}

/* --- what must hold --- */

void __attribute__((__noreturn__)) host_broken(const char *file, int line, const char *what);

#define HOST_CHECK(holds)					\
	do {							\
		if (!(holds))					\
			host_broken(__FILE__, __LINE__, #holds); \
	} while (0)
#define WARN_ON_ONCE(bad)					\
	({							\
		if (bad)					\
			host_broken(__FILE__, __LINE__, #bad);	\
		false;						\
	})
#define WARN_ONCE(bad, ...)	WARN_ON_ONCE(bad)

/**
 * struct host - what the machine is at
 * @atomic: levels of not being allowed to sleep
 * @softirqs_off: of these, with softirqs off
 * @in_softirq: a softirq is played
 * @mutexes: held
 * @rcu: read sections
 * @fail_after: allocations until one fails, 0: none does
 * @killed: a signal waits that kills the process
 * @random: state of get_random_u32()
 * @outside: lets the rest of the world go on, for one that waits, and says whether it did
 */
struct host {
	int atomic;
	int softirqs_off;
	bool in_softirq;
	int mutexes;
	int rcu;
	u32 fail_after;
	bool killed;
	u32 random;
	bool (*outside)(void);
};

extern struct host host;

static inline void might_sleep(void)
{
	HOST_CHECK(!host.atomic && !host.rcu);
}

#define cond_resched()		might_sleep()
#define need_resched()		false
#define fatal_signal_pending(task) host.killed
#define lockdep_assert_held(lock) HOST_CHECK((lock)->held)
#define in_serving_softirq()	host.in_softirq
#define softirq_count()		(host.softirqs_off + host.in_softirq)

static inline void preempt_disable(void)
{
	host.atomic++;
}

static inline void preempt_enable(void)
{
	host.atomic--;
}

static inline void local_bh_disable(void)
{
	host.softirqs_off++;
	host.atomic++;
}

static inline void local_bh_enable(void)
{
	host.softirqs_off--;
	host.atomic--;
}

/* A softirq begins and ends. */
void host_softirq_enter(void);
void host_softirq_leave(void);

/* --- locks --- */

typedef struct {
	bool held;
} spinlock_t;

static inline void spin_lock_init(spinlock_t *lock)
{
	lock->held = false;
}

static inline void spin_lock(spinlock_t *lock)
{
	HOST_CHECK(!lock->held);
	lock->held = true;
	host.atomic++;
}

static inline void spin_unlock(spinlock_t *lock)
{
	HOST_CHECK(lock->held);
	lock->held = false;
	host.atomic--;
}

static inline void spin_lock_bh(spinlock_t *lock)
{
	local_bh_disable();
	spin_lock(lock);
}

static inline void spin_unlock_bh(spinlock_t *lock)
{
	spin_unlock(lock);
	local_bh_enable();
}

#define spin_lock_irqsave(lock, flags)		\
	do {					\
		(flags) = 0;			\
		spin_lock(lock);		\
	} while (0)
#define spin_unlock_irqrestore(lock, flags)	\
	do {					\
		(void)(flags);			\
		spin_unlock(lock);		\
	} while (0)

struct mutex {
	bool held;
};

static inline void mutex_init(struct mutex *m)
{
	m->held = false;
}

static inline bool mutex_trylock(struct mutex *m)
{
	if (m->held)
		return false;
	m->held = true;
	host.mutexes++;
	return true;
}

static inline void mutex_lock(struct mutex *m)
{
	might_sleep();
	HOST_CHECK(mutex_trylock(m));
}

static inline void mutex_unlock(struct mutex *m)
{
	HOST_CHECK(m->held);
	m->held = false;
	host.mutexes--;
}

/* --- atomics --- */

typedef struct {
	int counter;
} atomic_t;

#define atomic_read(v)		((v)->counter)
#define atomic_set(v, n)	((v)->counter = (n))
#define atomic_inc(v)		((v)->counter++)
#define atomic_dec(v)		((v)->counter--)
#define atomic_dec_and_test(v)	(!--(v)->counter)

static inline bool atomic_inc_not_zero(atomic_t *v)
{
	return v->counter ? ++v->counter : false;
}

static inline bool atomic_add_unless(atomic_t *v, int n, int unless)
{
	if (v->counter == unless)
		return false;
	v->counter += n;
	return true;
}

static inline bool atomic_try_cmpxchg(atomic_t *v, int *old, int to)
{
	if (v->counter != *old) {
		*old = v->counter;
		return false;
	}
	v->counter = to;
	return true;
}

#define xchg(p, v)		__atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)
#define cmpxchg(p, old, to)				\
	({						\
		__typeof__(*(p)) host_seen = *(p);	\
		if (host_seen == (old))			\
			*(p) = (to);			\
		host_seen;				\
	})
#define cmpxchg64(p, old, to)	cmpxchg(p, old, to)

static inline void set_bit(int n, unsigned long *word)
{
	*word |= BIT(n);
}

static inline void clear_bit(int n, unsigned long *word)
{
	*word &= ~BIT(n);
}

static inline bool test_bit(int n, const unsigned long *word)
{
	return *word & BIT(n);
}

static inline bool test_and_set_bit_lock(int n, unsigned long *word)
{
	bool was = test_bit(n, word);

	set_bit(n, word);
	return was;
}

static inline bool test_and_clear_bit(int n, unsigned long *word)
{
	bool was = test_bit(n, word);

	clear_bit(n, word);
	return was;
}

#define clear_bit_unlock(n, word) clear_bit(n, word)

typedef atomic_t refcount_t;

#define refcount_set(r, n)	atomic_set(r, n)
#define refcount_inc(r)		atomic_inc(r)
#define refcount_dec_and_test(r) atomic_dec_and_test(r)

struct kref {
	int count;
};

#define kref_init(k)		((k)->count = 1)
#define kref_read(k)		((unsigned int)(k)->count)

static inline void kref_get(struct kref *k)
{
	HOST_CHECK(k->count > 0);
	k->count++;
}

static inline bool kref_get_unless_zero(struct kref *k)
{
	return k->count ? ++k->count : false;
}

static inline void kref_put(struct kref *k, void (*release)(struct kref *k))
{
	HOST_CHECK(k->count > 0);
	if (!--k->count)
		release(k);
}

/* --- lists --- */

struct hlist_node {
	struct hlist_node *next;
};

struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *l)
{
	l->next = l;
	l->prev = l;
}

static inline bool list_empty(const struct list_head *l)
{
	return l->next == l;
}

static inline void list_add_tail(struct list_head *node, struct list_head *l)
{
	node->next = l;
	node->prev = l->prev;
	l->prev->next = node;
	l->prev = node;
}

static inline void list_del_init(struct list_head *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	INIT_LIST_HEAD(node);
}

#define list_first_entry(l, type, member) container_of((l)->next, type, member)

/* --- RCU: what is to be freed goes when no context is played --- */

struct rcu_head {
	void (*func)(struct rcu_head *head);
	struct rcu_head *next;
	void *block;
};

void call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head));
void host_kfree_rcu(struct rcu_head *head, void *block);
void host_grace_period(void);

#define kfree_rcu(p, member)	host_kfree_rcu(&(p)->member, p)
#define rcu_barrier()		host_grace_period()
#define rcu_read_lock()		((void)host.rcu++)
#define rcu_read_unlock()	((void)host.rcu--)
#define rcu_read_lock_sched()	rcu_read_lock()
#define rcu_read_unlock_sched()	rcu_read_unlock()
#define rcu_dereference_sched(p) READ_ONCE(p)
#define rcu_assign_pointer(p, v) smp_store_release(&(p), v)
#define RCU_INITIALIZER(v)	(v)

/* --- memory --- */

#define GFP_NOWAIT		0U
#define __GFP_DIRECT_RECLAIM	(1U << 0)
#define __GFP_NOWARN		(1U << 1)
#define __GFP_NOFAIL		(1U << 2)
#define __GFP_MEMALLOC		(1U << 3)
#define __GFP_ZERO		(1U << 4)
#define __GFP_ACCOUNT		(1U << 5)
#define GFP_KERNEL		__GFP_DIRECT_RECLAIM
#define GFP_KERNEL_ACCOUNT	(GFP_KERNEL | __GFP_ACCOUNT)
#define GFP_ATOMIC		GFP_NOWAIT
#define PAGE_SHIFT		12
#define PAGE_SIZE		4096UL
#define PAGE_ALIGN(n)		ALIGN(n, PAGE_SIZE)
#define offset_in_page(p)	((unsigned long)(p) & (PAGE_SIZE - 1))
#define SLAB_ACCOUNT		0

void *host_alloc(size_t bytes, gfp_t gfp);

#define kmalloc(n, gfp)		host_alloc(n, gfp)
#define kzalloc(n, gfp)		host_alloc(n, (gfp) | __GFP_ZERO)
#define kcalloc(n, size, gfp)	host_alloc((size_t)(n) * (size), (gfp) | __GFP_ZERO)
#define kmalloc_array(n, size, gfp) host_alloc((size_t)(n) * (size), gfp)
#define kvmalloc(n, gfp)	host_alloc(n, gfp)
#define kvzalloc(n, gfp)	kzalloc(n, gfp)
#define kvcalloc(n, size, gfp)	kcalloc(n, size, gfp)
#define __vmalloc(n, gfp)	host_alloc(n, gfp)
#define kfree(p)		free((void *)(p))
#define kvfree(p)		free((void *)(p))
#define vfree(p)		free((void *)(p))

struct kmem_cache;

#define KMEM_CACHE(type, flags)	((struct kmem_cache *)sizeof(struct type))
#define kmem_cache_zalloc(cache, gfp) kzalloc((size_t)(cache), gfp)
#define kmem_cache_free(cache, p) free(p)
#define kmem_cache_destroy(cache)

#define alloc_percpu(type)	((type *)kzalloc(sizeof(type), GFP_KERNEL))
#define free_percpu(p)		free(p)
#define DEFINE_PER_CPU(type, name) __typeof__(type) name
#define this_cpu_ptr(p)		(p)
#define per_cpu_ptr(p, cpu)	((void)(cpu), (p))
#define raw_cpu_ptr(p)		(p)
#define raw_cpu_add(v, n)	((v) += (n))
#define for_each_possible_cpu(cpu) for ((cpu) = 0; (cpu) < 1; (cpu)++)

/* A page, or some in a row: the address of the first, and the references to them. */
struct page {
	u8 *address;
	u32 count;
};

struct bio_vec {
	struct page *bv_page;
	unsigned int bv_len;
	unsigned int bv_offset;
};

struct page_frag {
	struct page *page;
	u32 offset;
	u32 size;
};

struct page *host_pages(u32 count, gfp_t gfp);
struct page *virt_to_page(const void *addr);
bool virt_addr_valid(const void *addr);
void put_page(struct page *page);
bool skb_page_frag_refill(unsigned int size, struct page_frag *frag, gfp_t gfp);

#define alloc_page(gfp)		host_pages(1, gfp)
#define __free_page(page)	put_page(page)
#define page_address(page)	((void *)(page)->address)

static inline void get_page(struct page *page)
{
	HOST_CHECK(page->count);
	page->count++;
}

/* Memory of a process: pages in any order. */
struct host_sgtable {
	struct page **pages;
	u32 count;
};

struct ib_umem {
	struct {
		struct host_sgtable sgt;
	} sgt_append;
	u32 offset;
};

struct sg_page_iter {
	u32 at;
	const struct host_sgtable *sgt;
};

void ib_umem_release(struct ib_umem *umem);

#define ib_umem_num_pages(umem)	((umem)->sgt_append.sgt.count)
#define ib_umem_offset(umem)	((umem)->offset)
#define sg_page_iter_page(iter)	((iter)->sgt->pages[(iter)->at])
#define for_each_sgtable_page(table, iter, first)				\
	for (*(iter) = (struct sg_page_iter){ (first), (table) }; (iter)->at < (iter)->sgt->count; \
	     (iter)->at++)

enum ib_access_flags {
	IB_ACCESS_LOCAL_WRITE = 1 << 0,
	IB_ACCESS_REMOTE_WRITE = 1 << 1,
	IB_ACCESS_REMOTE_READ = 1 << 2,
	IB_ACCESS_REMOTE_ATOMIC = 1 << 3,
	IB_ACCESS_MW_BIND = 1 << 4,
	IB_ZERO_BASED = 1 << 5,
};

/* --- an array of pointers by number --- */

struct xa_slot {
	unsigned long index;
	void *entry;
};

struct xarray {
	struct xa_slot *slots;
	u32 count;
};

struct xa_limit {
	u32 min;
	u32 max;
};

#define XA_LIMIT(lo, hi)	((struct xa_limit){ .min = (lo), .max = (hi) })
#define xa_init_flags(xa, flags) memset(xa, 0, sizeof(*(xa)))
#define xa_empty(xa)		(!(xa)->count)

int xa_alloc(struct xarray *xa, u32 *id, void *entry, struct xa_limit limit, gfp_t gfp);
int xa_alloc_cyclic_irq(struct xarray *xa, u32 *id, void *entry, struct xa_limit limit, u32 *next,
			gfp_t gfp);
void *xa_load(struct xarray *xa, unsigned long index);
void xa_store_irq(struct xarray *xa, unsigned long index, void *entry, gfp_t gfp);
void xa_erase(struct xarray *xa, unsigned long index);
void xa_destroy(struct xarray *xa);

#define xa_erase_irq(xa, index)	xa_erase(xa, index)
#define xa_for_each(xa, i, e)							\
	for ((i) = 0; (i) < (xa)->count; (i)++)					\
		if (((e) = (xa)->slots[i].entry))

/* --- time, timers, work --- */

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

/* --- the rest --- */

struct task_struct {
	struct page_frag task_frag;
};

extern struct task_struct host_task;

#define current			(&host_task)
#define memalloc_noio_save()	0U
#define memalloc_noio_restore(flags) ((void)(flags))
#define memalloc_noreclaim_save() 0U
#define memalloc_noreclaim_restore(flags) ((void)(flags))
#define THIS_MODULE		NULL
#define __module_get(module)
#define module_put(module)

u32 get_random_u32(void);

/* Everything is as at the start. Return: nothing is left of what ran. */
void host_reset(void);
bool host_is_clean(void);

#include "net.h"

#endif
