// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Processes that fork with a device open: a daemon goes on in the child, and the exit of a child
 * does no harm. Processes that drop their privileges.
 */
#define _GNU_SOURCE
#include "verbs.h"

#include <grp.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT 7571
#define CHILDREN 120
#define UNPRIVILEGED 65534
#define TRANSLATION IBV_REREG_MR_CHANGE_TRANSLATION

static struct end c2, s2;

/* --- daemons ------------------------------------------------------------------------ */

/* The program runs in another process, which ends; so does what it leaves behind. */
void daemon_ends_well(const char *name)
{
	CHECK(!prctl(PR_SET_CHILD_SUBREAPER, 1));
	ends_well(start_case(name, PORT));
	alarm(60);
	ends_well(-1);
	alarm(0);
}

/* rdma_cm does not serve a child through its parent's channel; through its own it does. */
static void move_to_own_channel(struct rdma_cm_id *id)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	CHECK(channel && !rdma_migrate_id(id, channel));
	/* And back to one that does without. */
	CHECK(!rdma_migrate_id(id, NULL));
	rdma_destroy_event_channel(channel);
}

/* As daemon() does it. */
void become_a_daemon(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid)
		_exit(0);
	CHECK(setsid() >= 0);
}

static void register_again(struct end *e)
{
	struct ibv_mr was = *e->open;

	CHECK(!ibv_rereg_mr(e->open, TRANSLATION, NULL, e->buf, BYTES, 0));
	CHECK(!ibv_rereg_mr(e->own, TRANSLATION, NULL, e->buf + BYTES, BYTES, 0));
	CHECK(e->open->lkey == was.lkey && e->open->rkey == was.rkey);
}

static void writes_and_reads(void)
{
	for (int i = 0; i < 200; i++) {
		fill(&c, i);
		CHECK(!post(&c, 1, IBV_WR_RDMA_WRITE, sge(c.own, 0, 5000), (uintptr_t)s.buf,
			    s.open->rkey, 0));
		CHECK(!post(&c, 2, IBV_WR_RDMA_READ, sge(c.own, 10000, 5000), (uintptr_t)s.buf,
			    s.open->rkey, IBV_SEND_SIGNALED));
		good(c.id->send_cq, 1);
		CHECK(!memcmp(c.buf + BYTES, s.buf, 5000));
		CHECK(!memcmp(c.buf + BYTES + 10000, s.buf, 5000));
	}
}

static void an_event_comes(void)
{
	CHECK(!ibv_req_notify_cq(s.id->recv_cq, 0));
	CHECK(!recv_sge(&s, 1, sge(s.own, 0, 8)));
	CHECK(!send_sge(&c, 1, sge(c.own, 0, 8), 0));
	CHECK(event_within(s.id->recv_cq_channel, 5000));
	good(s.id->recv_cq, 1);
	good(c.id->send_cq, 1);
}

/* The device is the daemon's by now, and not its children's as well. */
static void may_not_modify(void)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };

	CHECK(ibv_modify_qp(s.id->qp, &error, IBV_QP_STATE) == EPERM);
}

/* The server's memory is the parent's: each element counts, but for those without bytes. */
static void only_what_is_seen(void)
{
	struct ibv_sge list[2] = { sge(c.own, 0, 8), sge(s.own, 0, 8) };
	struct ibv_send_wr *bad, wr = { .wr_id = 4,
					.opcode = IBV_WR_RDMA_WRITE,
					.sg_list = list,
					.num_sge = 2,
					.send_flags = IBV_SEND_SIGNALED };

	wr.wr.rdma.remote_addr = (uintptr_t)s.buf;
	wr.wr.rdma.rkey = s.open->rkey;
	CHECK(ibv_post_send(c.id->qp, &wr, &bad) == EFAULT && bad == &wr);
	list[1].length = 0;
	CHECK(!ibv_post_send(c.id->qp, &wr, &bad));
	expect(c.id->send_cq, 4, IBV_WC_SUCCESS);
}

/* What was posted by the parent comes to the child's memory once that is registered. */
UNLISTED(goes_on_as_a_daemon)
{
	CHECK(!recv_sge(&s, 5, sge(s.own, 100, 8)));
	become_a_daemon();
	/* This memory is a copy, which the device does not see. */
	CHECK(send_sge(&c, 1, sge(c.own, 0, 8), 0) == EFAULT);
	CHECK(recv_sge(&s, 1, sge(s.own, 0, 8)) == EFAULT);
	/* Nor does it after a call that has failed. */
	CHECK(ibv_rereg_mr(c.own, TRANSLATION, NULL, (void *)4096, BYTES, 0));
	CHECK(send_sge(&c, 1, sge(c.own, 0, 8), 0) == EFAULT);
	register_again(&c);
	only_what_is_seen();
	register_again(&s);
	fill(&c, 3);
	CHECK(!send_sge(&c, 6, sge(c.own, 0, 8), 0));
	expect(c.id->send_cq, 6, IBV_WC_SUCCESS);
	expect(s.id->recv_cq, 5, IBV_WC_SUCCESS);
	CHECK(!memcmp(s.buf + BYTES + 100, c.buf + BYTES, 8));
	works(&c, &s);
	writes_and_reads();
	an_event_comes();
	CHECK(!ibv_resize_cq(s.id->recv_cq, 500));
	works(&c, &s);
	move_to_own_channel(the_listener());
	connect_pair(&c2, &s2, NULL);
	works(&c2, &s2);
	ends_well(child(may_not_modify));
	works(&c, &s);
	release(&c2);
	release(&s2);
}

CASE("processes", a_daemon_goes_on)
{
	daemon_ends_well("goes_on_as_a_daemon");
}

/* The daemon's first call is made while its parent is about to end: it waits for that. */
UNLISTED(goes_on_beside_a_parent_that_ends)
{
	int begins[2];
	char byte;
	pid_t pid;

	CHECK(!pipe(begins));
	pid = fork();
	CHECK(pid >= 0);
	if (pid) {
		CHECK(read(begins[0], &byte, 1) == 1);
		usleep(200000);
		_exit(0);
	}
	CHECK(setsid() >= 0);
	CHECK(write(begins[1], "", 1) == 1);
	register_again(&c);
	register_again(&s);
	works(&c, &s);
}

CASE("processes", a_daemon_waits_for_its_parent_to_end)
{
	daemon_ends_well("goes_on_beside_a_parent_that_ends");
}

void share(struct end *e)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	CHECK(!ibv_dereg_mr(e->open) && !ibv_dereg_mr(e->own));
	munmap(e->buf, 2 * BYTES);
	e->buf = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(e->buf != MAP_FAILED);
	e->open = ibv_reg_mr(e->id->pd, e->buf, BYTES, access);
	e->own = ibv_reg_mr(e->id->pd, e->buf + BYTES, BYTES, access);
	CHECK(e->open && e->own);
}

static void may_not_send(void)
{
	CHECK(send_sge(&c, 1, sge(c.own, 0, 8), 0) == EFAULT);
}

/* Nothing to do for what is shared; what it was when it was shared says nothing afterwards. */
UNLISTED(goes_on_with_shared_memory)
{
	const int access = PROT_READ | PROT_WRITE;
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;

	share(&c);
	share(&s);
	become_a_daemon();
	works(&c, &s);
	writes_and_reads();
	an_event_comes();
	CHECK(mmap(c.buf, 2 * BYTES, access, flags, -1, 0) == c.buf);
	register_again(&c);
	works(&c, &s);
	ends_well(child(may_not_send));
	works(&c, &s);
}

CASE("processes", a_daemon_with_shared_memory_goes_on)
{
	daemon_ends_well("goes_on_with_shared_memory");
}

UNLISTED(accepts_as_a_daemon)
{
	struct rdma_cm_id *id;

	become_a_daemon();
	errno = 0;
	CHECK(rdma_get_request(the_listener(), &id) && errno == EACCES);
	move_to_own_channel(the_listener());
	connect_pair(&c2, &s2, NULL);
	works(&c2, &s2);
	CHECK(!rdma_disconnect(c2.id));
	flushes(&s2);
	release(&c2);
	release(&s2);
}

CASE("processes", a_daemon_accepts)
{
	daemon_ends_well("accepts_as_a_daemon");
}

#define LEAVERS 100

static struct ibv_pd *left_behind;

static void opens_the_device(void)
{
	struct ibv_context *context = ibv_open_device(s.id->verbs->device);

	CHECK(context && (left_behind = ibv_alloc_pd(context)));
}

/* The device is its own from here on. */
static void outlives_its_parent(void)
{
	pid_t parent = getpid();

	become_a_daemon();
	while (getppid() == parent)
		usleep(100);
	CHECK(!ibv_dealloc_pd(left_behind));
}

static void opens_and_leaves(void)
{
	opens_the_device();
	outlives_its_parent();
}

#define TABLES 16
#define OF_A_TABLE (2UL << 20) /* bytes */

/*
 * Paged memory refers to the address space that it is of, also while tables are taken away that
 * became empty, here many at once.
 */
static void advises_and_leaves(void)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND;
	const size_t bytes = TABLES * OF_A_TABLE;
	struct ibv_sge sg[TABLES];
	struct ibv_mr *mr;
	char *area;

	opens_the_device();
	area = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(area != MAP_FAILED);
	madvise(area, bytes, MADV_NOHUGEPAGE);
	mr = ibv_reg_mr(left_behind, area, bytes, access);
	if (!mr && errno == EOPNOTSUPP)
		return;
	CHECK(mr);
	for (int i = 0; i < TABLES; i++)
		sg[i] = (struct ibv_sge){ (uintptr_t)area + i * OF_A_TABLE, 4096, mr->lkey };
	for (int flush = 0; flush < 2; flush++)
		CHECK(!ibv_advise_mr(left_behind, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				     flush ? IBV_ADVISE_MR_FLAG_FLUSH : 0, sg, TABLES));
	CHECK(!munmap(area, bytes));
	CHECK(!ibv_dereg_mr(mr));
}

/* Address spaces that the kernel keeps; -1: it does not say. */
static int address_spaces(void)
{
	FILE *f = fopen("/sys/kernel/slab/mm_struct/shrink", "w");
	int count = -1;

	if (f) { /* what CPUs hold free is counted as used, else */
		fputs("1", f);
		fclose(f);
	}
	f = fopen("/sys/kernel/slab/mm_struct/objects", "r");
	if (f) {
		CHECK(fscanf(f, "%d", &count) == 1);
		fclose(f);
	}
	return count;
}

/* Many run, and end; so do their children, if they have any. Nothing is left of them. */
static void leave_nothing(void (*run)(void), int children)
{
	int before = address_spaces(), after;

	if (before < 0)
		SKIP("this kernel does not count its objects");
	CHECK(!prctl(PR_SET_CHILD_SUBREAPER, 1));
	for (int i = 0; i < LEAVERS; i++) {
		ends_well(child(run));
		for (int k = 0; k < children; k++)
			ends_well(-1);
	}
	after = address_spaces();
	printf("%d address spaces, then %d\n", before, after);
	CHECK(after < before + LEAVERS / 2);
}

CASE("processes", the_address_space_of_a_parent_goes)
{
	leave_nothing(opens_and_leaves, 1);
}

CASE("processes", an_address_space_goes_with_its_paged_memory)
{
	leave_nothing(advises_and_leaves, 0);
}

/* It destroys what its parent made, and the peer gets an event. */
UNLISTED(disconnects_as_a_daemon)
{
	become_a_daemon();
	register_again(&s);
	move_to_own_channel(c.id);
	move_to_own_channel(s.id);
	CHECK(!rdma_disconnect(c.id));
	flushes(&s);
	rdma_destroy_qp(c.id);
	CHECK(!ibv_dereg_mr(s.own) && !ibv_dereg_mr(s.open));
	s.open = ibv_reg_mr(s.id->pd, s.buf, BYTES, IBV_ACCESS_LOCAL_WRITE);
	s.own = ibv_reg_mr(s.id->pd, s.buf + BYTES, BYTES, IBV_ACCESS_LOCAL_WRITE);
	CHECK(s.open && s.own);
}

CASE("processes", a_daemon_disconnects)
{
	daemon_ends_well("disconnects_as_a_daemon");
}

/* --- children that only end ------------------------------------------------------------ */

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_mw *mw;

static void make_more(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 8, .max_sge = 1 } };

	srq = ibv_create_srq(s.id->pd, &attr);
	mw = ibv_alloc_mw(s.id->pd, IBV_MW_TYPE_1);
	pd = ibv_alloc_pd(s.id->verbs);
	cq = ibv_create_cq(s.id->verbs, 8, NULL, NULL, 0);
	CHECK(srq && mw && pd && cq);
}

static void destroy_all(void)
{
	struct ibv_modify_cq_attr moderation = { .attr_mask = IBV_CQ_ATTR_MODERATE };
	struct ibv_srq_attr attr = { .max_wr = 100 };
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };

	/* What would be seen by the parent is refused. */
	CHECK(ibv_modify_qp(s.id->qp, &error, IBV_QP_STATE) == EPERM);
	CHECK(ibv_resize_cq(s.id->recv_cq, 1000) == EPERM);
	CHECK(ibv_modify_cq(s.id->recv_cq, &moderation) == EPERM);
	CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == EPERM);
	CHECK(ibv_rereg_mr(s.own, TRANSLATION, NULL, s.buf + BYTES, BYTES, 0));
	CHECK(!ibv_destroy_srq(srq) && !ibv_dealloc_mw(mw));
	CHECK(!ibv_dealloc_pd(pd) && !ibv_destroy_cq(cq));
	release(&c);
	release(&s);
	rdma_destroy_ep(the_listener());
}

/* What it inherited is its parent's; what it made is its own. */
CASE("processes", a_child_destroys_what_it_inherited)
{
	struct ibv_recv_wr *bad, wr = {};

	make_more();
	ends_well(child(destroy_all));
	works(&c, &s);
	CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
	connect_pair(&c2, &s2, NULL);
	works(&c2, &s2);
	release(&c2);
	release(&s2);
	CHECK(!ibv_destroy_srq(srq) && !ibv_dealloc_mw(mw));
	CHECK(!ibv_dealloc_pd(pd) && !ibv_destroy_cq(cq));
}

/* Those of this context that the kernel has, of all kinds that the library destroys. */
static uint32_t objects_in_kernel(void)
{
	static const uint16_t kinds[] = { UVERBS_OBJECT_PD,  UVERBS_OBJECT_CQ, UVERBS_OBJECT_QP,
					  UVERBS_OBJECT_SRQ, UVERBS_OBJECT_MR, UVERBS_OBJECT_MW };
	uint32_t handles[256], total = 0, sum = 0;
	struct ib_uverbs_attr attrs[3] = {
		{ .attr_id = UVERBS_ATTR_INFO_OBJECT_ID,
		  .len = sizeof(uint64_t),
		  .flags = UVERBS_ATTR_F_MANDATORY },
		{ .attr_id = UVERBS_ATTR_INFO_TOTAL_HANDLES,
		  .len = sizeof(total),
		  .flags = UVERBS_ATTR_F_MANDATORY,
		  .data = (uintptr_t)&total },
		{ .attr_id = UVERBS_ATTR_INFO_HANDLES_LIST,
		  .len = sizeof(handles),
		  .flags = UVERBS_ATTR_F_MANDATORY,
		  .data = (uintptr_t)handles },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		attrs[0].data = kinds[i];
		CHECK(!device_method(s.id->verbs->cmd_fd, UVERBS_METHOD_INFO_HANDLES, attrs));
		sum += total;
	}
	return sum;
}

static void make_and_destroy(void)
{
	struct ibv_srq_init_attr one = { .attr = { .max_wr = 1, .max_sge = 1 } };
	uint32_t before = objects_in_kernel();
	struct ibv_cq *cq = ibv_create_cq(s.id->verbs, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { WRS, WRS, 1, 1, 0 }
	};
	struct ibv_pd *pd = ibv_alloc_pd(s.id->verbs);
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_recv_wr *bad, wr = {};
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_qp *qp;

	mr = ibv_reg_mr(pd, s.buf, BYTES, 0);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	srq = ibv_create_srq(pd, &one);
	qp = ibv_create_qp(pd, &attr);
	CHECK(cq && pd && qp && mr && mw && srq);
	CHECK(objects_in_kernel() == before + 6);
	CHECK(!ibv_modify_qp(qp, &error, IBV_QP_STATE) && !ibv_post_recv(qp, &wr, &bad));
	CHECK(polled(cq).status == IBV_WC_WR_FLUSH_ERR);
	CHECK(!ibv_destroy_qp(qp) && !ibv_dereg_mr(mr) && !ibv_destroy_cq(cq));
	CHECK(!ibv_dealloc_mw(mw) && !ibv_destroy_srq(srq) && !ibv_dealloc_pd(pd));
	CHECK(objects_in_kernel() == before);
}

CASE("processes", a_child_has_objects_of_its_own)
{
	ends_well(child(make_and_destroy));
	works(&c, &s);
	make_and_destroy();
}

static struct ibv_context *opened;

static void close_it(void)
{
	CHECK(!ibv_close_device(opened));
}

CASE("processes", a_child_closes_the_device)
{
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	opened = ibv_open_device(s.id->verbs->device);
	CHECK(opened && (pd = ibv_alloc_pd(opened)));
	ends_well(child(close_it));
	CHECK((mr = ibv_reg_mr(pd, s.buf, BYTES, 0)));
	CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(opened));
	works(&c, &s);
}

/* --- forks beside traffic ---------------------------------------------------------------- */

static atomic_bool stop;
static atomic_int rounds;

static void *traffic(void *unused)
{
	while (!stop) {
		works(&c2, &s2);
		rounds++;
	}
	return unused;
}

static void exec_true(void)
{
	execl("/bin/true", "true", (char *)NULL);
	_exit(1);
}

static void quit(void)
{
	_exit(0);
}

static void release_both(void)
{
	CHECK(!ibv_dereg_mr(c2.open) && !ibv_dereg_mr(c2.own));
	rdma_destroy_ep(c2.id);
	rdma_destroy_ep(s2.id);
}

/* Whatever a thread of the parent held when it forked, no child waits for it. */
CASE("processes", forks_beside_traffic)
{
	static void (*const runs[])(void) = { quit, release_both, exec_true, make_and_destroy };
	pid_t pids[4];
	pthread_t thread;
	int before;

	connect_pair(&c2, &s2, NULL);
	CHECK(!pthread_create(&thread, NULL, traffic, NULL));
	for (int i = 0; i < CHILDREN; i++) {
		before = rounds;
		for (int k = 0; k < 4; k++)
			pids[k] = child(runs[k]);
		for (int k = 0; k < 4; k++)
			ends_well(pids[k]);
		if (i % 10 == 9)
			while (rounds == before)
				usleep(100);
	}
	stop = true;
	pthread_join(thread, NULL);
	release(&c2);
	release(&s2);
}

/* --- a lock that another thread held ------------------------------------------------------ */

static struct ibv_cq_ex *held;
static atomic_bool holds;

static void *hold_the_lock(void *unused)
{
	struct ibv_poll_cq_attr poll = {};
	int err;

	/* The receives are flushed in the background. */
	do {
		err = ibv_start_poll(held, &poll);
	} while (err == ENOENT);
	CHECK(!err);
	holds = true;
	while (!stop)
		usleep(1000);
	ibv_end_poll(held);
	return unused;
}

static void poll_there(void)
{
	CHECK(polled(ibv_cq_ex_to_cq(held)).status == IBV_WC_WR_FLUSH_ERR);
}

CASE("processes", a_lock_of_a_thread_is_not_inherited)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 16 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { WRS, WRS, 1, 1, 0 } };
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_recv_wr *bad, wr = {};
	pthread_t thread;
	struct ibv_qp *qp;

	held = ibv_create_cq_ex(s.id->verbs, &attr);
	CHECK(held);
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(held);
	qp = ibv_create_qp(s.id->pd, &init);
	CHECK(qp && !ibv_modify_qp(qp, &error, IBV_QP_STATE));
	CHECK(!ibv_post_recv(qp, &wr, &bad) && !ibv_post_recv(qp, &wr, &bad));
	CHECK(!pthread_create(&thread, NULL, hold_the_lock, NULL));
	while (!holds)
		;
	ends_well(child(poll_there));
	stop = true;
	pthread_join(thread, NULL);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(init.send_cq));
}

/* --- privileges ---------------------------------------------------------------------------- */

CASE("processes", privileges_dropped_after_opening)
{
	struct rlimit some = { 16 << 20, 16 << 20 };

	CHECK(!setrlimit(RLIMIT_MEMLOCK, &some));
	CHECK(!setgroups(0, NULL) && !setgid(UNPRIVILEGED) && !setuid(UNPRIVILEGED));
	works(&c, &s);
	writes_and_reads();
	make_and_destroy();
	CHECK(!ibv_resize_cq(s.id->recv_cq, 500));
	/* Nor does rdma_cm serve a process with other credentials, until it gets a new channel. */
	errno = 0;
	CHECK(rdma_disconnect(c.id) && errno == EACCES);
	move_to_own_channel(the_listener());
	connect_pair(&c2, &s2, NULL);
	works(&c2, &s2);
	release(&c2);
	release(&s2);
}
