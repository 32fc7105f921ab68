/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the cases share: two connected ends in one process, work requests with one
 * element, completions with a deadline.
 */
#ifndef VERBS_H
#define VERBS_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define BYTES 65536
#define WRS 16
#define SECONDS 20

/* One end: its id, a region that the peer may read and write, and a private one. */
struct end {
	struct rdma_cm_id *id;
	struct ibv_mr *open;
	struct ibv_mr *own;
	unsigned char *buf;
};

/* The server's and the client's end of the connection every case begins with. */
extern struct end s, c;
extern const char *address;

/* How many Reads may be under way on a connection; a case may have it otherwise. */
extern unsigned int read_depth;

/* What the linker collects from all files, in no order. */
struct test_case {
	const char *name, *group, *attributes;
	void (*run)(void);
};

/*
 * A case: CASE("group", name) { ... }. The suite runs those of a group, with these attributes of
 * the device ("rnr_timeout_ms=600 mpa_crc=0"); what is unlisted, something else starts.
 */
#define CASE_OF(group, name, attributes)                                         \
	static void name(void);                                                  \
	static const struct test_case case_##name = { #name, group, attributes, name }; \
	static const struct test_case *const listed_##name                       \
		__attribute__((used, section("test_cases"))) = &case_##name;     \
	static void name(void)
#define CASE(group, name) CASE_OF(group, name, "")
#define CASE_WITH(group, name, attributes) CASE_OF(group, name, attributes)
#define UNLISTED(name) CASE_OF(NULL, name, "")

#define CHECK(what)                                                                            \
	do {                                                                                   \
		if (!(what)) {                                                                 \
			printf("%s:%d: %s (errno %s)\n", __FILE__, __LINE__, #what,            \
			       strerror(errno));                                               \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

#define SKIP(why)                            \
	do {                                 \
		printf("%s\n", why);         \
		exit(77);                    \
	} while (0)

double now(void);

/* Where connections to ourselves are accepted. */
struct rdma_cm_id *the_listener(void);

/* Of a connection with another process; the side that accepts may bring a QP of its own making. */
void connect_end(struct end *e);
void accept_end(struct end *e, void (*make)(struct end *));

/* What a case does with the client's QP before it connects. */
extern void (*before_connecting)(struct end *e);

/* The usual QP; the same, with room for two messages without a payload. */
void make_qp(struct end *e);
void make_receiving(struct end *e);

/* Another connection to ourselves. */
void connect_pair(struct end *client, struct end *server, void (*make_server_qp)(struct end *));
void release(struct end *e);

/* The same QPs once more, after their connection has ended; both were reset. */
void reconnect_pair(struct end *client, struct end *server);

/* No two words of a region, and no two seeds, are the same. */
uint32_t word_of(uint32_t i, uint32_t seed);

void fill(struct end *e, int seed);
struct ibv_sge sge(struct ibv_mr *mr, size_t offset, uint32_t length);

/* One request with one element; answers as the library does. */
int post(struct end *e, uint64_t id, enum ibv_wr_opcode op, struct ibv_sge sg, uint64_t to,
	 uint32_t rkey, int flags);
int post_atomic(struct end *e, uint64_t id, enum ibv_wr_opcode op, struct ibv_sge sg, uint64_t to,
		uint32_t rkey, uint64_t compare_add, uint64_t swap);
int send_sge(struct end *e, uint64_t id, struct ibv_sge sg, int flags);
int recv_sge(struct end *e, uint64_t id, struct ibv_sge sg);

/* A Read of the client; a Write of it and a Read back of what it wrote, through one key. */
void read_back(uint64_t from, uint32_t rkey, uint32_t length, enum ibv_wc_status status);
void both_ways(void *memory, uint64_t at, uint32_t rkey, uint32_t length);

/* A message without a payload. */
void post_empty_recv(struct end *e);
void send_empty(struct end *e);

/* The next completion; the one that has to be next; none for a while. */
struct ibv_wc next(struct ibv_cq *cq);
struct ibv_wc expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status);
void nothing(struct ibv_cq *cq);

/* As next(), but in a loop that does nothing else; so many that succeed. */
struct ibv_wc polled(struct ibv_cq *cq);
void good(struct ibv_cq *cq, int count);

/* Wait for an event of a completion channel: 1 if it came in time. */
int event_within(struct ibv_comp_channel *channel, int milliseconds);

/* The stream has failed: what is posted now, or was, is flushed. */
void flushes(struct end *e);

/* What the device has counted; an attribute that is a number. */
unsigned long counted(const char *name);
unsigned long attribute(const char *name);

/*
 * How a request ends that the peer refuses and does not answer: with @reason, unless it was
 * complete when TCP had it.
 */
enum ibv_wc_status status_of_refused(enum ibv_wc_status reason);

/* A connection works: a message each way, and its data. */
void works(struct end *client, struct end *server);

/* KiB of this process that the kernel says are pinned. */
long pinned(void);

/* Calls @round some thousand times: no page of the kernel stays allocated for each call. */
void leaves_no_pages(void (*round)(void));

/* From now on the calling thread runs on that CPU, if there is one. */
void stay_on(int cpu);

/*
 * A command of the open device, with @own behind it. Its answer takes RAW_WORDS words at most.
 * Returns 0 or why not.
 */
#define RAW_WORDS 32
int raw_command(uint32_t number, const void *cmd, size_t bytes, const void *own, size_t own_bytes);

/* What makes a plain queue of that size, and has its answer written to that address. */
struct ib_uverbs_create_cq cq_command(uintptr_t response, uint32_t entries);
struct ib_uverbs_create_qp qp_command(uintptr_t response, uint32_t entries);
struct ib_uverbs_create_srq srq_command(uintptr_t response, uint32_t entries);

/* A method of the object "device" with three attributes, as ioctl() answers. */
struct ib_uverbs_attr;
int device_method(int cmd_fd, uint16_t method, const struct ib_uverbs_attr *attrs);

/* Another process runs a case; it listens at @port. */
pid_t start_case(const char *name, int port);
/* The process of a child that runs this and exits. */
pid_t child(void (*run)(void));
void ends_well(pid_t pid);

/* One that goes on as a daemon: that it does, how it begins, and memory that is then its own. */
void daemon_ends_well(const char *name);
void become_a_daemon(void);
void share(struct end *e);

#endif
