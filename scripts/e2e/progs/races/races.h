/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the activities share: a device, queues that all threads use, connected pairs of
 * QPs, and what may fail.
 */
#ifndef RACES_H
#define RACES_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP_TIMEOUT 20 /* seconds that no step may exceed, before E2E_SLOW */

/*
 * A thread does rounds until the time is over. @work is one round; @whole does all of them
 * itself. In both, false says that the device has gone.
 */
struct activity {
	const char *name;
	bool (*round)(unsigned int nth);
	bool (*whole)(void);
};

extern const struct activity look_activities[], object_activities[], queue_activities[],
	call_activities[], connection_activities[], traffic_activities[], page_activities[],
	mutation_activities[], cut_activities[], shortage_activities[];

/* Of the command line. */
extern const char *device_name, *address;
extern unsigned int seconds, seed;
extern bool may_go;		/* the device comes and goes: a call may say that it has */
extern bool anything_goes;	/* the results of the calls do not matter */
extern __thread bool may_lack;	/* the kernel is made to lack memory: a call may say so */

/* What the threads of this process share; librdmacm has opened the device. */
struct home {
	struct rdma_cm_id *anchor; /* keeps the context */
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq[2];
};

extern struct home home;

double now(void);
unsigned int step_timeout(void);

/* Is there time left, for this process and all of its threads? */
bool going(void);

/* A round, in what is printed at the end. */
void count_round(void);

/*
 * A call has failed: the process ends, unless its device may have gone, which is what
 * false tells. @errno says how it failed.
 */
bool failed(const char *file, int line, const char *what);

/* Whatever may fail only because the device has gone. */
#define TRY(what)                                                \
	do {                                                     \
		if (!(what) && !failed(__FILE__, __LINE__, #what)) \
			return false;                            \
	} while (0)

/* The same of a verb that answers an errno. */
#define TRY0(what) TRY(!(errno = (what)))

/* What else there is to say of where a failure was. */
extern char doing[128];

/* What may never fail. */
#define CHECK(what)                                                                            \
	do {                                                                                   \
		if (!(what))                                                                   \
			die(__FILE__, __LINE__, #what);                                        \
	} while (0)

void die(const char *file, int line, const char *what) __attribute__((noreturn));

/* Which thread's turn: two threads draw different numbers. */
unsigned int draw(void);

/* --- pairs ------------------------------------------------------------------ */

#define PAIR_BYTES (1U << 20) /* of each end's memory */
#define DEPTH 64

enum side { CLIENT, SERVER, SIDES };

/* Two QPs of this process, connected; @cq of both, and @srq of the server if there is one. */
struct pair {
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener, *id[SIDES];
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr[SIDES];
	unsigned char *buf[SIDES];
	bool extended; /* the client's QP has ibv_wr_*() */
};

/* How far a pair is to come. */
enum outcome {
	ACCEPTED,
	REJECTED,
	ABANDONED, /* by its initiator, which does not wait for an answer */
};

/* With pd and CQs set; without them, nothing is made but the event channel. */
bool pair_join(struct pair *p, enum outcome outcome);
/* Also of a pair that was not joined to the end. */
bool pair_part(struct pair *p);

/* The next event, which has to be @wanted; others that tell of an end are passed over. */
bool pair_event(struct pair *p, enum rdma_cm_event_type wanted, struct rdma_cm_id **id);

int pair_send(struct pair *p, enum side from, uint64_t wr_id, enum ibv_wr_opcode op,
	      uint32_t offset, uint32_t length, int flags);
int pair_atomic(struct pair *p, enum side from, uint64_t wr_id, enum ibv_wr_opcode op,
		uint64_t compare_add, uint64_t swap);
int pair_recv(struct pair *p, enum side at, uint64_t wr_id, uint32_t offset, uint32_t length);

/* A completion that has to come, and to be a good one. */
bool completed(struct ibv_cq *cq, unsigned int count);

/* No two seeds make the same bytes. */
void fill(unsigned char *buf, uint32_t length, uint32_t seed);
bool is_filled(const unsigned char *buf, uint32_t length, uint32_t seed);

/* Of QPs whose CQs several threads poll: the one that polls it counts for its owner. */
void reap(struct ibv_cq *cq);

/* The index of the device, for netlink; -1 if it is not there. */
int device_index(void);

/* The status of a process that has not come as far as its activity. */
#define NEVER_BEGAN 3

/*
 * A process of its own that does an activity with these options, until it ends, crashes, or
 * its time is over and it is killed; then it has to be gone. False: it has not begun.
 */
bool live_and_die(const char *activity, const char *options, unsigned int with_seed,
		  double lifetime);

/* The same, with one seed after the other: most of them have to begin. */
bool live_often(const char *activity, const char *options, double lifetime);

/* Without any privilege from now on. */
void drop_privileges(void);

#endif
