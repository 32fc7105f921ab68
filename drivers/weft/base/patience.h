/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Patience with something that is tried often and does not always pay: the more
 * often in a row it was in vain, the more chances are passed over.
 */
#ifndef WEFT_BASE_PATIENCE_H
#define WEFT_BASE_PATIENCE_H

#include <linux/minmax.h>
#include <linux/types.h>

#define WEFT_PATIENCE_MAX	255U

/**
 * struct weft_patience - what was learned; all zero to begin with
 * @skip: chances to pass over now
 * @penalty: how many the last failure cost
 */
struct weft_patience {
	u8 skip;
	u8 penalty;
};

/* There is a chance. Return: it should be taken. */
static inline bool weft_patience_try(struct weft_patience *p)
{
	if (!p->skip)
		return true;
	p->skip--;
	return false;
}

static inline void weft_patience_won(struct weft_patience *p)
{
	p->skip = 0;
	p->penalty = 0;
}

static inline void weft_patience_lost(struct weft_patience *p)
{
	p->penalty = min(2U * p->penalty + 1, WEFT_PATIENCE_MAX);
	p->skip = p->penalty;
}

#endif
