/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Two ends of libfabric connections in one process, and what the cases need of them. */
#ifndef WEFT_E2E_FABRIC_H
#define WEFT_E2E_FABRIC_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(table) (int)(sizeof(table) / sizeof((table)[0]))
#define MIB (1 << 20)
#define BYTES (8 * MIB)
#define API FI_VERSION(1, 15)

#define CHECK(what)                                               \
	do {                                                      \
		if (!(what)) {                                    \
			printf("line %d: %s\n", __LINE__, #what); \
			exit(1);                                  \
		}                                                 \
	} while (0)

/* OK: what returns a negative error, or not. */
#define OK(call)                                                                        \
	do {                                                                            \
		long ok = (call);                                                       \
		if (ok < 0) {                                                           \
			printf("line %d: %s: %s\n", __LINE__, #call, fi_strerror(-ok)); \
			exit(1);                                                        \
		}                                                                       \
	} while (0)

/* What a case wants of its connection, before that is made. */
struct wish {
	uint64_t caps;
	bool selective, shared;
	enum fi_wait_obj wait;
	size_t data_size;
};

/* srx: its endpoint takes receives from there. */
struct end {
	struct fi_info *info;
	struct fid_domain *domain;
	struct fid_ep *ep, *srx;
	struct fid_cq *tx, *rx;
	struct fid_mr *mr;
	void *desc;
	unsigned char *buf;
};

extern const char *address;
extern struct fid_fabric *fabric;
extern struct fid_eq *eq;
extern struct fid_pep *listener;
extern struct wish wish;
extern struct end s, c;

struct fi_info *ask(const char *node, uint64_t flags);
void listen_there(void);
void stop_listening(void);
struct fi_info *asked_by(const char *data);
void start_end(struct end *e);
void call_there(struct end *e, const char *data);
void answer(struct end *e, struct fi_info *request, const char *data);
void connected(struct end *e, const char *data);
void connect_ends(void);
void end_over(struct end *e);

struct event {
	uint32_t what;
	size_t got;
	struct fi_eq_cm_entry entry;
	unsigned char data[256];
};

struct event event(uint32_t what, struct fid *fid);
struct fi_eq_err_entry refused(void);
struct fi_cq_data_entry done(struct fid_cq *cq);
struct fi_cq_err_entry broken(struct fid_cq *cq);
bool quiet(struct fid_cq *cq);
void fill(unsigned char *p, size_t size, unsigned int seed);
bool holds(const unsigned char *p, size_t size, unsigned int seed);
double now(void);

/* A case: CASE(name) { ... }; the linker collects them from all files. */
struct test_case {
	const char *name;
	void (*run)(void);
};

#define CASE(name)                                                           \
	static void name(void);                                              \
	static const struct test_case case_##name = { #name, name };         \
	static const struct test_case *const listed_##name                   \
		__attribute__((used, section("test_cases"))) = &case_##name; \
	static void name(void)

#endif
