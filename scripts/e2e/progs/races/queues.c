// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The two CQs of home, shared by QPs that come and go: several threads poll, arm, resize
 * and moderate them. The thread that polls a completion counts it for the one that posted.
 */
#include "races.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>

#define SLOTS 16
#define WRITES 16
#define SENDS 12

/* A wr_id is a slot and the number of its QP: late completions of an earlier one do not count. */
static struct slot {
	uint64_t number;
	unsigned int done;
} slot[SLOTS];

static unsigned int slots_taken;

static uint64_t id_of(unsigned int i)
{
	return __atomic_load_n(&slot[i].number, __ATOMIC_ACQUIRE) * SLOTS + i;
}

void reap(struct ibv_cq *cq)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(cq, 16, wc);

	errno = EIO;
	if (n < 0 && failed(__FILE__, __LINE__, "ibv_poll_cq"))
		return;
	for (int i = 0; i < n; i++) {
		unsigned int at = wc[i].wr_id % SLOTS;

		if (wc[i].wr_id != id_of(at))
			continue;
		if (wc[i].status != IBV_WC_SUCCESS)
			printf("%s\n", ibv_wc_status_str(wc[i].status));
		if (wc[i].status == IBV_WC_SUCCESS || failed(__FILE__, __LINE__, "a request"))
			__atomic_fetch_add(&slot[at].done, 1, __ATOMIC_RELEASE);
	}
}

/*
 * So many in one call that the process counts as streaming: doorbells are deferred until a
 * thread finds the CQ empty, which then sends what this one has posted.
 */
static bool post_list(struct pair *p, uint64_t id, enum ibv_wr_opcode op, int count,
		      uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)p->buf[CLIENT], length, p->mr[CLIENT]->lkey };
	struct ibv_send_wr *bad, wr[WRITES + SENDS] = {};

	for (int i = 0; i < count; i++) {
		wr[i].next = i < count - 1 ? &wr[i + 1] : NULL;
		wr[i].wr_id = id;
		wr[i].opcode = op;
		wr[i].sg_list = &sge;
		wr[i].num_sge = 1;
		wr[i].send_flags = op == IBV_WR_SEND || i == count - 1 ? IBV_SEND_SIGNALED : 0;
		wr[i].wr.rdma.remote_addr = (uintptr_t)p->buf[SERVER];
		wr[i].wr.rdma.rkey = p->mr[SERVER]->rkey;
	}
	TRY0(ibv_post_send(p->id[CLIENT]->qp, wr, &bad));
	return true;
}

static bool post_stream(struct pair *p, uint64_t id, uint32_t length)
{
	for (int i = 0; i < SENDS; i++)
		TRY0(pair_recv(p, SERVER, id, 0, length));
	return post_list(p, id, IBV_WR_RDMA_WRITE, WRITES, 64) &&
	       post_list(p, id, IBV_WR_SEND, SENDS, length);
}

/* The receives are left to other threads for a while. */
static bool wait_for(unsigned int at, unsigned int count)
{
	double limit = now() + step_timeout(), alone = now() + 0.02;

	while (__atomic_load_n(&slot[at].done, __ATOMIC_ACQUIRE) < count) {
		reap(home.cq[0]);
		if (now() > alone)
			reap(home.cq[1]);
		errno = ETIMEDOUT;
		TRY(now() < limit);
	}
	return true;
}

/*
 * A QP that is no longer used is destroyed while other threads poll its CQs. That must not
 * fail: they know nothing of it.
 */
static bool streams(unsigned int nth)
{
	static __thread unsigned int mine;
	static __thread bool has_slot;
	struct pair p = { .pd = home.pd, .send_cq = home.cq[0], .recv_cq = home.cq[1] };

	if (!has_slot) {
		mine = __atomic_fetch_add(&slots_taken, 1, __ATOMIC_RELAXED);
		CHECK(mine < SLOTS);
		has_slot = true;
	}
	__atomic_add_fetch(&slot[mine].number, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&slot[mine].done, 0, __ATOMIC_RELEASE);
	if (!pair_join(&p, ACCEPTED))
		return false;
	if (!post_stream(&p, id_of(mine), nth % 2 ? 4096 : 256 << 10))
		return false;
	if (nth % 3 && !wait_for(mine, 2 * SENDS + 1))
		return false;
	/* What is flushed from now on counts no more. */
	__atomic_add_fetch(&slot[mine].number, 1, __ATOMIC_RELEASE);
	return pair_part(&p);
}

static bool polls(unsigned int nth)
{
	reap(home.cq[nth % 2]);
	if (nth % 64 == 0)
		sched_yield();
	return true;
}

/* An event that another thread has taken is none for us. */
static bool arms(unsigned int nth)
{
	struct pollfd fd = { .fd = home.channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	CHECK(nth || !fcntl(fd.fd, F_SETFL, O_NONBLOCK));
	TRY0(ibv_req_notify_cq(home.cq[nth % 2], nth / 2 % 2));
	reap(home.cq[nth % 2]);
	if (poll(&fd, 1, nth % 8 ? 0 : 1) == 1 && !ibv_get_cq_event(home.channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	return true;
}

static bool resizes(unsigned int nth)
{
	TRY0(ibv_resize_cq(home.cq[nth % 2], nth / 2 % 2 ? 4096 : 8192));
	return true;
}

static bool moderates(unsigned int nth)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = nth % 17, .cq_period = nth % 5 * 20 },
	};

	TRY0(ibv_modify_cq(home.cq[nth % 2], &attr));
	sched_yield();
	return true;
}

const struct activity queue_activities[] = {
	{ .name = "streams", .round = streams },     { .name = "polls", .round = polls },
	{ .name = "arms", .round = arms },	     { .name = "resizes", .round = resizes },
	{ .name = "moderates", .round = moderates }, {},
};
