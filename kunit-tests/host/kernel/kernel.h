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
#define SZ_1K			0x400
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
/* By void pointers: what memcpy() is given by its type, UBSan wants aligned. */
#define get_unaligned(p)						\
	({								\
		__typeof__(*(p) + 0) host_v;				\
		memcpy(&host_v, (const void *)(p), sizeof(*(p)));	\
		host_v;							\
	})
#define put_unaligned(v, p)						\
	do {								\
		__typeof__(*(p)) host_w = (v);				\
		memcpy((void *)(p), &host_w, sizeof(host_w));		\
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
 * @non_block: sections that must not sleep although the context could
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
	int non_block;
	u32 fail_after;
	bool killed;
	u32 random;
	bool (*outside)(void);
};

extern struct host host;

static inline void might_sleep(void)
{
	HOST_CHECK(!host.atomic && !host.rcu && !host.non_block);
}

static inline void non_block_start(void)
{
	host.non_block++;
}

static inline void non_block_end(void)
{
	HOST_CHECK(host.non_block > 0);
	host.non_block--;
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

#include "locks.h"

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

#include "mm.h"
#include "timers.h"

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
