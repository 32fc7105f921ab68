/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Two ways of doing the same, of which now one and now the other is faster: the faster
 * one is gone, and the other tried again from time to time.
 */
#ifndef WEFT_BASE_TRIAL_H
#define WEFT_BASE_TRIAL_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>
#include <linux/types.h>

#define WEFT_TRIAL_WINDOW	(8U * 1024 * 1024)	/* octets between two judgements */
#define WEFT_TRIAL_GAP		NSEC_PER_MSEC		/* a rest, which says nothing */
#define WEFT_TRIAL_MIN		16U			/* windows until the other is tried */
#define WEFT_TRIAL_MAX		512U

/**
 * struct weft_trial - what was learned; all zero to begin with
 * @since: when the window began, in nanoseconds
 * @last: when it was last added to
 * @octets: in the window
 * @pace: nanoseconds per 1024 octets of each way, 0: not known
 * @way: to go, 0 or 1
 * @settled: the way was gone for a window, so that the next one counts
 * @on_trial: it is not known to be the faster one
 * @left: windows until the other is tried
 * @stay: how many there were the last time
 */
struct weft_trial {
	u64 since;
	u64 last;
	u32 octets;
	u32 pace[2];
	u8 way;
	bool settled;
	bool on_trial;
	u16 left;
	u16 stay;
};

static inline void weft_trial_turn(struct weft_trial *t, bool on_trial)
{
	t->way = !t->way;
	t->settled = false;
	t->on_trial = on_trial;
}

/* A window of the way that is gone took @pace. */
static inline void weft_trial_judge(struct weft_trial *t, u32 pace)
{
	u32 *known = &t->pace[t->way];
	u32 other = t->pace[!t->way];

	*known = t->on_trial || !*known ? pace : (3 * *known + pace) / 4;
	if (t->on_trial) {
		t->left = pace < other ? WEFT_TRIAL_MIN : min(2 * t->stay, WEFT_TRIAL_MAX);
		t->stay = t->left;
		if (pace < other)
			t->on_trial = false;
		else
			weft_trial_turn(t, false);
	} else if (t->left) {
		t->left--;
	} else {
		t->stay = max(t->stay, WEFT_TRIAL_MIN / 2);
		weft_trial_turn(t, true);
	}
}

/**
 * weft_trial_add - some of it is done
 * @t: what was learned
 * @octets: how much
 * @now: in nanoseconds
 */
static inline void weft_trial_add(struct weft_trial *t, u32 octets, u64 now)
{
	bool rested = now - t->last > WEFT_TRIAL_GAP;

	t->last = now;
	t->octets += octets;
	if (!rested && t->octets < WEFT_TRIAL_WINDOW)
		return;
	if (!rested && t->settled)
		weft_trial_judge(t, div_u64(now - t->since, t->octets / 1024));
	else if (!rested)
		t->settled = true;
	t->since = now;
	t->octets = 0;
}

#endif
