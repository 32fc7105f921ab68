/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A verbs program driven line by line: commands on stdin, answers and events on
 * stdout. What each command takes stands in front of its function.
 */
#ifndef AGENT_H
#define AGENT_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_OBJECTS	1024
#define MAX_ARGS	32

struct args {
	int count;
	char *key[MAX_ARGS];
	char *value[MAX_ARGS];
};

/*
 * What a command does: COMMAND(name, a) { ... }. The linker collects them from all files.
 */
struct command {
	const char *name;
	void (*run)(const struct args *a);
};

#define COMMAND(name, a)                                                           \
	static void cmd_##name(const struct args *a);                              \
	static const struct command command_##name = { #name, cmd_##name };        \
	static const struct command *const listed_##name                           \
		__attribute__((used, section("commands"))) = &command_##name;      \
	static void cmd_##name(const struct args *a)

/* What is not on the line is @missing. */
const char *arg_str(const struct args *a, const char *key, const char *missing);
uint64_t arg_num(const struct args *a, const char *key, uint64_t missing);

/* Every command says exactly one of these; err() ends it. answer(): by what a call returned. */
void ok(const char *format, ...) __attribute__((format(printf, 1, 2)));
void err(int number, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
void answer(int number, const char *what);
void line(const char *format, ...) __attribute__((format(printf, 1, 2)));

int from_hex(const char *hex, uint8_t *out, size_t space);
void print_hex(const void *data, size_t len);

struct region {
	char name[32];
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint8_t *map;		/* guard, buffer, guard */
	size_t map_len;
	uint8_t *buf;
	size_t len;
	uint64_t iova;		/* what a scatter element names */
};

struct queue {
	char name[32];
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	bool manual;
};

struct conn {
	int k;			/* 0: free */
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
};

extern struct ibv_context *device;
extern struct rdma_event_channel *cm_channel;
extern struct queue queues[MAX_OBJECTS];

struct ibv_pd *find_pd(const char *name);
struct region *find_region(const char *name);
struct ibv_mw *find_window(const char *name);
struct conn *conn_of_qp(uint32_t qp_num);

/* What the line names, or the command ends: by "name", @key, "k". */
struct region *region_of(const struct args *a);
struct queue *queue_of(const struct args *a, const char *key);
struct conn *conn_of(const struct args *a);

int parse_access(const char *letters);

extern struct ibv_srq *srq;
void conn_event(void);
int poll_queues(void);
void queue_event(struct queue *q);

#endif
