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

#define MAX_OBJECTS	256
#define MAX_ARGS	32

struct args {
	int count;
	char *key[MAX_ARGS];
	char *value[MAX_ARGS];
};

/* A missing string is @missing; a missing or odd number ends the command. */
const char *arg_str(const struct args *a, const char *key, const char *missing);
uint64_t arg_num(const struct args *a, const char *key, uint64_t missing);

/* Every command says exactly one of these. */
void ok(const char *format, ...) __attribute__((format(printf, 1, 2)));
void err(int number, const char *format, ...) __attribute__((format(printf, 2, 3)));
void line(const char *format, ...) __attribute__((format(printf, 1, 2)));

int from_hex(const char *hex, uint8_t *out, size_t room);
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
struct queue *find_queue(const char *name);
struct ibv_mw *find_window(const char *name);
struct conn *find_conn(uint64_t k);
struct conn *conn_of_qp(uint32_t qp_num);

int parse_access(const char *letters);

/* Commands: memory.c */
void cmd_pd(const struct args *a);
void cmd_droppd(const struct args *a);
void cmd_mr(const struct args *a);
void cmd_rereg(const struct args *a);
void cmd_dereg(const struct args *a);
void cmd_mw(const struct args *a);
void cmd_dealloc(const struct args *a);
void cmd_fill(const struct args *a);
void cmd_poke(const struct args *a);
void cmd_peek(const struct args *a);
void cmd_hash(const struct args *a);
void cmd_guard(const struct args *a);

/* conn.c */
void cmd_listen(const struct args *a);
void cmd_resolve(const struct args *a);
void cmd_qp(const struct args *a);
void cmd_connect(const struct args *a);
void cmd_accept(const struct args *a);
void cmd_reject(const struct args *a);
void cmd_disconnect(const struct args *a);
void cmd_destroy(const struct args *a);
void cmd_query(const struct args *a);
void cmd_modify(const struct args *a);
void cmd_tos(const struct args *a);
void cmd_ports(const struct args *a);
void conn_event(void);

/* work.c */
void cmd_cq(const struct args *a);
void cmd_poll(const struct args *a);
void cmd_arm(const struct args *a);
void cmd_dropcq(const struct args *a);
void cmd_post(const struct args *a);
void cmd_srq(const struct args *a);
void cmd_dropsrq(const struct args *a);
void cmd_postsrq(const struct args *a);
void cmd_srqarm(const struct args *a);
extern struct ibv_srq *srq;
void poll_queues(void);
void queue_event(struct queue *q);

#endif
