/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What a process keeps for others to read, one word at a time. */
#ifndef TARGET_REGION_H
#define TARGET_REGION_H

#include <stdint.h>

#define TARGET_SEED 20
#define TARGET_WORDS 2048
#define TARGET_READS 100

struct end;

/* The words do not change: word_of() each; one more is for atomics. */
struct target {
	uint32_t words[TARGET_WORDS];
	uint64_t sum;
	uint64_t written; /* by the reader; answered by a Send */
};

/* Where it is: the first message to its reader. */
struct place {
	uint64_t to;
	uint32_t rkey;
};

/* One at a time. The reader has said that it is ready. */
void open_target(struct end *e);
void close_target(void);

/* Finds nothing, until the reader goes or has been silent for long. */
void poll_until_it_goes(struct end *e);

#endif
