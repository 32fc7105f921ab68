/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the cases of a round have at hand.
 */
#ifndef WEFT_TEST_WORLD_H
#define WEFT_TEST_WORLD_H

#include <linux/printk.h>
#include <rdma/ib_verbs.h>

#include "../self.h"
#include "area.h"

struct world {
	struct self self;
	struct ib_pd *pd;
	struct ib_cq *cq;
	enum ib_poll_context context;
	int vector;
	struct area a, b;
	char *small; /* two halves: from and to */
};

extern struct world world;

/* Milliseconds until what is under way has come to its end, also on a busy machine. */
#define SETTLED	200

#define CHECK(what)                                                             \
	do {                                                                    \
		if (!(what)) {                                                  \
			pr_err("%s, line %d: %s\n", __func__, __LINE__, #what); \
			return -EINVAL;                                         \
		}                                                               \
	} while (0)

#endif
