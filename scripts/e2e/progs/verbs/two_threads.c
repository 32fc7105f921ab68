// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Two threads that do the same to one object: they resize it past the library, or post to it.
 */
#include "verbs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "../../../../drivers/weft/uapi/weft-abi.h"

#define POSTS 8000		/* of a thread, to a queue that has space for those of two */

static struct end s2, c2;

static void by_two_threads(void *(*run)(void *), void *arg)
{
	pthread_t one, other;

	CHECK(!pthread_create(&one, NULL, run, arg));
	CHECK(!pthread_create(&other, NULL, run, arg));
	pthread_join(one, NULL);
	pthread_join(other, NULL);
}

/* --- resizing that the library does not keep apart ------------------------------------ */

#define WAITING 65536 /* entries that each resizing copies */
#define RESIZINGS 60

/* Returns where it is then. */
static struct weft_queue_map resize_cq_to_the_same(uint32_t handle)
{
	struct {
		struct ib_uverbs_resize_cq_resp core;
		struct weft_queue_map map;
		uint32_t spare[RAW_WORDS];
	} resp;
	const struct ib_uverbs_resize_cq cmd = { .response = (uintptr_t)&resp,
						 .cq_handle = handle,
						 .cqe = WAITING };

	CHECK(!raw_command(IB_USER_VERBS_CMD_RESIZE_CQ, &cmd, sizeof(cmd), "", 0));
	return resp.map;
}

static void *resize_the_cq(void *handle)
{
	for (int i = 0; i < RESIZINGS; i++)
		resize_cq_to_the_same(*(uint32_t *)handle);
	return NULL;
}

static void *resize_the_srq(void *handle)
{
	struct weft_queue_map map;
	const uint64_t to = (uintptr_t)&map;
	const struct ib_uverbs_modify_srq cmd = { .srq_handle = *(uint32_t *)handle,
						  .attr_mask = IBV_SRQ_MAX_WR,
						  .max_wr = WAITING };

	for (int i = 0; i < RESIZINGS; i++)
		CHECK(!raw_command(IB_USER_VERBS_CMD_MODIFY_SRQ, &cmd, sizeof(cmd), &to,
				   sizeof(to)));
	return NULL;
}

/* It is full, and each receive was flushed. */
static void all_are_flushed(struct weft_queue_map map, uint32_t qpn)
{
	unsigned char *ring = mmap(NULL, map.bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
				   s.id->verbs->cmd_fd, map.key);
	const struct weft_cqe *cqe = (void *)(ring + map.offset + WEFT_CTL_BYTES);

	CHECK(ring != MAP_FAILED && map.entries == WAITING && map.stride == sizeof(*cqe));
	for (int i = 0; i < WAITING; i++)
		CHECK(cqe[i].qp_num == qpn && cqe[i].status == IBV_WC_WR_FLUSH_ERR);
	CHECK(!munmap(ring, map.bytes));
}

/* The kernel copies what waits out of a ring that nothing else may free meanwhile. */
CASE("threads", a_cq_is_resized_by_two_threads)
{
	struct ibv_cq *cq = ibv_create_cq(s.id->verbs, WAITING, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.cap = { 1, WAITING, 1, 1, 0 }, .qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq
	};
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	unsigned long before = counted("wr_flushes");
	struct ibv_recv_wr *bad, wr = {};
	double end = now() + SECONDS;
	struct ibv_qp *qp;

	CHECK(cq);
	qp = ibv_create_qp(s.id->pd, &attr);
	CHECK(qp);
	for (int i = 0; i < WAITING; i++)
		CHECK(!ibv_post_recv(qp, &wr, &bad));
	CHECK(!ibv_modify_qp(qp, &error, IBV_QP_STATE));
	while (counted("wr_flushes") < before + WAITING)
		CHECK(now() < end);
	by_two_threads(resize_the_cq, &cq->handle);
	all_are_flushed(resize_cq_to_the_same(cq->handle), qp->qp_num);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
	works(&c, &s);
}

CASE("threads", an_srq_is_resized_by_two_threads)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = WAITING, .max_sge = 1 } };
	struct ibv_srq *full = ibv_create_srq(s.id->pd, &attr);
	struct ibv_recv_wr *bad, wr = {};

	CHECK(full);
	for (int i = 0; i < WAITING; i++)
		CHECK(!ibv_post_srq_recv(full, &wr, &bad));
	by_two_threads(resize_the_srq, &full->handle);
	CHECK(!ibv_destroy_srq(full));
	works(&c, &s);
}

/* --- posting, and a thread that posts to the same queue ------------------------------- */

static struct ibv_cq *large_cq;
static atomic_int posters;

static void with_large_queues(struct end *e)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = { 2 * POSTS, 2 * POSTS, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
		.pd = s.id->pd,
	};

	large_cq = ibv_create_cq(e->id->verbs, 4 * POSTS, NULL, NULL, 0);
	CHECK(large_cq);
	attr.send_cq = attr.recv_cq = large_cq;
	CHECK(!rdma_create_qp_ex(e->id, &attr));
}

/* The threads begin at the same time, on CPUs of their own. Returns the first number of this one. */
static int first_of_poster(void)
{
	int poster = posters++;

	stay_on(poster);
	while (posters < 2)
		;
	return poster * POSTS;
}

static void *post_receives(void *unused)
{
	int first = first_of_poster();

	for (int i = first; i < first + POSTS; i++) {
		struct ibv_recv_wr *bad, wr = { .wr_id = i };

		CHECK(!ibv_post_recv(s2.id->qp, &wr, &bad));
	}
	return unused;
}

static void *post_writes(void *unused)
{
	int first = first_of_poster();

	for (int i = first; i < first + POSTS; i++) {
		struct ibv_send_wr *bad, wr = { .wr_id = i, .opcode = IBV_WR_RDMA_WRITE };

		CHECK(!ibv_post_send(s2.id->qp, &wr, &bad));
	}
	return unused;
}

static void *build_writes(void *unused)
{
	struct ibv_qp_ex *qp_ex = ibv_qp_to_qp_ex(s2.id->qp);
	int first = first_of_poster();

	for (int i = first; i < first + POSTS; i++) {
		ibv_wr_start(qp_ex);
		qp_ex->wr_id = i;
		qp_ex->wr_flags = 0;
		ibv_wr_rdma_write(qp_ex, 0, 0);
		CHECK(!ibv_wr_complete(qp_ex));
	}
	return unused;
}

static void post_by_two_threads(void *(*post)(void *))
{
	posters = 0;
	by_two_threads(post, NULL);
}

static void each_completes_once(enum ibv_wc_status status)
{
	static unsigned char seen[2 * POSTS];

	memset(seen, 0, sizeof(seen));
	for (int i = 0; i < 2 * POSTS; i++) {
		struct ibv_wc wc = polled(large_cq);

		CHECK(wc.status == status && wc.wr_id < sizeof(seen) && !seen[wc.wr_id]++);
	}
	nothing(large_cq);
}

CASE("threads", posts_of_two_threads_exclude_each_other)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };

	connect_pair(&c2, &s2, with_large_queues);
	post_by_two_threads(post_writes);
	each_completes_once(IBV_WC_SUCCESS);
	post_by_two_threads(build_writes);
	each_completes_once(IBV_WC_SUCCESS);
	post_by_two_threads(post_receives);
	CHECK(!ibv_modify_qp(s2.id->qp, &error, IBV_QP_STATE));
	each_completes_once(IBV_WC_WR_FLUSH_ERR);
	release(&c2);
	release(&s2);
	CHECK(!ibv_destroy_cq(large_cq));
}
