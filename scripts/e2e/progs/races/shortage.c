// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory that cannot be allocated, one allocation at a time; the kernel has FAULT_INJECTION.
 *
 * Each call of libibverbs and librdmacm in turn, with the first, second, ... allocation that
 * it makes failing, until it makes no more: it answers that there is no memory, or does
 * without, and is no worse the next time. What workers and softirqs allocate on behalf of a
 * connection belongs to no call, so there a process of its own connects while some
 * allocation of the whole system fails, and what counts is that it ends.
 */
#define _GNU_SOURCE
#include "../proc.h"
#include "races.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define FAILSLAB "/sys/kernel/debug/failslab/"
#define FAIL_PAGE "/sys/kernel/debug/fail_page_alloc/"

/* --- the nth allocation of this thread -------------------------------------- */

static __thread int nth_fd = -1;
static __thread bool armed, hit;

static void write_nth(unsigned int nth)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", nth);

	CHECK(pwrite(nth_fd, text, length, 0) == length);
}

static void arm(unsigned int nth)
{
	if (nth_fd < 0)
		nth_fd = open("/proc/thread-self/fail-nth", O_RDWR);
	CHECK(nth_fd >= 0);
	hit = false;
	armed = true;
	write_nth(nth);
}

/* Has it failed? Asked again, the answer is the same. */
static bool disarm(void)
{
	char text[16] = "";
	int err = errno;

	if (armed) {
		CHECK(pread(nth_fd, text, sizeof(text) - 1, 0) > 0);
		write_nth(0);
		hit = !atoi(text);
		armed = false;
	}
	errno = err;
	return hit;
}

/* --- steps -------------------------------------------------------------------- */

/* A call that has made nothing says why. */
static bool made(const void *object)
{
	CHECK(object || errno == ENOMEM);
	return object;
}

/* A change that was refused says why, and the object is as it was. */
static void changed(int err)
{
	errno = err;
	CHECK(!err || err == ENOMEM);
}

/* An object that could not be destroyed is there, and can be the second time. */
#define END(call)                           \
	do {                                \
		errno = (call);             \
		if (errno == ENOMEM)        \
			errno = (call);     \
		CHECK(!errno);              \
	} while (0)

static void a_pd(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(home.context);

	if (made(pd))
		END(ibv_dealloc_pd(pd));
}

static void a_cq(void)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					   .moderate = { 4, 100 } };
	struct ibv_cq *cq = ibv_create_cq(home.context, 16, NULL, home.channel, 0);

	if (!made(cq))
		return;
	changed(ibv_resize_cq(cq, 1000));
	changed(ibv_req_notify_cq(cq, 0));
	changed(ibv_modify_cq(cq, &attr));
	END(ibv_destroy_cq(cq));
}

static void an_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 10, .max_sge = 2 } };
	struct ibv_srq_attr attr = { .max_wr = 1000 };
	struct ibv_srq *srq = ibv_create_srq(home.pd, &init);

	if (!made(srq))
		return;
	changed(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	changed(ibv_query_srq(srq, &attr));
	END(ibv_destroy_srq(srq));
}

static void a_qp(void)
{
	struct ibv_qp_init_attr init = { .cap = { 64, 64, 2, 2, 64 },
					 .qp_type = IBV_QPT_RC,
					 .send_cq = home.cq[0],
					 .recv_cq = home.cq[1] };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp *qp = ibv_create_qp(home.pd, &init);

	if (!made(qp))
		return;
	changed(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	changed(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	END(ibv_destroy_qp(qp));
}

static void an_mr(void)
{
	static unsigned char buf[64 << 10];
	struct ibv_mr *mr;

	memset(buf, 1, sizeof(buf));
	mr = ibv_reg_mr(home.pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	if (!made(mr))
		return;
	if (ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, buf, sizeof(buf) / 2, 0))
		changed(errno);
	END(ibv_dereg_mr(mr));
}

static void an_mw(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(home.pd, IBV_MW_TYPE_2);

	if (made(mw))
		END(ibv_dealloc_mw(mw));
}

static void a_channel(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(home.context);

	if (made(channel))
		END(ibv_destroy_comp_channel(channel));
}

static void a_context(void)
{
	struct ibv_context *context = ibv_open_device(home.context->device);
	struct ibv_port_attr port;

	/* Where a device cannot be opened, libibverbs looks for it at another place. */
	if (!context && errno == ENOENT)
		return;
	if (!made(context))
		return;
	changed(ibv_query_port(context, 1, &port));
	END(ibv_close_device(context));
}

/* Requests of every kind; the connection does not break for want of memory. */
static bool exchange(struct pair *p)
{
	TRY0(pair_recv(p, SERVER, 1, 0, 70000));
	TRY0(pair_send(p, CLIENT, 2, IBV_WR_SEND, 0, 70000, IBV_SEND_SIGNALED));
	TRY0(pair_send(p, CLIENT, 3, IBV_WR_RDMA_WRITE, 0, 300000, IBV_SEND_SIGNALED));
	TRY0(pair_send(p, CLIENT, 4, IBV_WR_RDMA_READ, 0, 300000, IBV_SEND_SIGNALED));
	TRY0(pair_atomic(p, CLIENT, 5, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0));
	return completed(p->send_cq, 5);
}

static bool disconnect(struct pair *p)
{
	TRY(!rdma_disconnect(p->id[CLIENT]));
	return pair_event(p, RDMA_CM_EVENT_DISCONNECTED, NULL);
}

static void a_connection_that(enum outcome outcome)
{
	struct pair p = { .pd = home.pd };

	p.send_cq = ibv_create_cq(home.context, DEPTH * 4, NULL, NULL, 0);
	p.recv_cq = p.send_cq;
	if (!made(p.send_cq))
		return;
	may_lack = true;
	if (pair_join(&p, outcome) && outcome == ACCEPTED && exchange(&p))
		disconnect(&p);
	may_lack = false;
	disarm();	/* what is destroyed with memory short has steps of its own */
	pair_part(&p);
	END(ibv_destroy_cq(p.send_cq));
}

static void a_connection(void)
{
	a_connection_that(ACCEPTED);
}

static void a_rejected_connection(void)
{
	a_connection_that(REJECTED);
}

#define PINS 4 /* the step that pins memory */

static const struct {
	const char *name;
	void (*act)(void);
} steps[] = {
	{ "a PD", a_pd },
	{ "a CQ", a_cq },
	{ "an SRQ", an_srq },
	{ "a QP", a_qp },
	[PINS] = { "an MR", an_mr },
	{ "a window", an_mw },
	{ "a channel", a_channel },
	{ "a context", a_context },
	{ "a connection", a_connection },
	{ "a rejected connection", a_rejected_connection },
};

#define STEPS (sizeof(steps) / sizeof(steps[0]))

/*
 * One allocation of one step, after which no more memory is pinned than before. When the step has
 * no more of them, it is begun again.
 */
static bool shortages(unsigned int turn)
{
	static unsigned int next[STEPS], longest[STEPS];
	/* Memory is pinned first, until each allocation for that has failed. */
	unsigned int i = longest[PINS] ? turn % STEPS : PINS;
	bool warm = next[i];
	long before = proc_pinned();

	snprintf(doing, sizeof(doing), "%s, allocation %u", steps[i].name, next[i]);
	if (warm)
		arm(next[i]);
	steps[i].act();
	next[i]++;
	if (warm && !disarm()) {
		if (!longest[i])
			printf("%s: %u allocations have failed in turn\n", steps[i].name,
			       next[i] - 2);
		longest[i] = next[i];
		next[i] = 1;
	}
	CHECK(before >= 0 && proc_pinned() == before);
	*doing = 0;
	return true;
}

/* --- an allocation of any task ------------------------------------------------- */

static void set(const char *directory, const char *name, unsigned int value)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", directory, name);
	f = fopen(path, "w");
	CHECK(f && fprintf(f, "%u", value) > 0 && !fclose(f));
}

/* Once, after so much more was allocated. */
static void fail_one(const char *directory, unsigned int after)
{
	set(directory, "space", after);
	set(directory, "times", 1);
	set(directory, "probability", 100);
}

static void fail_none(void)
{
	set(FAILSLAB, "probability", 0);
	set(FAIL_PAGE, "probability", 0);
}

/* A life of a connection; the process may end anywhere in it. */
static bool shot(void)
{
	struct pair p = { .pd = home.pd, .send_cq = home.cq[0], .recv_cq = home.cq[0] };

	if (draw() % 2)
		fail_one(FAILSLAB, draw() % 100000);
	else
		fail_one(FAIL_PAGE, draw() % 200);
	if (pair_join(&p, draw() % 8 ? ACCEPTED : REJECTED) && exchange(&p))
		disconnect(&p);
	fail_none();
	pair_part(&p);
	count_round();
	return true;
}

static bool shots(unsigned int nth)
{
	live_often("shot", "-x", 5);
	fail_none();
	return true;
}

const struct activity shortage_activities[] = {
	{ .name = "shortages", .round = shortages },
	{ .name = "shots", .round = shots },
	{ .name = "shot", .whole = shot },
	{},
};
