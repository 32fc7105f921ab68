// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Two threads call on one object: every pair of calls that libibverbs allows, one after the
 * other. A third thread keeps the object busy. After each pair the connection works, and a
 * completion is told of.
 */
#include "races.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#define CREDITS 24	/* receives and requests under way; half of what the queues hold */
#define MESSAGE 512

struct call {
	const char *name;
	bool (*run)(unsigned int nth);
};

static struct pair p;
static struct ibv_cq_ex *cq;
static struct ibv_comp_channel *channel;
static struct ibv_mr *region;
static struct ibv_pd *domain;
static unsigned char region_bytes[16384] __attribute__((aligned(4096)));

/* Receives that wait for a Send; requests whose completions have not been polled. */
static int receives, under_way;
static double slice_end;

static bool take(int *counter)
{
	if (__atomic_sub_fetch(counter, 1, __ATOMIC_ACQ_REL) >= 0)
		return true;
	__atomic_add_fetch(counter, 1, __ATOMIC_ACQ_REL);
	return false;
}

/* One more, of which there may be @most. */
static bool add(int *counter, int most)
{
	if (__atomic_add_fetch(counter, 1, __ATOMIC_ACQ_REL) <= most)
		return true;
	__atomic_sub_fetch(counter, 1, __ATOMIC_ACQ_REL);
	return false;
}

static void polled(unsigned int completions)
{
	__atomic_sub_fetch(&under_way, completions, __ATOMIC_ACQ_REL);
}

static bool good(enum ibv_wc_status status)
{
	if (status != IBV_WC_SUCCESS)
		printf("%s\n", ibv_wc_status_str(status));
	errno = EIO;
	TRY(status == IBV_WC_SUCCESS);
	return true;
}

/* --- what the calls have to do with --------------------------------------- */

/* A Send may take the receive once it is posted. */
static bool post_receive(unsigned int nth)
{
	if (!add(&under_way, 2 * CREDITS))
		return true;
	if (__atomic_load_n(&receives, __ATOMIC_ACQUIRE) >= CREDITS) {
		polled(1);
		return true;
	}
	TRY0(pair_recv(&p, SERVER, nth, 0, MESSAGE));
	__atomic_add_fetch(&receives, 1, __ATOMIC_ACQ_REL);
	return true;
}

/* The answer to a post: a queue that is full, of what other threads have posted, is none. */
static bool posted(int err)
{
	if (err == ENOMEM)
		polled(1);
	errno = err;
	TRY(!err || err == ENOMEM);
	return true;
}

static bool post_send(unsigned int nth)
{
	int err;

	if (!add(&under_way, 2 * CREDITS))
		return true;
	if (!take(&receives)) {
		polled(1);
		return true;
	}
	err = pair_send(&p, CLIENT, nth, IBV_WR_SEND, 0, MESSAGE, IBV_SEND_SIGNALED);
	if (err == ENOMEM)
		__atomic_add_fetch(&receives, 1, __ATOMIC_ACQ_REL);
	return posted(err);
}

static bool post_writes(unsigned int nth)
{
	struct ibv_sge sge = { (uintptr_t)p.buf[CLIENT], MESSAGE, p.mr[CLIENT]->lkey };
	struct ibv_send_wr *bad, wr[3] = {};

	if (!add(&under_way, 2 * CREDITS))
		return true;
	for (int i = 0; i < 3; i++) {
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
		wr[i].opcode = nth % 4 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
		wr[i].sg_list = &sge;
		wr[i].num_sge = 1;
		wr[i].send_flags = i == 2 ? IBV_SEND_SIGNALED : 0;
		wr[i].wr.rdma.remote_addr = (uintptr_t)p.buf[SERVER] + 65536;
		wr[i].wr.rdma.rkey = p.mr[SERVER]->rkey;
	}
	return posted(ibv_post_send(p.id[CLIENT]->qp, wr, &bad));
}

static bool build_write(unsigned int nth)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(p.id[CLIENT]->qp);

	if (!add(&under_way, 2 * CREDITS))
		return true;
	ibv_wr_start(qp);
	qp->wr_id = nth;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qp, p.mr[SERVER]->rkey, (uintptr_t)p.buf[SERVER] + 65536);
	ibv_wr_set_sge(qp, p.mr[CLIENT]->lkey, (uintptr_t)p.buf[CLIENT], MESSAGE);
	return posted(ibv_wr_complete(qp));
}

static bool poll_cq(unsigned int nth)
{
	struct ibv_wc wc[8];
	int n = ibv_poll_cq(ibv_cq_ex_to_cq(cq), 8, wc);

	errno = EIO;
	TRY(n >= 0);
	polled(n);
	for (int i = 0; i < n; i++)
		if (!good(wc[i].status))
			return false;
	return true;
}

static bool poll_extended(unsigned int nth)
{
	struct ibv_poll_cq_attr attr = {};
	int err = ibv_start_poll(cq, &attr);
	enum ibv_wc_status status;
	int n = 0;

	errno = err;
	TRY(!err || err == ENOENT);
	if (err)
		return true;
	do {
		status = cq->status;
		ibv_wc_read_qp_num(cq);
		polled(1);
	} while (status == IBV_WC_SUCCESS && ++n < 4 && !ibv_next_poll(cq));
	ibv_end_poll(cq);
	return good(status);
}

static bool arm(unsigned int nth)
{
	TRY0(ibv_req_notify_cq(ibv_cq_ex_to_cq(cq), 0));
	return true;
}

static bool arm_solicited(unsigned int nth)
{
	TRY0(ibv_req_notify_cq(ibv_cq_ex_to_cq(cq), 1));
	return true;
}

static bool resize_cq(unsigned int nth)
{
	TRY0(ibv_resize_cq(ibv_cq_ex_to_cq(cq), nth % 2 ? 256 : 1024));
	return true;
}

static bool moderate(unsigned int nth)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					   .moderate = { nth % 5, nth % 5 * 50 } };

	TRY0(ibv_modify_cq(ibv_cq_ex_to_cq(cq), &attr));
	return true;
}

static bool get_event(unsigned int nth)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *from;
	void *context;

	if (poll(&fd, 1, 0) == 1 && !ibv_get_cq_event(channel, &from, &context))
		ibv_ack_cq_events(from, 1);
	return true;
}

static bool qp_on_cq(unsigned int nth)
{
	struct ibv_qp_init_attr attr = { .cap = { 16, 16, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC,
					 .send_cq = ibv_cq_ex_to_cq(cq),
					 .recv_cq = ibv_cq_ex_to_cq(cq),
					 .srq = p.srq };
	struct ibv_qp *qp = ibv_create_qp(p.pd, &attr);

	TRY(qp);
	TRY0(ibv_destroy_qp(qp));
	return true;
}

static bool cq_on_channel(unsigned int nth)
{
	struct ibv_cq *other = ibv_create_cq(home.context, 16, NULL, channel, 0);

	TRY(other);
	TRY0(ibv_req_notify_cq(other, 0));
	TRY0(ibv_destroy_cq(other));
	return true;
}

static bool query_qp(unsigned int nth)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	TRY0(ibv_query_qp(p.id[CLIENT]->qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init));
	return true;
}

static bool modify_qp(unsigned int nth)
{
	struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						       IBV_ACCESS_REMOTE_READ |
						       IBV_ACCESS_REMOTE_ATOMIC };

	TRY0(ibv_modify_qp(p.id[CLIENT]->qp, &attr, IBV_QP_ACCESS_FLAGS));
	return true;
}

static bool limit_srq(unsigned int nth)
{
	struct ibv_srq_attr attr = { .srq_limit = nth % 8 };

	TRY0(ibv_modify_srq(p.srq, &attr, IBV_SRQ_LIMIT));
	return true;
}

static bool resize_srq(unsigned int nth)
{
	struct ibv_srq_attr attr = { .max_wr = nth % 2 ? 64 : 256 };

	TRY0(ibv_modify_srq(p.srq, &attr, IBV_SRQ_MAX_WR));
	return true;
}

static bool query_srq(unsigned int nth)
{
	struct ibv_srq_attr attr;

	TRY0(ibv_query_srq(p.srq, &attr));
	return true;
}

/* The core serves one at a time, and refuses another one at once. */
static bool reregister(int what, struct ibv_pd *pd, size_t length, int access)
{
	int ret = ibv_rereg_mr(region, what, pd, length ? region_bytes : NULL, length, access);

	TRY(!ret || errno == EBUSY);
	return true;
}

static bool rereg_access(unsigned int nth)
{
	return reregister(IBV_REREG_MR_CHANGE_ACCESS, NULL, 0,
			  nth % 2 ? IBV_ACCESS_LOCAL_WRITE : 0);
}

static bool rereg_translation(unsigned int nth)
{
	return reregister(IBV_REREG_MR_CHANGE_TRANSLATION, NULL, 4096 << nth % 3, 0);
}

static bool rereg_domain(unsigned int nth)
{
	return reregister(IBV_REREG_MR_CHANGE_PD, nth % 2 ? domain : home.pd, 0, 0);
}

static bool advise(unsigned int nth)
{
	struct ibv_sge sge = { (uintptr_t)region_bytes, 4096, region->lkey };
	int err = ibv_advise_mr(home.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1);

	errno = err;
	TRY(!err || err == EOPNOTSUPP || err == EINVAL || err == ENOENT);
	return true;
}

static bool register_other(unsigned int nth)
{
	struct ibv_mr *other = ibv_reg_mr(home.pd, region_bytes, sizeof(region_bytes), 0);

	TRY(other);
	TRY0(ibv_dereg_mr(other));
	return true;
}

static const struct call cq_calls[] = {
	{ "ibv_poll_cq", poll_cq },
	{ "ibv_start_poll", poll_extended },
	{ "ibv_req_notify_cq", arm },
	{ "ibv_req_notify_cq, solicited", arm_solicited },
	{ "ibv_resize_cq", resize_cq },
	{ "ibv_modify_cq", moderate },
	{ "ibv_get_cq_event", get_event },
	{ "a QP made and destroyed", qp_on_cq },
	{},
};

static const struct call qp_calls[] = {
	{ "ibv_post_send", post_send },	   { "ibv_post_send of a list", post_writes },
	{ "ibv_wr_start", build_write },   { "ibv_post_recv", post_receive },
	{ "ibv_query_qp", query_qp },	   { "ibv_modify_qp", modify_qp },
	{ "ibv_req_notify_cq", arm },	 {},
};

static const struct call srq_calls[] = {
	{ "ibv_post_srq_recv", post_receive }, { "ibv_modify_srq, limit", limit_srq },
	{ "ibv_modify_srq, size", resize_srq }, { "ibv_query_srq", query_srq },
	{ "a QP made and destroyed", qp_on_cq }, {},
};

static const struct call mr_calls[] = {
	{ "ibv_rereg_mr, access", rereg_access },
	{ "ibv_rereg_mr, translation", rereg_translation },
	{ "ibv_rereg_mr, domain", rereg_domain },
	{ "ibv_advise_mr", advise },
	{ "ibv_reg_mr of the same memory", register_other },
	{},
};

static const struct call channel_calls[] = {
	{ "ibv_get_cq_event", get_event },
	{ "ibv_req_notify_cq", arm },
	{ "a CQ made and destroyed", cq_on_channel },
	{},
};

/* --- how a pair is run ------------------------------------------------------ */

static bool make_cq(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 256, .wc_flags = IBV_WC_EX_WITH_QP_NUM };

	channel = ibv_create_comp_channel(home.context);
	TRY(channel);
	CHECK(!fcntl(channel->fd, F_SETFL, O_NONBLOCK));
	attr.channel = channel;
	cq = ibv_create_cq_ex(home.context, &attr);
	TRY(cq);
	p.send_cq = ibv_cq_ex_to_cq(cq);
	p.recv_cq = p.send_cq;
	return true;
}

static bool set_up(bool with_srq)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 64, .max_sge = 2 } };

	p = (struct pair){ .pd = home.pd, .extended = true };
	if (!make_cq())
		return false;
	if (with_srq) {
		p.srq = ibv_create_srq(home.pd, &srq);
		TRY(p.srq);
	}
	domain = ibv_alloc_pd(home.context);
	TRY(domain);
	region = ibv_reg_mr(home.pd, region_bytes, sizeof(region_bytes), 0);
	TRY(region);
	receives = 0;
	under_way = 0;
	return pair_join(&p, ACCEPTED);
}

static bool tear_down(void)
{
	if (!pair_part(&p))
		return false;
	if (p.srq)
		TRY0(ibv_destroy_srq(p.srq));
	TRY0(ibv_dereg_mr(region));
	TRY0(ibv_dealloc_pd(domain));
	TRY0(ibv_destroy_cq(p.send_cq));
	TRY0(ibv_destroy_comp_channel(channel));
	return true;
}

static void *call(void *arg)
{
	const struct call *c = arg;

	for (unsigned int nth = 0; now() < slice_end; nth++) {
		if (!c->run(nth))
			_exit(0);
		if (nth % 32 == 0)
			sched_yield();
	}
	return NULL;
}

static bool feed(unsigned int nth)
{
	return post_receive(nth) && post_send(nth) && (nth % 4 || poll_cq(nth));
}

static const struct call feeder = { "a stream of Sends", feed };

/* All that was posted completes, within a deadline. */
static bool drain(void)
{
	double limit = now() + step_timeout();

	while (receives || under_way) {
		if (!post_send(0) || !poll_cq(0))
			return false;
		errno = ETIMEDOUT;
		TRY(now() < limit);
	}
	return true;
}

static bool event_comes(void)
{
	double limit = now() + step_timeout();
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE };
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };

	TRY0(ibv_modify_cq(p.send_cq, &attr));
	while (poll(&fd, 1, 0) == 1)
		get_event(0);
	if (!arm(0) || !poll_cq(0) || !post_receive(0) || !post_send(0))
		return false;
	errno = ETIMEDOUT;
	TRY(poll(&fd, 1, (limit - now()) * 1000) == 1);
	get_event(0);
	return drain();
}

/* Data come over as before, into the resized, rearmed, shared queues. */
static bool message_comes(void)
{
	static uint32_t turn;

	fill(p.buf[CLIENT], MESSAGE, ++turn);
	if (!post_receive(0) || !post_send(0) || !drain())
		return false;
	errno = EILSEQ;
	TRY(is_filled(p.buf[SERVER], MESSAGE, turn));
	return true;
}

static bool run_pair(const struct call *a, const struct call *b, double slice)
{
	const struct call *calls[] = { a, b, &feeder };
	pthread_t thread[3];

	snprintf(doing, sizeof(doing), "%s beside %s", a->name, b->name);
	slice_end = now() + slice;
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_create(&thread[i], NULL, call, (void *)calls[i]));
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	return drain() && event_comes() && message_comes();
}

static bool all_pairs(const struct call *calls, bool with_srq)
{
	unsigned int count = 0;
	double slice;

	while (calls[count].name)
		count++;
	slice = (double)seconds / (count * (count + 1) / 2);
	if (!set_up(with_srq))
		return false;
	for (unsigned int i = 0; i < count; i++) {
		for (unsigned int k = i; k < count; k++) {
			if (!run_pair(&calls[i], &calls[k], slice))
				return false;
			count_round();
		}
	}
	return tear_down();
}

static bool calls_on_cq(void)
{
	return all_pairs(cq_calls, false);
}

static bool calls_on_qp(void)
{
	return all_pairs(qp_calls, false);
}

static bool calls_on_srq(void)
{
	return all_pairs(srq_calls, true);
}

static bool calls_on_mr(void)
{
	return all_pairs(mr_calls, false);
}

static bool calls_on_channel(void)
{
	return all_pairs(channel_calls, false);
}

const struct activity call_activities[] = {
	{ .name = "calls_on_cq", .whole = calls_on_cq },
	{ .name = "calls_on_qp", .whole = calls_on_qp },
	{ .name = "calls_on_srq", .whole = calls_on_srq },
	{ .name = "calls_on_mr", .whole = calls_on_mr },
	{ .name = "calls_on_channel", .whole = calls_on_channel },
	{},
};
