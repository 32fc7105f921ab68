/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A work request and what became of it.
 */
#ifndef WEFT_TEST_OP_H
#define WEFT_TEST_OP_H

#include <linux/completion.h>
#include <rdma/ib_verbs.h>

struct op {
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
	int wc_flags;
	u32 byte_len;
	u32 inv;
	u32 vendor_err;
	enum ib_wc_opcode opcode, due; /* what the completion says, and should */
	struct ib_qp *qp, *due_qp;
	int cpu;
	int send_flags; /* beside IB_SEND_SIGNALED */
	struct ib_qp *answer; /* post a Send there, from the callback, */
	struct op *with; /* and this is it */
};

void op_init(struct op *op);
void op_expect(struct op *op, struct ib_qp *qp, enum ib_wc_opcode opcode);
bool op_is_as_due(const struct op *op);
bool op_comes(struct op *op);
int op_wait(struct op *op);

struct ib_sge op_half(int n);
int op_post_send(struct ib_qp *qp, struct op *op, enum ib_wr_opcode opcode, u32 inv);
int op_post_recv(struct ib_qp *qp, struct op *op);
int op_do_send(enum ib_wr_opcode opcode, u32 inv);

#endif
