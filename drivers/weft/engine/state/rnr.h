/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A message of the peer that waits for a receive ("receiver not ready").
 */
#ifndef WEFT_ENGINE_STATE_RNR_H
#define WEFT_ENGINE_STATE_RNR_H

#include <linux/timer.h>
#include <linux/types.h>

#include "ring/rq_wait.h"

/**
 * struct weft_rnr - a wait for a receive
 * @waiter: its place in the receive queue
 * @timer: ends the wait, and finds receives that are posted without a doorbell
 * @deadline: jiffies
 *
 * Begun and ended by the owner of rx.
 */
struct weft_rnr {
	struct weft_rq_waiter waiter;
	struct timer_list timer;
	unsigned long deadline;
};

#endif
