/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Locks, atomic operations, bits and references, as one thread has them. Included by kernel.h. */
#ifndef WEFT_HOST_LOCKS_H
#define WEFT_HOST_LOCKS_H

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

static inline void mutex_destroy(struct mutex *m)
{
	HOST_CHECK(!m->held);
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

#endif
