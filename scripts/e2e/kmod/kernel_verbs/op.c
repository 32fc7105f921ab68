// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Work requests of the consumer, and the callback that they complete with.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include "op.h"

#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "world.h"

static void on_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct op *op = container_of(wc->wr_cqe, struct op, cqe);

	op->status = wc->status;
	op->wc_flags = wc->wc_flags;
	op->byte_len = wc->byte_len;
	op->inv = wc->ex.invalidate_rkey;
	op->vendor_err = wc->vendor_err;
	op->opcode = wc->opcode;
	op->qp = wc->qp;
	op->cpu = raw_smp_processor_id();
	if (op->answer && op_post_send(op->answer, op->with, IB_WR_SEND, 0))
		op->status = IB_WC_GENERAL_ERR;
	complete(&op->done);
}

void op_init(struct op *op)
{
	memset(op, 0, sizeof(*op));
	op->cqe.done = on_done;
	init_completion(&op->done);
}

/* Before the request is posted. */
void op_expect(struct op *op, struct ib_qp *qp, enum ib_wc_opcode opcode)
{
	op->due_qp = qp;
	op->due = opcode;
}

/* The completion names the request and its QP; an error is explained, and nothing else. */
bool op_is_as_due(const struct op *op)
{
	if (op->qp == op->due_qp && op->opcode == op->due && !op->vendor_err == !op->status)
		return true;
	pr_err("opcode %d, not %d, of %s QP; status %d, vendor error %u\n", op->opcode, op->due,
	       op->qp == op->due_qp ? "its" : "another", op->status, op->vendor_err);
	return false;
}

/* A consumer that polls by itself is not called back. */
bool op_comes(struct op *op)
{
	unsigned long end = jiffies + WAIT;

	if (world.context != IB_POLL_DIRECT)
		return wait_for_completion_timeout(&op->done, WAIT);
	while (!try_wait_for_completion(&op->done)) {
		if (time_after(jiffies, end))
			return false;
		if (!ib_process_cq_direct(world.cq, -1))
			usleep_range(20, 100);
	}
	return true;
}

int op_wait(struct op *op)
{
	if (!op_comes(op)) {
		pr_err("no completion\n");
		return -ETIMEDOUT;
	}
	if (op->status)
		pr_err("completed with %s\n", ib_wc_status_msg(op->status));
	return op_is_as_due(op) && !op->status ? 0 : -EIO;
}

/* Kernel memory by its address, with the key of the domain. */
struct ib_sge op_half(int n)
{
	return (struct ib_sge){
		.addr = (uintptr_t)world.small + n * PAGE_SIZE / 2,
		.length = PAGE_SIZE / 2,
		.lkey = world.pd->local_dma_lkey,
	};
}

int op_post_send(struct ib_qp *qp, struct op *op, enum ib_wr_opcode opcode, u32 inv)
{
	struct ib_sge sge = op_half(0);
	struct ib_send_wr wr = {
		.wr_cqe = &op->cqe,
		.opcode = opcode,
		.send_flags = IB_SEND_SIGNALED | op->send_flags,
		.sg_list = &sge,
		.num_sge = opcode == IB_WR_LOCAL_INV ? 0 : 1,
		.ex.invalidate_rkey = inv,
	};

	op_expect(op, qp, opcode == IB_WR_LOCAL_INV ? IB_WC_LOCAL_INV : IB_WC_SEND);
	return ib_post_send(qp, &wr, NULL);
}

int op_post_recv(struct ib_qp *qp, struct op *op)
{
	struct ib_sge sge = op_half(1);
	const struct ib_recv_wr wr = { .wr_cqe = &op->cqe, .sg_list = &sge, .num_sge = 1 };

	op_expect(op, qp, IB_WC_RECV);
	return ib_post_recv(qp, &wr, NULL);
}

int op_do_send(enum ib_wr_opcode opcode, u32 inv)
{
	struct op op;

	op_init(&op);
	return op_post_send(world.self.to.client->qp, &op, opcode, inv) ?: op_wait(&op);
}
