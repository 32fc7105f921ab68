/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the cases of memory paged on demand share. */
#ifndef ODP_H
#define ODP_H

#include "verbs.h"

#define PAGE	4096UL
#define MIB	(1024 * 1024UL)
#define AREA	(4 * MIB)
#define STAGE	(256 * 1024UL)
#define RIGHTS                                                                             \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* Page sizes of the tests' guests are those of the program. */
void *map_at(void *at, size_t bytes, int fd);

/* MIB bytes with a page that is not there, behind so many bytes that are. */
char *hole(size_t before);

/* A domain of the end's, whose QP it is used on. */
struct ibv_mr *reg_odp(struct end *e, void *at, size_t bytes, int access);
struct ibv_mr *implicit(struct end *e);

/* All memory of an implicit region is at its address. */
struct ibv_sge at(struct ibv_mr *mr, void *where, uint32_t length);

/* The client's; each waits for its completion. */
void write_to(void *to, uint32_t rkey, struct ibv_sge from);
void read_from(void *from, uint32_t rkey, struct ibv_sge to);

/* What was written before is there: a Read comes behind it. */
void written(struct end *e);

void make_words(void *to, size_t bytes, uint32_t seed);
int has_words(const void *at, size_t bytes, uint32_t seed);

/* The client's memory @near is there, the server's @far is nowhere yet; AREA each. */
void every_operation(struct ibv_mr *near_mr, char *near, struct ibv_mr *far_mr, char *far);

/* Traffic to and from STAGE bytes at @stage, of the server, while a thread changes what is there
 * until it is @over. */
extern volatile int over;
extern char *stage;
void hammer(void *(*storm)(void *));

#endif
