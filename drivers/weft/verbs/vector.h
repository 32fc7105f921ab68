/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Completion vectors: the CPU a kernel consumer wants to hear on.
 */
#ifndef WEFT_VERBS_VECTOR_H
#define WEFT_VERBS_VECTOR_H

#include <linux/atomic.h>
#include <linux/interrupt.h>
#include <linux/smp.h>

/**
 * struct weft_vector - where notifications of one queue are delivered
 * @cpu: of the vector
 * @pending: bit 0: a call is on its way and not yet begun
 * @sent: calls sent to @cpu
 * @done: of these, the ones that have returned
 * @csd: the call
 * @here: the notification on this CPU, behind the locks of the context that completes
 * @notify: what is called
 * @arg: with what
 */
struct weft_vector {
	int cpu;
	unsigned long pending;
	atomic_t sent;
	atomic_t done;
	call_single_data_t csd;
	struct tasklet_struct here;
	void (*notify)(void *arg);
	void *arg;
};

void weft_vector_init(struct weft_vector *v, u32 vector, void (*notify)(void *arg), void *arg);
void weft_vector_fire(struct weft_vector *v);
void weft_vector_sync(struct weft_vector *v);

#endif
