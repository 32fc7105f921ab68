// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A kernel consumer that connects to itself and does what storage consumers do:
 * fast registration of the longest list, invalidations of every kind, posting
 * from completion callbacks, draining; in every polling context and on every
 * completion vector. Loading it runs the test: it stays loaded if all went well,
 * and says in the kernel log what did not.
 *
 *	insmod kernel_verbs.ko address=10.77.0.1
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include <linux/delay.h>
#include <linux/inet.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "connect.h"

#define PORT	7567
#define DEPTH	4
#define PAGES	4096
#define BYTES	(PAGES * PAGE_SIZE)
#define RIGHTS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)
#define FLUSHED	8
#define READS	8

/* Microseconds for which an event may be held back; as many as there can be. */
#define HOLD	20000
#define LONG	65535

static char *address = "";
module_param(address, charp, 0444);
MODULE_PARM_DESC(address, "IPv4 address of the device");

/* A work request and what became of it. */
struct op {
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
	int wc_flags;
	u32 inv;
	int cpu;
	struct ib_qp *answer; /* post a Send there, from the callback */
};

/* Memory of many single pages, with its region. */
struct area {
	struct page **pages;
	struct sg_table sgt;
	struct ib_mr *mr;
	bool mapped;
};

static struct {
	struct connecting to;
	struct rdma_cm_id *listener, *server;
	struct ib_pd *pd;
	struct ib_cq *cq;
	enum ib_poll_context context;
	int vector;
	struct area a, b;
	char *small; /* two halves: from and to */
	struct op answer;
} w;

#define CHECK(what)                                                   \
	do {                                                          \
		if (!(what)) {                                        \
			pr_err("line %d: %s\n", __LINE__, #what);     \
			return -EINVAL;                               \
		}                                                     \
	} while (0)

/* --- work requests --------------------------------------------------------- */

static int post_send(struct ib_qp *qp, struct op *op, enum ib_wr_opcode opcode, u32 inv);

static void on_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct op *op = container_of(wc->wr_cqe, struct op, cqe);

	op->status = wc->status;
	op->wc_flags = wc->wc_flags;
	op->inv = wc->ex.invalidate_rkey;
	op->cpu = raw_smp_processor_id();
	if (op->answer && post_send(op->answer, &w.answer, IB_WR_SEND, 0))
		op->status = IB_WC_GENERAL_ERR;
	complete(&op->done);
}

static void init_op(struct op *op)
{
	memset(op, 0, sizeof(*op));
	op->cqe.done = on_done;
	init_completion(&op->done);
}

/* Nobody calls back a consumer that polls by itself. */
static bool comes(struct op *op)
{
	unsigned long end = jiffies + WAIT;

	if (w.context != IB_POLL_DIRECT)
		return wait_for_completion_timeout(&op->done, WAIT);
	while (!try_wait_for_completion(&op->done)) {
		if (time_after(jiffies, end))
			return false;
		if (!ib_process_cq_direct(w.cq, -1))
			usleep_range(20, 100);
	}
	return true;
}

static int wait_op(struct op *op)
{
	if (!comes(op)) {
		pr_err("no completion\n");
		return -ETIMEDOUT;
	}
	if (op->status)
		pr_err("completed with %s\n", ib_wc_status_msg(op->status));
	return op->status ? -EIO : 0;
}

/* Kernel memory by its address, with the key of the domain. */
static struct ib_sge half(int n)
{
	return (struct ib_sge){
		.addr = (uintptr_t)w.small + n * PAGE_SIZE / 2,
		.length = PAGE_SIZE / 2,
		.lkey = w.pd->local_dma_lkey,
	};
}

static int post_send(struct ib_qp *qp, struct op *op, enum ib_wr_opcode opcode, u32 inv)
{
	struct ib_sge sge = half(0);
	struct ib_send_wr wr = {
		.wr_cqe = &op->cqe,
		.opcode = opcode,
		.send_flags = IB_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = opcode == IB_WR_LOCAL_INV ? 0 : 1,
		.ex.invalidate_rkey = inv,
	};

	return ib_post_send(qp, &wr, NULL);
}

static int post_recv(struct ib_qp *qp, struct op *op)
{
	struct ib_sge sge = half(1);
	const struct ib_recv_wr wr = { .wr_cqe = &op->cqe, .sg_list = &sge, .num_sge = 1 };

	return ib_post_recv(qp, &wr, NULL);
}

static int do_send(enum ib_wr_opcode opcode, u32 inv)
{
	struct op op;

	init_op(&op);
	return post_send(w.to.client->qp, &op, opcode, inv) ?: wait_op(&op);
}

/* --- registration ------------------------------------------------------------ */

static int do_register(struct area *a)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.wr.send_flags = IB_SEND_SIGNALED,
		.mr = a->mr,
		.access = RIGHTS,
	};
	struct op op;

	init_op(&op);
	ib_update_fast_reg_key(a->mr, ib_inc_rkey(a->mr->rkey));
	wr.key = a->mr->rkey;
	wr.wr.wr_cqe = &op.cqe;
	CHECK(ib_map_mr_sg(a->mr, a->sgt.sgl, a->sgt.nents, NULL, PAGE_SIZE) == PAGES);
	return ib_post_send(w.to.client->qp, &wr.wr, NULL) ?: wait_op(&op);
}

/* All of one area to or from the other. */
static int post_rdma(struct op *op, enum ib_wr_opcode opcode, struct area *local,
		     struct area *remote)
{
	struct ib_sge sge = { .addr = local->mr->iova, .length = BYTES, .lkey = local->mr->lkey };
	struct ib_rdma_wr wr = {
		.wr.wr_cqe = &op->cqe,
		.wr.opcode = opcode,
		.wr.send_flags = IB_SEND_SIGNALED,
		.wr.sg_list = &sge,
		.wr.num_sge = 1,
		.wr.ex.invalidate_rkey = local->mr->lkey,
		.remote_addr = remote->mr->iova,
		.rkey = remote->mr->rkey,
	};

	init_op(op);
	return ib_post_send(w.to.client->qp, &wr.wr, NULL);
}

static int do_rdma(enum ib_wr_opcode opcode, struct area *local, struct area *remote)
{
	struct op op;

	return post_rdma(&op, opcode, local, remote) ?: wait_op(&op);
}

static void fill(struct area *a, int seed)
{
	int i;

	for (i = 0; i < PAGES; i++)
		memset(page_address(a->pages[i]), seed + i * 7, PAGE_SIZE);
}

static bool is_filled(struct area *a, int seed)
{
	int i;

	for (i = 0; i < PAGES; i++)
		if (memchr_inv(page_address(a->pages[i]), seed + i * 7, PAGE_SIZE))
			return false;
	return true;
}

static int compare(void)
{
	int i;

	for (i = 0; i < PAGES; i++)
		CHECK(!memcmp(page_address(w.a.pages[i]), page_address(w.b.pages[i]), PAGE_SIZE));
	return 0;
}

/* --- cases -------------------------------------------------------------------- */

/* The n-th CPU, as a consumer counts them. */
static int nth_cpu(int n)
{
	int cpu;

	for_each_online_cpu(cpu)
		if (!n--)
			return cpu;
	return -1;
}

/* Is it on the vector's CPU that this kind of consumer hears? */
static bool has_cpu(enum ib_poll_context context)
{
	return context != IB_POLL_UNBOUND_WORKQUEUE && context != IB_POLL_DIRECT;
}

static int case_send(void)
{
	struct op recv;
	int ret;

	init_op(&recv);
	get_random_bytes(w.small, PAGE_SIZE);
	ret = post_recv(w.server->qp, &recv) ?: do_send(IB_WR_SEND, 0) ?: wait_op(&recv);
	if (ret)
		return ret;
	CHECK(!memcmp(w.small, w.small + PAGE_SIZE / 2, PAGE_SIZE / 2));
	if (has_cpu(w.context) && recv.cpu != nth_cpu(w.vector)) {
		pr_err("vector %d was heard on CPU %d\n", w.vector, recv.cpu);
		return -EINVAL;
	}
	return 0;
}

static int case_answer_from_callback(void)
{
	struct op there, back;
	int ret;

	init_op(&there);
	init_op(&back);
	init_op(&w.answer);
	there.answer = w.server->qp;
	ret = post_recv(w.server->qp, &there) ?: post_recv(w.to.client->qp, &back);
	return ret			      ?:
		       do_send(IB_WR_SEND, 0) ?:
		       wait_op(&there)	      ?:
		       wait_op(&w.answer)     ?:
						wait_op(&back);
}

static int case_longest_list(void)
{
	int ret;

	fill(&w.a, 1);
	fill(&w.b, 2);
	ret = do_register(&w.a)				    ?:
		      do_register(&w.b)			    ?:
		      do_rdma(IB_WR_RDMA_WRITE, &w.a, &w.b) ?:
		      case_send() ?: /* what is received behind the Write says it was placed */
		      compare();
	if (ret)
		return ret;
	fill(&w.b, 3);
	return do_rdma(IB_WR_RDMA_READ, &w.a, &w.b) ?: compare();
}

/* The region can be registered anew only if the response has invalidated it. */
static int case_read_with_inv(void)
{
	fill(&w.b, 4);
	return do_rdma(IB_WR_RDMA_READ_WITH_INV, &w.a, &w.b) ?: compare() ?: do_register(&w.a);
}

static int case_local_inv(void)
{
	return do_send(IB_WR_LOCAL_INV, w.a.mr->rkey) ?: do_register(&w.a);
}

static int case_send_with_inv(void)
{
	u32 key = w.b.mr->rkey;
	struct op recv;
	int ret;

	init_op(&recv);
	ret = post_recv(w.server->qp, &recv) ?: do_send(IB_WR_SEND_WITH_INV, key) ?: wait_op(&recv);
	if (ret)
		return ret;
	CHECK(recv.wc_flags & IB_WC_WITH_INVALIDATE);
	CHECK(recv.inv == key);
	return do_register(&w.b);
}

/* One event for all, when the first of them has waited long enough. */
static int case_moderated(void)
{
	ktime_t began;
	int ret;

	if (w.context == IB_POLL_DIRECT)
		return 0; /* there are no events */
	msleep(20); /* until the queue is armed again */
	CHECK(!rdma_set_cq_moderation(w.cq, 100, HOLD));
	began = ktime_get();
	ret = case_send();
	if (ret)
		return ret;
	CHECK(ktime_us_delta(ktime_get(), began) >= HOLD);
	return rdma_set_cq_moderation(w.cq, 0, 0);
}

/* Refused where it is posted; the connection does not notice. */
static int case_refused(void)
{
	const struct ib_send_wr *bad = NULL;
	struct ib_sge sge = half(0);
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1000 };
	const struct ib_recv_wr *bad_recv = NULL;
	const struct ib_recv_wr recv = { .sg_list = &sge, .num_sge = 1000 };

	CHECK(ib_post_send(w.to.client->qp, &wr, &bad) == -EINVAL && bad == &wr);
	wr.num_sge = -1;
	CHECK(ib_post_send(w.to.client->qp, &wr, &bad) == -EINVAL);
	wr.num_sge = 1;
	wr.opcode = 0x77;
	CHECK(ib_post_send(w.to.client->qp, &wr, &bad) == -EOPNOTSUPP);
	CHECK(ib_post_recv(w.to.client->qp, &recv, &bad_recv) == -EINVAL && bad_recv == &recv);
	CHECK(IS_ERR(ib_alloc_mr(w.pd, IB_MR_TYPE_MEM_REG, 1 << 20)));
	return case_send();
}

/* What nobody can post away: a key that does not exist ends the connection. */
static int case_bad_key_and_drain(void)
{
	struct ib_sge sge = { .addr = (uintptr_t)w.small, .length = 8, .lkey = 0xdead00 };
	struct op recv[FLUSHED], bad;
	const struct ib_send_wr wr = {
		.wr_cqe = &bad.cqe,
		.opcode = IB_WR_SEND,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IB_SEND_SIGNALED,
	};
	int i;

	init_op(&bad);
	for (i = 0; i < FLUSHED; i++) {
		init_op(&recv[i]);
		CHECK(!post_recv(i % 2 ? w.to.client->qp : w.server->qp, &recv[i]));
	}
	CHECK(!ib_post_send(w.to.client->qp, &wr, NULL));
	CHECK(comes(&bad));
	CHECK(bad.status == IB_WC_LOC_PROT_ERR);
	ib_drain_qp(w.to.client->qp);
	ib_drain_qp(w.server->qp);
	for (i = 0; i < FLUSHED; i++) {
		CHECK(completion_done(&recv[i].done));
		CHECK(recv[i].status == IB_WC_WR_FLUSH_ERR);
	}
	return 0;
}

/* When the drain is over, nobody writes to the memory of what was under way. */
static int case_drain_reads(void)
{
	static struct op reads[READS];
	int i;

	fill(&w.b, 5);
	for (i = 0; i < READS; i++)
		CHECK(!post_rdma(&reads[i], IB_WR_RDMA_READ, &w.a, &w.b));
	ib_drain_sq(w.to.client->qp);
	for (i = 0; i < READS; i++)
		CHECK(completion_done(&reads[i].done));
	CHECK(reads[READS - 1].status == IB_WC_WR_FLUSH_ERR);
	fill(&w.a, 6);
	msleep(50);
	CHECK(is_filled(&w.a, 6));
	ib_drain_qp(w.server->qp);
	return 0;
}

/* Both ends and then the queue go, with an event held back and nothing drained. */
static int case_goes_with_event_held(void)
{
	static struct op send, recv;

	CHECK(!rdma_set_cq_moderation(w.cq, 100, LONG));
	init_op(&send);
	init_op(&recv);
	CHECK(!post_recv(w.server->qp, &recv));
	CHECK(!post_send(w.to.client->qp, &send, IB_WR_SEND, 0));
	msleep(5);
	rdma_destroy_qp(w.to.client);
	rdma_destroy_qp(w.server);
	return 0;
}

struct named_case {
	const char *name;
	int (*run)(void);
};

static const struct named_case cases[] = {
	{ "send", case_send },
	{ "answer from the callback", case_answer_from_callback },
	{ "4096 pages", case_longest_list },
	{ "read with invalidate", case_read_with_inv },
	{ "local invalidate", case_local_inv },
	{ "send with invalidate", case_send_with_inv },
	{ "moderated events", case_moderated },
	{ "refused", case_refused },
};

/* They end the connection, so a round has one of them. */
static const struct named_case ends[] = {
	{ "bad key, drain", case_bad_key_and_drain },
	{ "drain under reads", case_drain_reads },
	{ "an event is held back", case_goes_with_event_held },
};

/* --- connection ---------------------------------------------------------------- */

static int make_qp(struct rdma_cm_id *id)
{
	struct ib_qp_init_attr attr = {
		.cap = { .max_send_wr = 16,
			 .max_recv_wr = 16,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.send_cq = w.cq,
		.recv_cq = w.cq,
	};

	return rdma_create_qp(id, w.pd, &attr);
}

static int on_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		w.server = id;
		return make_qp(id) ?: connect_accept(id, DEPTH);
	}
	connect_told(&w.to, id, event);
	return 0;
}

static int make_area(struct area *a)
{
	struct scatterlist *sg;
	int i;

	a->pages = vcalloc(PAGES, sizeof(*a->pages));
	CHECK(a->pages);
	for (i = 0; i < PAGES; i++) {
		a->pages[i] = alloc_page(GFP_KERNEL);
		CHECK(a->pages[i]);
	}
	/* One element per page, and neighbours swapped, so that none are merged. */
	for (i = 0; i < PAGES; i += 2)
		swap(a->pages[i], a->pages[i + 1]);
	CHECK(!sg_alloc_table(&a->sgt, PAGES, GFP_KERNEL));
	for_each_sgtable_sg(&a->sgt, sg, i) sg_set_page(sg, a->pages[i], PAGE_SIZE, 0);
	a->mapped = ib_dma_map_sg(w.pd->device, a->sgt.sgl, PAGES, DMA_BIDIRECTIONAL);
	CHECK(a->mapped);
	a->mr = ib_alloc_mr(w.pd, IB_MR_TYPE_MEM_REG, PAGES);
	return PTR_ERR_OR_ZERO(a->mr);
}

static int make_objects(struct ib_device *dev)
{
	CHECK(dev->attrs.max_fast_reg_page_list_len >= PAGES);
	CHECK(dev->num_comp_vectors == num_online_cpus());
	w.pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(w.pd))
		return PTR_ERR(w.pd);
	w.cq = ib_alloc_cq(dev, NULL, 128, w.vector, w.context);
	return PTR_ERR_OR_ZERO(w.cq) ?: make_area(&w.a) ?: make_area(&w.b);
}

static int connect(struct sockaddr *sa)
{
	w.listener = connect_id(on_event);
	return connect_listen(w.listener, sa, 1)	       ?:
		       connect_resolve(&w.to, connect_id(on_event), sa) ?:
		       make_objects(w.to.client->device)	       ?:
		       make_qp(w.to.client)		       ?:
		       connect_finish(&w.to, DEPTH);
}

static void drop_area(struct area *a)
{
	int i;

	if (!IS_ERR_OR_NULL(a->mr))
		ib_dereg_mr(a->mr);
	if (a->mapped)
		ib_dma_unmap_sg(w.pd->device, a->sgt.sgl, PAGES, DMA_BIDIRECTIONAL);
	sg_free_table(&a->sgt);
	for (i = 0; a->pages && i < PAGES; i++)
		if (a->pages[i])
			__free_page(a->pages[i]);
	vfree(a->pages);
}

static void clean_up(void)
{
	connect_drop(w.to.client);
	connect_drop(w.server);
	connect_drop(w.listener);
	drop_area(&w.a);
	drop_area(&w.b);
	if (!IS_ERR_OR_NULL(w.cq))
		ib_free_cq(w.cq);
	if (!IS_ERR_OR_NULL(w.pd))
		ib_dealloc_pd(w.pd);
	kfree(w.small);
	memset(&w, 0, sizeof(w));
}

static int run_case(const struct named_case *c)
{
	int ret = c->run();

	if (ret)
		pr_err("\"%s\" failed in context %d on vector %d: %d\n", c->name, w.context,
		       w.vector, ret);
	return ret;
}

static int run(struct sockaddr *sa, enum ib_poll_context context, int vector,
	       const struct named_case *end)
{
	size_t i;
	int ret;

	w.context = context;
	w.vector = vector;
	w.small = kzalloc(PAGE_SIZE, GFP_KERNEL);
	ret = w.small ? connect(sa) : -ENOMEM;
	if (ret)
		pr_err("no connection: %d\n", ret);
	for (i = 0; !ret && i < ARRAY_SIZE(cases); i++)
		ret = run_case(&cases[i]);
	if (!ret)
		ret = run_case(end);
	clean_up();
	return ret;
}

static const enum ib_poll_context contexts[] = {
	IB_POLL_SOFTIRQ,
	IB_POLL_WORKQUEUE,
	IB_POLL_UNBOUND_WORKQUEUE,
	IB_POLL_DIRECT,
};

static int __init kernel_verbs_init(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int rounds = 0;
	int ret = 0;
	size_t i;
	int v;

	if (!in4_pton(address, -1, (u8 *)&sa.sin_addr, -1, NULL))
		return -EINVAL;
	for (i = 0; !ret && i < ARRAY_SIZE(contexts); i++) {
		for (v = 0; !ret && v < min_t(int, num_online_cpus(), 2); v++, rounds++)
			ret = run((struct sockaddr *)&sa, contexts[i], v,
				  &ends[rounds % ARRAY_SIZE(ends)]);
	}
	if (!ret)
		pr_info("%zu cases as expected, in %d rounds\n",
			ARRAY_SIZE(cases) + ARRAY_SIZE(ends), rounds);
	return ret;
}

static void __exit kernel_verbs_exit(void)
{
}

module_init(kernel_verbs_init);
module_exit(kernel_verbs_exit);

MODULE_DESCRIPTION("What a storage consumer asks of a device");
MODULE_LICENSE("Dual BSD/GPL");
