/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Which process this is. A child inherits all that its parent had: the device's file with
 * every object, the mapped queues, and the locks that other threads of the parent held.
 * What it inherited stays the parent's while that lives: the child may let go of it,
 * which the parent does not notice. If the parent ends, as one does that becomes a daemon, all
 * of it is the child's.
 */
#ifndef WEFT_PROCESS_H
#define WEFT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

struct ibv_context;

/*
 * Counts forks: another value than it was when an object was made or a lock taken means
 * that this was done by an ancestor. Never 0; written in a new child, before it has threads.
 */
extern uint32_t weft_generation __attribute__((visibility("hidden")));

/* Once, before anything else. */
void weft_process_init(void);

/* May this process destroy an object that was made in @generation? */
bool weft_owns(struct ibv_context *context, uint32_t generation);

/*
 * The same for what only an owner does, and a child therefore no sooner than its parent has
 * ended: waits for a moment, since a daemon begins while its parent is ending. Returns 0;
 * EPERM: the parent lives; or what the device says.
 */
int weft_must_own(struct ibv_context *context, uint32_t generation);

#endif
