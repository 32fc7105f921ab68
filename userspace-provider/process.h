/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Which process this is. A child inherits all that its parent had: objects, the
 * mapped queues, and the locks that other threads of the parent held.
 */
#ifndef WEFT_PROCESS_H
#define WEFT_PROCESS_H

#include <stdint.h>

/*
 * Counts forks: another value than it was when an object was made or a lock taken means
 * that this was done by an ancestor. Never 0; written in a new child, before it has threads.
 */
extern uint32_t weft_generation __attribute__((visibility("hidden")));

/* Once, before anything else. */
void weft_process_init(void);

#endif
