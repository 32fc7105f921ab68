// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Two threads at the objects of one connection: one arms, polls or destroys while the
 * other resizes, posts or polls. Resizing that fails.
 */
#define _GNU_SOURCE
#include "../proc.h"
#include "verbs.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS 20
#define ARMINGS 30
#define LIST 9			/* requests of one post that are a stream */

static struct end s2, c2;
static struct ibv_cq *polled_cq;
static atomic_int stop;

static pthread_t begin(void *(*run)(void *))
{
	pthread_t thread;

	stop = 0;
	CHECK(!pthread_create(&thread, NULL, run, NULL));
	return thread;
}

static void end(pthread_t thread)
{
	stop = 1;
	pthread_join(thread, NULL);
}

/* Takes the CPU from the other thread there, also in the middle of a system call. */
static void *keep_getting_in_the_way(void *unused)
{
	double until;

	stay_on(1);
	while (!stop) {
		usleep(100);
		until = now() + 0.005;
		while (now() < until)
			;
	}
	return unused;
}

/* --- arming, and a queue that moves ------------------------------------------------ */

#define LARGE 200000

static void *keep_resizing(void *unused)
{
	for (int i = 0; !stop; i++)
		CHECK(!ibv_resize_cq(s.id->recv_cq, i % 2 ? 100 : LARGE));
	return unused;
}

/* Microseconds that it takes to make a queue a large one. */
static double time_to_resize(void)
{
	double began = now();

	CHECK(!ibv_resize_cq(s.id->recv_cq, LARGE));
	return (now() - began) * 1e6;
}

/*
 * Each arming brings the event, wherever the queue is by then. To map a large one takes a
 * while, in which the kernel has switched already. A poll waits until a resize is over, so what
 * follows it would come at the beginning of the next one each time.
 */
CASE("threads", arming_beside_resizing)
{
	double takes = time_to_resize();
	pthread_t thread = begin(keep_resizing);

	for (int i = 0; i < ARMINGS; i++) {
		usleep(takes * (i % 10) / 10);
		CHECK(!ibv_req_notify_cq(s.id->recv_cq, 0));
		CHECK(!recv_sge(&s, i, sge(s.own, 0, 8)));
		CHECK(!send_sge(&c, i, sge(c.own, 0, 8), 0));
		good(c.id->send_cq, 1);
		CHECK(event_within(s.id->recv_cq_channel, 5000));
		good(s.id->recv_cq, 1);
		printf("event %d came\n", i);
	}
	end(thread);
	works(&c, &s);
}

static struct ibv_cq_ex *amid_cq;
static struct ibv_qp *amid_qp;

/* A poll begins, at what a QP in error has flushed. */
static void begin_poll(struct ibv_pd *domain)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.comp_mask = domain ? IBV_CQ_INIT_ATTR_MASK_PD : 0,
		.parent_domain = domain,
	};
	struct ibv_poll_cq_attr poll = {};
	struct ibv_qp_init_attr qp = { .cap = { WRS, WRS, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_recv_wr *bad, wr = {};
	double end = now() + 10;
	int ret;

	amid_cq = ibv_create_cq_ex(s.id->verbs, &attr);
	CHECK(amid_cq);
	qp.send_cq = qp.recv_cq = ibv_cq_ex_to_cq(amid_cq);
	amid_qp = ibv_create_qp(s.id->pd, &qp);
	CHECK(amid_qp && !ibv_modify_qp(amid_qp, &error, IBV_QP_STATE));
	CHECK(!ibv_post_recv(amid_qp, &wr, &bad));
	/* The QP flushes by a worker. */
	while ((ret = ibv_start_poll(amid_cq, &poll)) == ENOENT && now() < end)
		usleep(1000);
	CHECK(!ret && amid_cq->status == IBV_WC_WR_FLUSH_ERR);
}

static void drop_polled(void)
{
	CHECK(!ibv_destroy_qp(amid_qp) && !ibv_destroy_cq(ibv_cq_ex_to_cq(amid_cq)));
}

/* An extended poll is under way, and the polling thread arms for an event. */
CASE("threads", arming_amid_a_poll)
{
	begin_poll(NULL);
	CHECK(!ibv_req_notify_cq(ibv_cq_ex_to_cq(amid_cq), 0));
	ibv_end_poll(amid_cq);
	drop_polled();
}

static void *poll_once(void *unused)
{
	CHECK(ibv_poll_cq(ibv_cq_ex_to_cq(amid_cq), 1, &(struct ibv_wc){}) == 0);
	stop = 1;
	return unused;
}

/* Without a thread domain, a parent domain promises nothing: one poll waits for another. */
CASE("threads", polls_in_a_parent_domain_exclude_each_other)
{
	struct ibv_parent_domain_init_attr attr = { .pd = s.id->pd };
	struct ibv_pd *parent = ibv_alloc_parent_domain(s.id->verbs, &attr);
	pthread_t thread;

	CHECK(parent);
	begin_poll(parent);
	thread = begin(poll_once);
	usleep(200000);
	CHECK(!stop);
	ibv_end_poll(amid_cq);
	pthread_join(thread, NULL);
	drop_polled();
	CHECK(!ibv_dealloc_pd(parent));
}

static long sleeps(void)
{
	struct rusage usage;

	CHECK(!getrusage(RUSAGE_THREAD, &usage));
	return usage.ru_nvcsw;
}

/* A large one takes the kernel a while to make. */
static void *resize_to_a_large_one(void *unused)
{
	for (int i = 0; i < 3; i++) {
		CHECK(!ibv_resize_cq(s.id->recv_cq, 300000));
		CHECK(!ibv_resize_cq(s.id->recv_cq, 100));
	}
	stop = 1;
	return unused;
}

CASE("threads", a_poll_that_waits_for_a_resize_sleeps)
{
	pthread_t thread = begin(resize_to_a_large_one);
	double longest = 0, took;
	long slept = 0, before;

	while (!stop) {
		before = sleeps();
		took = now();
		CHECK(ibv_poll_cq(s.id->recv_cq, 1, &(struct ibv_wc){}) == 0);
		took = now() - took;
		if (took > longest) {
			longest = took;
			slept = sleeps() - before;
		}
	}
	pthread_join(thread, NULL);
	printf("the longest poll took %.1f ms and slept %ld times\n", longest * 1e3, slept);
	CHECK(longest > 0.005 && slept > 2);
	works(&c, &s);
}

/* --- resizing that fails ------------------------------------------------------------ */

static void without_address_space(void (*run)(void))
{
	struct rlimit before, none;

	CHECK(!getrlimit(RLIMIT_AS, &before));
	none = before;
	none.rlim_cur = 4096;
	CHECK(!setrlimit(RLIMIT_AS, &none));
	run();
	CHECK(!setrlimit(RLIMIT_AS, &before));
}

static void resize_in_vain(void)
{
	CHECK(ibv_resize_cq(s.id->recv_cq, 1000) == ENOMEM);
}

/* A queue that cannot be mapped is not the kernel's either: the old one goes on. */
CASE("threads", cq_resize_too_small)
{
	int before = s.id->recv_cq->cqe;

	CHECK(!recv_sge(&s, 1, sge(s.own, 0, 8)));
	CHECK(!send_sge(&c, 1, sge(c.own, 0, 8), 0));
	expect(c.id->send_cq, 1, IBV_WC_SUCCESS);
	without_address_space(resize_in_vain);
	CHECK(s.id->recv_cq->cqe == before);
	expect(s.id->recv_cq, 1, IBV_WC_SUCCESS);
	works(&c, &s);
	CHECK(!ibv_resize_cq(s.id->recv_cq, 1000));
	works(&c, &s);
}

static struct ibv_srq *srq;

static void srq_resize_in_vain(void)
{
	struct ibv_srq_attr attr = { .max_wr = 1000 };

	CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == ENOMEM);
}

static void with_srq(struct end *e)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_qp_init_attr attr = { .cap = { WRS, WRS, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

	srq = attr.srq = ibv_create_srq(e->id->pd, &init);
	CHECK(srq && !rdma_create_qp(e->id, NULL, &attr));
}

static void one_message(uint64_t id)
{
	struct ibv_sge sg = sge(s2.own, 0, 8);
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = &sg, .num_sge = 1 };

	CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
	CHECK(!send_sge(&c2, id, sge(c2.own, 0, 8), 0));
	expect(c2.id->send_cq, id, IBV_WC_SUCCESS);
	expect(s2.id->recv_cq, id, IBV_WC_SUCCESS);
}

CASE("threads", srq_resize_too_small)
{
	struct ibv_srq_attr attr = { .max_wr = 1000 };

	connect_pair(&c2, &s2, with_srq);
	one_message(1);
	without_address_space(srq_resize_in_vain);
	one_message(2);
	CHECK(!ibv_query_srq(srq, &attr) && attr.max_wr == 8);
	attr.max_wr = 1000;
	CHECK(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	one_message(3);
	release(&c2);
	release(&s2);
	CHECK(!ibv_destroy_srq(srq));
}

static void *keep_resizing_srq(void *unused)
{
	for (int i = 0; !stop; i++) {
		struct ibv_srq_attr attr = { .max_wr = i % 2 ? 1000 : 30000 };

		CHECK(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	}
	return unused;
}

/* A receive is there wherever the queue is by then. */
CASE("threads", posting_beside_resizing)
{
	struct ibv_srq_attr attr = { .max_wr = 30000 };
	double began, takes;
	pthread_t thread;

	connect_pair(&c2, &s2, with_srq);
	began = now();
	CHECK(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	takes = (now() - began) * 1e6;
	thread = begin(keep_resizing_srq);
	for (int i = 0; i < ARMINGS; i++) {
		usleep(takes * (i % 10) / 10);
		one_message(i);
	}
	end(thread);
	release(&c2);
	release(&s2);
	CHECK(!ibv_destroy_srq(srq));
}

/* From now on this process can map none of the device's queues. */
static void map_no_more(void)
{
	struct sock_filter no_queue[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mmap, 0, 3),
		/* The lower half of the fifth argument, the file. */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[4])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, s.id->verbs->cmd_fd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {
		.len = sizeof(no_queue) / sizeof(no_queue[0]),
		.filter = no_queue,
	};

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/* The kernel has switched already: the queue must not look intact, or as if it were empty. */
CASE("threads", cq_whose_new_ring_cannot_be_mapped)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 8 };
	struct ibv_cq_ex *cq_ex = ibv_create_cq_ex(s.id->verbs, &init);
	struct ibv_wc wc;

	CHECK(cq_ex);
	works(&c, &s);
	map_no_more();
	CHECK(ibv_resize_cq(ibv_cq_ex_to_cq(cq_ex), 1000) == ENOMEM);
	CHECK(ibv_start_poll(cq_ex, &(struct ibv_poll_cq_attr){}) == EIO);
	CHECK(ibv_resize_cq(s.id->recv_cq, 1000) == ENOMEM);
	CHECK(ibv_poll_cq(s.id->recv_cq, 1, &wc) < 0);
	CHECK(ibv_poll_cq(c.id->send_cq, 1, &wc) == 0);
}

CASE("threads", srq_whose_new_ring_cannot_be_mapped)
{
	struct ibv_srq_attr attr = { .max_wr = 1000 };
	struct ibv_recv_wr *bad, wr = { .wr_id = 2 };

	connect_pair(&c2, &s2, with_srq);
	one_message(1);
	map_no_more();
	CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == ENOMEM);
	CHECK(ibv_post_srq_recv(srq, &wr, &bad) == EIO && bad == &wr);
	release(&c2);
	release(&s2);
	CHECK(!ibv_destroy_srq(srq));
}

/* What is new does not become an object of the kernel's alone. */
CASE("threads", new_queues_that_cannot_be_mapped)
{
	const int entries = 16384, tries = 64, spare = 8192; /* KiB; a queue has 512 or more */
	struct ibv_qp_init_attr init = { .cap = { entries, entries, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC,
					 .send_cq = s.id->send_cq,
					 .recv_cq = s.id->recv_cq };
	long before = proc_vmalloc_used();

	CHECK(before >= 0);
	map_no_more();
	for (int i = 0; i < tries; i++) {
		struct ibv_srq_init_attr shared = { .attr = { .max_wr = entries, .max_sge = 1 } };
		struct ibv_qp_init_attr attr = init;

		errno = 0;
		CHECK(!ibv_create_cq(s.id->verbs, entries, NULL, NULL, 0) && errno == ENOMEM);
		errno = 0;
		CHECK(!ibv_create_srq(s.id->pd, &shared) && errno == ENOMEM);
		errno = 0;
		CHECK(!ibv_create_qp(s.id->pd, &attr) && errno == ENOMEM);
	}
	printf("%ld KiB more\n", proc_vmalloc_used() - before);
	CHECK(proc_vmalloc_used() - before < spare);
	works(&c, &s);
}

/* --- destroying, and a thread that polls -------------------------------------------- */

/* Yields to keep_getting_in_the_way() wherever it is. */
static void *keep_polling(void *unused)
{
	struct sched_param param = {};

	stay_on(1);
	CHECK(!sched_setscheduler(0, SCHED_IDLE, &param));
	while (!stop)
		ibv_poll_cq(polled_cq, 1, &(struct ibv_wc){});
	return unused;
}

static void with_polled_cq(struct end *e)
{
	struct ibv_qp_init_attr attr = { .cap = { WRS, WRS, 2, 2, 64 }, .qp_type = IBV_QPT_RC };

	attr.send_cq = c.id->send_cq;
	attr.recv_cq = polled_cq;
	CHECK(!rdma_create_qp(e->id, NULL, &attr));
}

static void write_there(int id, size_t offset, uint32_t length, int flags)
{
	CHECK(!post(&c2, id, IBV_WR_RDMA_WRITE, sge(c2.own, offset, length),
		    (uintptr_t)s2.buf + offset, s2.open->rkey, flags));
}

/* Posts that go out when the other thread finds the CQ empty. The first one is seen to arrive. */
static void put_off_posts(void)
{
	for (int burst = 0; burst < 3; burst++) {
		for (int n = 1; n < WRS; n++)
			write_there(n, 0, 8, 0);
		write_there(WRS, 0, 8, IBV_SEND_SIGNALED);
		good(c.id->send_cq, 1);
	}
	c2.buf[BYTES] = 77;
	write_there(0, 0, 1, 0);
	for (int n = 1; n < WRS; n++)
		write_there(n, 1, BYTES - 1, 0);
	while (*(volatile unsigned char *)s2.buf != 77)
		;
}

/*
 * The thread that polls rings for a QP that it does not know, and which is destroyed. TCP takes
 * all at once, so a doorbell takes its time.
 */
CASE_WITH("threads", destroying_beside_polling,
	  "tcp_sndbuf=50000000 tcp_rcvbuf=50000000 sq_poll_interval_us=10000")
{
	pthread_t thread, other;
	int ret;

	polled_cq = ibv_create_cq(s.id->verbs, 64, NULL, NULL, 0);
	CHECK(polled_cq);
	stay_on(0);
	thread = begin(keep_polling);
	other = begin(keep_getting_in_the_way);
	for (int i = 0; i < ROUNDS; i++) {
		connect_pair(&s2, &c2, with_polled_cq);
		put_off_posts();
		ret = ibv_destroy_qp(c2.id->qp);
		printf("round %d: %s\n", i, strerror(ret));
		CHECK(!ret);
		c2.id->qp = NULL;
		release(&s2);
		release(&c2);
	}
	end(thread);
	end(other);
	CHECK(!ibv_destroy_cq(polled_cq));
}

/* --- posting, and a thread that is about to sleep ------------------------------------ */

static int post_list(uint64_t id)
{
	struct ibv_send_wr *bad, wr[LIST] = {};
	struct ibv_sge sg = sge(c.own, 0, 1);

	for (int i = 0; i < LIST; i++) {
		wr[i].wr_id = id;
		wr[i].opcode = IBV_WR_RDMA_WRITE;
		wr[i].sg_list = &sg;
		wr[i].num_sge = 1;
		wr[i].wr.rdma.remote_addr = (uintptr_t)s.buf;
		wr[i].wr.rdma.rkey = s.open->rkey;
		wr[i].next = i + 1 < LIST ? &wr[i + 1] : NULL;
	}
	wr[LIST - 1].send_flags = IBV_SEND_SIGNALED;
	return ibv_post_send(c.id->qp, wr, &bad);
}

/* The event of an arming before says nothing about the one that came after it. */
CASE("threads", arming_again_before_the_event)
{
	unsigned long rung;

	for (int i = 0; i < 20; i++) {
		CHECK(!post_list(i));
		good(c.id->send_cq, 1);
	}
	CHECK(!ibv_req_notify_cq(c.id->send_cq, 0));
	CHECK(!post_list(1));
	good(c.id->send_cq, 1);
	CHECK(!ibv_req_notify_cq(c.id->send_cq, 0));
	CHECK(event_within(c.id->send_cq_channel, 5000));
	rung = counted("tx_doorbells");
	for (int i = 1; i < WRS; i++) {
		c.buf[BYTES] = i;
		CHECK(!post(&c, i, IBV_WR_RDMA_WRITE, sge(c.own, 0, 1), (uintptr_t)s.buf,
			    s.open->rkey, i == WRS - 1 ? IBV_SEND_SIGNALED : 0));
		while (*(volatile unsigned char *)s.buf != i)
			;
	}
	rung = counted("tx_doorbells") - rung;
	printf("%lu doorbells for %d posts\n", rung, WRS - 1);
	CHECK(rung > WRS / 2);
	CHECK(event_within(c.id->send_cq_channel, 5000));
	good(c.id->send_cq, 1);
}
