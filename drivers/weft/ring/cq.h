/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Completion queue: post, poll, arm, overflow.
 */
#ifndef WEFT_RING_CQ_H
#define WEFT_RING_CQ_H

#include <linux/hrtimer.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "ring/ring.h"
#include "uapi/weft-abi.h"

struct weft_counters;

/**
 * struct weft_cq_events - what a completion queue tells its owner
 * @completion: an armed CQ got an entry; no lock of this room is held, any context
 * @overflow: an entry was lost; any context, called once per queue
 */
struct weft_cq_events {
	void (*completion)(void *owner);
	void (*overflow)(void *owner);
};

/**
 * struct weft_cq_moderation - events held back, for fewer of them
 * @count: completions to an event; 0: each raises its own
 * @held: completions since the last event that would have raised one
 * @period: how long the first of them may wait
 * @timer: that wait
 */
struct weft_cq_moderation {
	u16 count;
	u16 held;
	ktime_t period;
	struct hrtimer timer;
};

/**
 * struct weft_cq_doorbells - doorbells of the queue pairs that complete to a queue
 * @rings: served so far
 * @inside: one is being served
 *
 * Hints, written without a lock: those that are served at the same time may spoil each
 * other's.
 */
struct weft_cq_doorbells {
	u32 rings;
	bool inside;
};

/**
 * struct weft_cq - a completion queue
 * @ring: memory
 * @ctl: control block, in @ring
 * @user: a process polls it
 * @lock: producers, kernel pollers and resizing: @prod, @cons, @overflowed, @ring,
 *	@ctl, @moderation
 * @prod: next entry to write
 * @cons: kernel pollers' position; a user's as last read from the control block
 * @stamped: completions carry the time; set by the owner before anything posts
 * @overflowed: an entry was lost
 * @moderation: of events
 * @doorbells: the engine's notes
 * @events: what the owner hears
 * @owner: handed to them
 * @counters: of the device
 */
struct weft_cq {
	struct weft_ring ring;
	struct weft_cq_ctl *ctl;
	bool user;
	spinlock_t lock; /* prod, cons, overflowed, moderation; weft_ring_lock() */
	u32 prod;
	u32 cons;
	bool stamped;
	bool overflowed;
	struct weft_cq_moderation moderation;
	struct weft_cq_doorbells doorbells;
	const struct weft_cq_events *events;
	void *owner;
	struct weft_counters *counters;
};

/**
 * struct weft_cq_batch - notifications to fire once locks are dropped
 * @count: of @cq in use
 * @cq: queues to notify
 *
 * On the stack of a loop that completes many requests. A CQ that finds no room
 * here is notified at once.
 */
struct weft_cq_batch {
	u32 count;
	struct weft_cq *cq[4];
};

int weft_cq_init(struct weft_cq *cq, u32 entries, struct weft_ring_space *space,
		 const struct weft_cq_events *events, void *owner, struct weft_counters *counters);
void weft_cq_free(struct weft_cq *cq);

void weft_cq_moderate(struct weft_cq *cq, u16 count, u16 period_us);
void weft_cq_tell_held(struct weft_cq *cq);
int weft_cq_resize(struct weft_cq *cq, struct weft_ring *ring);

int weft_cq_post(struct weft_cq *cq, const struct weft_cqe *cqe, struct weft_cq_batch *batch);
void weft_cq_batch_fire(struct weft_cq_batch *batch);

/* A snapshot, for resource tracking. */
struct weft_cq_details {
	u32 entries;
	u32 prod;
	u32 waiting;
	u32 arm;	/* enum weft_arm, or whatever a process wrote there */
	bool overflowed;
};

void weft_cq_inspect(struct weft_cq *cq, struct weft_cq_details *out);

/* Kernel pollers. */
u32 weft_cq_poll(struct weft_cq *cq, struct weft_cqe *out, u32 max);
bool weft_cq_arm(struct weft_cq *cq, enum weft_arm arm);
void weft_cq_purge(struct weft_cq *cq, u32 qp_num);

#endif
