// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The end of an object waits for those that look at it.
 */
#include "verbs/tracked.h"

#include <linux/sched.h>
#include <linux/wait_bit.h>
#include <asm/barrier.h>

/**
 * weft_tracked_put - a reference less
 * @t: of the object, which may be gone afterwards
 *
 * Context: any.
 */
void weft_tracked_put(struct weft_tracked *t)
{
	if (!refcount_dec_and_test(&t->refs))
		return;
	smp_mb__after_atomic();	/* pairs with the one of prepare_to_wait_event() */
	wake_up_var(&t->refs);	/* only an address: the object may be gone */
}

/**
 * weft_tracked_end - drop the owner's reference and wait for all others
 * @t: hidden by weft_tracked_hide()
 *
 * When it returns the object is no longer looked at, and what a dump reads may be freed.
 * Context: may sleep.
 */
void weft_tracked_end(struct weft_tracked *t)
{
	weft_tracked_put(t);
	wait_var_event(&t->refs, !refcount_read(&t->refs));
	smp_acquire__after_ctrl_dep();	/* pairs with the release of the last put */
}
