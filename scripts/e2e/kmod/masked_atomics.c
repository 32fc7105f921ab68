// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A kernel consumer that connects to itself and does masked atomics, which user
 * space has no verbs for. Loading it runs the test: it stays loaded if all went
 * well, and says in the kernel log what did not.
 *
 *	insmod masked_atomics.ko address=10.77.0.1
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "self.h"

#define PORT	7566
#define DEPTH	4

static char *address = "";
module_param(address, charp, 0444);
MODULE_PARM_DESC(address, "IPv4 address of the device");

struct row {
	const char *name;
	enum ib_wr_opcode op;
	u64 before;
	u64 compare_add;
	u64 swap;
	u64 compare_add_mask;
	u64 swap_mask;
	u64 after;
};

#define ADD	IB_WR_MASKED_ATOMIC_FETCH_AND_ADD
#define SWAP	IB_WR_MASKED_ATOMIC_CMP_AND_SWP
#define ONES	(~0ULL)

/* An add's mask marks the top bit of each field: no carry leaves a field. */
static const struct row rows[] = {
	{ "add, one field", ADD, 0xfffffffffffffffe, 3, 0, 0, 0, 1 },
	{ "add, two fields", ADD, 0x00000001ffffffff, 0x0000000100000001, 0, 0x80000000, 0,
	  0x0000000200000000 },
	{ "add, bytes", ADD, 0xff01ff01ff01ff01, 0x0202020202020202, 0, 0x8080808080808080, 0,
	  0x0103010301030103 },
	{ "add, bits", ADD, 0xf0f0f0f0f0f0f0f0, 0xffffffff00000000, 0, ONES, 0,
	  0x0f0f0f0ff0f0f0f0 },
	{ "swap all", SWAP, 5, 5, 9, ONES, ONES, 9 },
	{ "swap, unequal", SWAP, 5, 6, 9, ONES, ONES, 5 },
	{ "swap, unequal where it does not matter", SWAP, 0x1234567800000005, 5, 0xffff, 0xffffffff,
	  0xff00, 0x123456780000ff05 },
	{ "swap, unequal where it matters", SWAP, 0x1234567800000005, 5, 0xffff, 0xff00000000000000,
	  0xff00, 0x1234567800000005 },
	{ "swap without comparing", SWAP, 0xaaaaaaaaaaaaaaaa, 0, ONES, 0, 0xf, 0xaaaaaaaaaaaaaaaf },
	{ "swap nothing", SWAP, 7, 7, 9, ONES, 0, 7 },
	{ "plain add", IB_WR_ATOMIC_FETCH_AND_ADD, 40, 2, 0, 0, 0, 42 },
	{ "plain swap", IB_WR_ATOMIC_CMP_AND_SWP, 42, 42, 43, 0, 0, 43 },
};

/* Both ends, and the memory in between. */
static struct {
	struct self self;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_mr *mr;
	u64 *words;
	struct scatterlist sg;
} w;

static int make_qp(struct rdma_cm_id *id)
{
	struct ib_qp_init_attr attr = {
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.send_cq = w.cq,
		.recv_cq = w.cq,
	};

	return rdma_create_qp(id, w.pd, &attr);
}

static int make_objects(struct ib_device *dev)
{
	w.pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(w.pd))
		return PTR_ERR(w.pd);
	w.cq = ib_alloc_cq(dev, NULL, 64, 0, IB_POLL_DIRECT);
	if (IS_ERR(w.cq))
		return PTR_ERR(w.cq);
	w.mr = ib_alloc_mr(w.pd, IB_MR_TYPE_MEM_REG, 1);
	return PTR_ERR_OR_ZERO(w.mr);
}

static const struct self_maker maker = {
	.objects = make_objects,
	.qp = make_qp,
	.depth = DEPTH,
};

/* What a completion is to name; for masked atomics, any will do. */
static bool is_named(enum ib_wr_opcode op, enum ib_wc_opcode opcode)
{
	switch (op) {
	case IB_WR_REG_MR:
		return opcode == IB_WC_REG_MR;
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return opcode == IB_WC_FETCH_ADD;
	case IB_WR_ATOMIC_CMP_AND_SWP:
		return opcode == IB_WC_COMP_SWAP;
	default:
		return true;
	}
}

static int complete_one(enum ib_wr_opcode op)
{
	unsigned long end = jiffies + WAIT;
	struct ib_wc wc;

	while (!ib_poll_cq(w.cq, 1, &wc)) {
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		usleep_range(50, 100);
	}
	if (wc.status)
		pr_err("completed with %s\n", ib_wc_status_msg(wc.status));
	else if (!is_named(op, wc.opcode))
		pr_err("request %d completed as %d\n", op, wc.opcode);
	return wc.status || !is_named(op, wc.opcode) ? -EIO : 0;
}

static int register_words(void)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.mr = w.mr,
		.key = w.mr->rkey,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_ATOMIC,
	};

	sg_init_one(&w.sg, w.words, PAGE_SIZE);
	if (!ib_dma_map_sg(w.self.to.client->device, &w.sg, 1, DMA_BIDIRECTIONAL))
		return -EIO;
	if (ib_map_mr_sg(w.mr, &w.sg, 1, NULL, PAGE_SIZE) != 1)
		return -EIO;
	return ib_post_send(w.self.to.client->qp, &wr.wr, NULL) ?: complete_one(IB_WR_REG_MR);
}

/* Word 1 is the target, word 3 takes the answer; the others must not change. */
static int do_row(const struct row *row)
{
	struct ib_sge sge = {
		.addr = w.mr->iova + 3 * sizeof(u64),
		.length = sizeof(u64),
		.lkey = w.mr->lkey,
	};
	struct ib_atomic_wr wr = {
		.wr = { .opcode = row->op, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = w.mr->iova + sizeof(u64),
		.rkey = w.mr->rkey,
		.compare_add = row->compare_add,
		.swap = row->swap,
		.compare_add_mask = row->compare_add_mask,
		.swap_mask = row->swap_mask,
	};
	int ret;

	memset(w.words, 0x77, 5 * sizeof(u64));
	w.words[1] = row->before;
	ret = ib_post_send(w.self.to.client->qp, &wr.wr, NULL) ?: complete_one(row->op);
	if (ret)
		return ret;
	if (w.words[1] != row->after || w.words[3] != row->before || w.words[0] != w.words[2] ||
	    w.words[2] != w.words[4]) {
		pr_err("%s: %#llx, answer %#llx\n", row->name, w.words[1], w.words[3]);
		return -EINVAL;
	}
	return 0;
}

static int run(struct sockaddr *sa)
{
	size_t i;
	int ret;

	ret = self_connect(&w.self, &maker, sa) ?: register_words();
	for (i = 0; !ret && i < ARRAY_SIZE(rows); i++) {
		ret = do_row(&rows[i]);
		if (ret)
			pr_err("row \"%s\" failed: %d\n", rows[i].name, ret);
	}
	if (!ret)
		pr_info("%zu operations as expected\n", i);
	return ret;
}

static void clean_up(void)
{
	self_drop(&w.self);
	if (!IS_ERR_OR_NULL(w.mr))
		ib_dereg_mr(w.mr);
	if (!IS_ERR_OR_NULL(w.cq))
		ib_free_cq(w.cq);
	if (!IS_ERR_OR_NULL(w.pd))
		ib_dealloc_pd(w.pd);
	kfree(w.words);
}

static int __init masked_atomics_init(void)
{
	struct sockaddr_in sa;
	int ret = connect_address(&sa, address, PORT);

	if (ret)
		return ret;
	w.words = kzalloc(PAGE_SIZE, GFP_KERNEL);
	ret = w.words ? run((struct sockaddr *)&sa) : -ENOMEM;
	clean_up();
	return ret;
}

static void __exit masked_atomics_exit(void)
{
}

module_init(masked_atomics_init);
module_exit(masked_atomics_exit);

MODULE_DESCRIPTION("Masked atomics of a kernel consumer");
MODULE_LICENSE("Dual BSD/GPL");
