/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Memory of a process that is paged on demand: nothing is pinned, pages are faulted in when
 * they are accessed, and given up when the process or the kernel wants them elsewhere.
 */
#ifndef WEFT_MEM_ODP_H
#define WEFT_MEM_ODP_H

#include <linux/errno.h>
#include <linux/err.h>
#include <linux/types.h>

struct ib_device;
struct weft_odp;
struct work_struct;

/* What pages are made present for. */
enum weft_odp_how {
	WEFT_ODP_READ,
	WEFT_ODP_WRITE,
	WEFT_ODP_PRESENT,	/* take those that the process has, fault none in */
};

enum weft_odp_want_state {
	WEFT_ODP_IDLE,
	WEFT_ODP_ASKED,		/* an access lacks a page */
	WEFT_ODP_STARTED,	/* a worker faults them in */
	WEFT_ODP_DONE,		/* it has tried */
};

/**
 * struct weft_odp_want - the pages that an access lacks
 * @odp: the memory, with a reference while ASKED or STARTED
 * @offset: of the access in the region
 * @len: its bytes
 * @write: it writes
 * @moot: they were there after all, or something else is wanted: the outcome says nothing
 * @state: enum weft_odp_want_state
 * @err: once DONE: 0, or why there are none
 *
 * Owned by the context of the stream's direction; while STARTED only @moot, and the worker
 * writes @err, then @state.
 */
struct weft_odp_want {
	struct weft_odp *odp;
	u64 offset;
	u32 len;
	bool write;
	bool moot;
	u8 state;
	int err;
};

/* Pages: faulted in for accesses, taken back, made present by advice. */
struct weft_odp_stats {
	u64 faulted;
	u64 invalidated;
	u64 prefetched;
};

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING

int weft_odp_module_init(void);
void weft_odp_module_exit(void);
bool weft_odp_queue(struct work_struct *work);

struct weft_odp *weft_odp_create(struct ib_device *ib, u64 start, u64 length, int access);
void weft_odp_get(struct weft_odp *odp);
void weft_odp_put(struct weft_odp *odp);
void weft_odp_destroy(struct weft_odp *odp);
bool weft_odp_is_writable(const struct weft_odp *odp);
u64 weft_odp_start(const struct weft_odp *odp);
bool weft_odp_is_own(const struct weft_odp *odp);
void weft_odp_query(const struct weft_odp *odp, struct weft_odp_stats *stats);

/* Context: may sleep. */
int weft_odp_fault(struct weft_odp *odp, u64 offset, u64 len, enum weft_odp_how how);
int weft_odp_prefetch(struct weft_odp *odp, u64 offset, u64 len, enum weft_odp_how how, bool wait);

/* Any context. */
bool weft_odp_enter(struct weft_odp *odp, u64 offset, u32 len, bool write);
void weft_odp_leave(struct weft_odp *odp);
u8 *weft_odp_span(struct weft_odp *odp, u64 offset, u32 *span);

bool weft_odp_must_wait(struct weft_odp_want *want, struct weft_odp *odp, u64 offset, u32 len,
			bool write);
void weft_odp_forget(struct weft_odp_want *want);

#else

static inline int weft_odp_module_init(void)
{
	return 0;
}

static inline void weft_odp_module_exit(void)
{
}

static inline bool weft_odp_queue(struct work_struct *work)
{
	return false;
}

static inline struct weft_odp *weft_odp_create(struct ib_device *ib, u64 start, u64 length,
					       int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline void weft_odp_get(struct weft_odp *odp)
{
}

static inline void weft_odp_put(struct weft_odp *odp)
{
}

static inline void weft_odp_destroy(struct weft_odp *odp)
{
}

static inline bool weft_odp_is_writable(const struct weft_odp *odp)
{
	return false;
}

static inline u64 weft_odp_start(const struct weft_odp *odp)
{
	return 0;
}

static inline bool weft_odp_is_own(const struct weft_odp *odp)
{
	return false;
}

static inline void weft_odp_query(const struct weft_odp *odp, struct weft_odp_stats *stats)
{
	*stats = (struct weft_odp_stats){};
}

static inline int weft_odp_fault(struct weft_odp *odp, u64 offset, u64 len, enum weft_odp_how how)
{
	return -EOPNOTSUPP;
}

static inline int weft_odp_prefetch(struct weft_odp *odp, u64 offset, u64 len,
				    enum weft_odp_how how, bool wait)
{
	return -EOPNOTSUPP;
}

static inline bool weft_odp_enter(struct weft_odp *odp, u64 offset, u32 len, bool write)
{
	return false;
}

static inline void weft_odp_leave(struct weft_odp *odp)
{
}

static inline u8 *weft_odp_span(struct weft_odp *odp, u64 offset, u32 *span)
{
	return NULL;
}

static inline bool weft_odp_must_wait(struct weft_odp_want *want, struct weft_odp *odp, u64 offset,
				      u32 len, bool write)
{
	return false;
}

static inline void weft_odp_forget(struct weft_odp_want *want)
{
}

#endif

#endif
