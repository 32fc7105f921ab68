/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Reads from another process, one word at a time. */
#ifndef READER_H
#define READER_H

#include <stdint.h>
#include <sys/types.h>

#include "target_region.h"
#include "verbs.h"

#define READER_WORDS 500 /* that read_words() reads */

/* Its end, the process that it reads from, where, and what it has added there. */
struct reader {
	struct end e;
	pid_t pid;
	struct place at;
	struct ibv_mr *at_mr;
	uint64_t sum;
};

/* Before the other end says where its target is, or what else it keeps: its first message. */
void reader_listens(struct reader *r);

/* A process connects to us that keeps a target: the next one, or the one of that name. */
void reader_meets(struct reader *r);
void reader_starts(struct reader *r, const char *name, int port);

/* Only our end; it sends a last message, and the process has to exit with 0. */
void reader_leaves(struct reader *r);
void reader_ends(struct reader *r);

void post_read(struct reader *r, uint32_t i);
void read_one(struct reader *r, uint32_t i);
void read_by_event(struct reader *r, uint32_t i);

/* Read after read: so many, or for so long. */
void read_words(struct reader *r);
void read_for(struct reader *r, double seconds);

/* The same with atomics: each finds what the one before has left. */
void add_up(struct reader *r);

#endif
