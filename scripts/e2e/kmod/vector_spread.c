// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * How far the work of a kernel consumer spreads over the CPUs: connections of the
 * machine to itself, on each of which a few requests are always on their way. A
 * request is answered from the completion callback, as a storage target does it that
 * has the block at hand and checks a digest over it. Loading the module measures; the
 * figures are its parameters.
 *
 *	insmod vector_spread.ko address=10.77.0.1 vectors=2 digest=4096
 */
#include <linux/crc32c.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "connect.h"

#define PORT	7568
#define PAIRS	8
#define WINDOW	4
#define DEPTH	1
#define BYTES	64
#define MSECS	1000

static char *address = "";
module_param(address, charp, 0444);
MODULE_PARM_DESC(address, "IPv4 address of the device");

static int vectors = 1;
module_param(vectors, int, 0444);
MODULE_PARM_DESC(vectors, "completion vectors that the connections take turns in");

static uint digest;
module_param(digest, uint, 0444);
MODULE_PARM_DESC(digest, "bytes the target looks at per request");

static u64 per_second;
module_param(per_second, ullong, 0444);
MODULE_PARM_DESC(per_second, "measured: requests answered");

static uint busiest;
module_param(busiest, uint, 0444);
MODULE_PARM_DESC(busiest, "measured: share of the busiest CPU in the requests, per cent");

/* One end of a connection. */
struct end {
	struct ib_cqe sent, received;
	struct rdma_cm_id *id;
	char *out, *in;
	bool target;
};

struct pair {
	struct end client, target;
	struct ib_cq *cq;
	char *page;
};

static struct {
	struct connecting to;
	struct rdma_cm_id *listener;
	struct ib_pd *pd;
	struct pair pairs[PAIRS];
	struct pair *connecting;
	char *block;
	bool stop;
	int failed;
} w;

static DEFINE_PER_CPU(u64, answered);
static DEFINE_PER_CPU(u32, crc);

/* --- messages ---------------------------------------------------------------- */

static struct ib_sge at(char *buffer)
{
	return (struct ib_sge){
		.addr = (uintptr_t)buffer,
		.length = BYTES,
		.lkey = w.pd->local_dma_lkey,
	};
}

static int post_send(struct end *e)
{
	struct ib_sge sge = at(e->out);
	const struct ib_send_wr wr = {
		.wr_cqe = &e->sent,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
	};

	return ib_post_send(e->id->qp, &wr, NULL);
}

static int post_recv(struct end *e)
{
	struct ib_sge sge = at(e->in);
	const struct ib_recv_wr wr = { .wr_cqe = &e->received, .sg_list = &sge, .num_sge = 1 };

	return ib_post_recv(e->id->qp, &wr, NULL);
}

/* Did it go well? After the end, what was posted is flushed. */
static bool good(const struct ib_wc *wc)
{
	if (wc->status && !READ_ONCE(w.stop))
		WRITE_ONCE(w.failed, -EIO);
	return !wc->status;
}

static void on_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	good(wc);
}

static void on_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct end *e = container_of(wc->wr_cqe, struct end, received);

	if (!good(wc) || READ_ONCE(w.stop))
		return;
	if (e->target) {
		this_cpu_write(crc, crc32c(this_cpu_read(crc), w.block, digest));
		this_cpu_inc(answered);
	}
	if (post_recv(e) || post_send(e))
		WRITE_ONCE(w.failed, -EIO);
}

/* --- connections --------------------------------------------------------------- */

static void init_end(struct end *e, char *buffer, bool target)
{
	e->sent.done = on_sent;
	e->received.done = on_received;
	e->out = buffer;
	e->in = buffer + BYTES;
	e->target = target;
}

static int make_qp(struct end *e, struct rdma_cm_id *id, struct ib_cq *cq)
{
	struct ib_qp_init_attr attr = {
		.cap = { .max_send_wr = 2 * WINDOW,
			 .max_recv_wr = 2 * WINDOW,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.send_cq = cq,
		.recv_cq = cq,
	};
	int ret = rdma_create_qp(id, w.pd, &attr);

	e->id = id;
	for (int i = 0; !ret && i < WINDOW; i++)
		ret = post_recv(e);
	return ret;
}

static int on_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct pair *p = w.connecting;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return make_qp(&p->target, id, p->cq) ?: connect_accept(id, DEPTH);
	connect_told(&w.to, id, event);
	return 0;
}

static int make_objects(struct pair *p, struct ib_device *dev, int vector)
{
	if (!w.pd)
		w.pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(w.pd))
		return PTR_ERR(w.pd);
	p->page = (char *)get_zeroed_page(GFP_KERNEL);
	if (!p->page)
		return -ENOMEM;
	init_end(&p->client, p->page, false);
	init_end(&p->target, p->page + PAGE_SIZE / 2, true);
	p->cq = ib_alloc_cq(dev, NULL, 8 * WINDOW, vector, IB_POLL_SOFTIRQ);
	return PTR_ERR_OR_ZERO(p->cq);
}

static int connect(struct pair *p, struct sockaddr *sa, int vector)
{
	struct rdma_cm_id *id = connect_id(on_event, NULL);

	p->client.id = id;
	w.connecting = p;
	return connect_resolve(&w.to, id, sa)	    ?:
		       make_objects(p, id->device, vector) ?:
		       make_qp(&p->client, id, p->cq)	    ?:
							     connect_finish(&w.to, DEPTH);
}

static int connect_all(struct sockaddr *sa)
{
	int ret;

	w.listener = connect_id(on_event, NULL);
	ret = connect_listen(w.listener, sa, PAIRS);
	for (int i = 0; !ret && i < PAIRS; i++)
		ret = connect(&w.pairs[i], sa, i % vectors);
	return ret;
}

static void drop_all(void)
{
	for (struct pair *p = w.pairs; p < w.pairs + PAIRS; p++) {
		connect_drop(p->client.id);
		connect_drop(p->target.id);
		if (!IS_ERR_OR_NULL(p->cq))
			ib_free_cq(p->cq);
		free_page((unsigned long)p->page);
	}
	connect_drop(w.listener);
	if (!IS_ERR_OR_NULL(w.pd))
		ib_dealloc_pd(w.pd);
	kfree(w.block);
}

/* --- measuring ------------------------------------------------------------------ */

static int begin(void)
{
	int ret = 0;

	for (int i = 0; !ret && i < PAIRS * WINDOW; i++)
		ret = post_send(&w.pairs[i / WINDOW].client);
	return ret;
}

static void evaluate(u64 nsecs)
{
	u64 all = 0, most = 0;
	int cpu;

	for_each_possible_cpu(cpu) {
		u64 here = per_cpu(answered, cpu);

		all += here;
		most = max(most, here);
	}
	per_second = div64_u64(all * NSEC_PER_SEC, nsecs);
	busiest = all ? div64_u64(100 * most, all) : 0;
}

static int measure(void)
{
	u64 began = ktime_get_ns();
	int ret = begin();

	if (!ret)
		msleep(MSECS);
	WRITE_ONCE(w.stop, true);
	evaluate(ktime_get_ns() - began);
	return ret ?: w.failed ?: per_second ? 0 : -EIO;
}

static int __init vector_spread_init(void)
{
	struct sockaddr_in sa;
	int ret = vectors < 1 ? -EINVAL : connect_address(&sa, address, PORT);

	if (ret)
		return ret;
	w.block = kzalloc(max(digest, 1U), GFP_KERNEL);
	ret = w.block ? connect_all((struct sockaddr *)&sa) ?: measure() : -ENOMEM;
	WRITE_ONCE(w.stop, true);
	drop_all();
	return ret;
}

static void __exit vector_spread_exit(void)
{
}

module_init(vector_spread_init);
module_exit(vector_spread_exit);
MODULE_DESCRIPTION("How far the work of a kernel consumer spreads over the CPUs");
MODULE_LICENSE("Dual BSD/GPL");
