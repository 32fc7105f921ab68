/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What a process keeps for others to read, one word at a time. */
#ifndef SHOP_H
#define SHOP_H

#include <stdint.h>

#define SHOP_SEED 20
#define SHOP_WORDS 2048
#define SHOP_VISITS 100

struct end;

/* The words do not change: word_of() each; one more is for atomics. */
struct shop {
	uint32_t words[SHOP_WORDS];
	uint64_t sum;
	uint64_t written; /* by the reader; answered by a Send */
};

/* Where it is: what its reader is told first. */
struct place {
	uint64_t to;
	uint32_t rkey;
};

/* One at a time. The reader has said that it can be told. */
void open_shop(struct end *e);
void close_shop(void);

/* In vain, until the reader goes or has been silent for long. */
void poll_until_it_goes(struct end *e);

#endif
