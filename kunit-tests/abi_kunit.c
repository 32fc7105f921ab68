// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What libraries that are installed already agree with the module on: numbers and places, which
 * stay as they are as long as WEFT_ABI_VERSION does. What is new is added here.
 */
#include "uapi/weft-abi.h"

#include <linux/stddef.h>

#include "suite.h"

struct abi_row {
	const char *name;
	u64 is;
	u64 due;
};

/* clang-format off */
#define NUMBER(name, due)	{ #name, name, due }
#define SIZE(type, due)		{ #type, sizeof(struct type), due }
#define PLACE(type, member, due)	{ #type " " #member, offsetof(struct type, member), due }

/* clang-format on */

static const struct abi_row numbers[] = {
	NUMBER(WEFT_DRIVER_ID, 0x57656674),
	NUMBER(WEFT_ABI_VERSION, 3),
	NUMBER(WEFT_CTL_BYTES, 128),
	NUMBER(WEFT_WR_SEND, 0),
	NUMBER(WEFT_WR_SEND_INV, 1),
	NUMBER(WEFT_WR_WRITE, 2),
	NUMBER(WEFT_WR_WRITE_IMM, 3),
	NUMBER(WEFT_WR_READ, 4),
	NUMBER(WEFT_WR_ATOMIC_FADD, 5),
	NUMBER(WEFT_WR_ATOMIC_CSWAP, 6),
	NUMBER(WEFT_WR_LOCAL_INV, 7),
	NUMBER(WEFT_WR_BIND_MW, 8),
	NUMBER(WEFT_WR_SEND_IMM, 9),
	NUMBER(WEFT_WRF_SIGNALED, 1),
	NUMBER(WEFT_WRF_SOLICITED, 2),
	NUMBER(WEFT_WRF_FENCE, 4),
	NUMBER(WEFT_WRF_INLINE, 8),
	NUMBER(WEFT_WC_SEND, 0),
	NUMBER(WEFT_WC_WRITE, 1),
	NUMBER(WEFT_WC_READ, 2),
	NUMBER(WEFT_WC_FADD, 3),
	NUMBER(WEFT_WC_CSWAP, 4),
	NUMBER(WEFT_WC_LOCAL_INV, 5),
	NUMBER(WEFT_WC_BIND_MW, 6),
	NUMBER(WEFT_WC_RECV, 8),
	NUMBER(WEFT_WC_RECV_IMM, 9),
	NUMBER(WEFT_WCF_IMM, 1),
	NUMBER(WEFT_WCF_INV, 2),
	NUMBER(WEFT_WCF_SOLICITED, 4),
	NUMBER(WEFT_SQ_NEED_DOORBELL, 0),
	NUMBER(WEFT_SQ_BUSY, 1),
	NUMBER(WEFT_SQ_POLLED, 2),
	NUMBER(WEFT_RQ_OPEN, 0),
	NUMBER(WEFT_RQ_NEED_DOORBELL, 1),
	NUMBER(WEFT_ARM_NONE, 0),
	NUMBER(WEFT_ARM_SOLICITED, 1),
	NUMBER(WEFT_ARM_NEXT, 2),
	NUMBER(WEFT_CTX_SHARED_PAGES, 1),
	NUMBER(WEFT_FEATURE_UNIQUE_MMAP_KEYS, 1),
	NUMBER(WEFT_FEATURE_OWNER, 2),
	NUMBER(WEFT_SRQ_DOORBELL, 1),
	NUMBER(WEFT_METHOD_QP_DOORBELL, 0x1000),
	NUMBER(WEFT_ATTR_QP_DOORBELL_HANDLE, 0x1000),
	NUMBER(WEFT_METHOD_SRQ_DOORBELL, 0x1000),
	NUMBER(WEFT_ATTR_SRQ_DOORBELL_HANDLE, 0x1000),
	NUMBER(WEFT_METHOD_DEVICE_OWN, 0x1001),
};

/* Entries of mapped queues and their control blocks. Padding has no other use. */
static const struct abi_row mapped[] = {
	SIZE(weft_sge, 16),
	PLACE(weft_sge, addr, 0),
	PLACE(weft_sge, length, 8),
	PLACE(weft_sge, lkey, 12),
	SIZE(weft_sqe, 64),
	PLACE(weft_sqe, wr_id, 0),
	PLACE(weft_sqe, opcode, 8),
	PLACE(weft_sqe, flags, 9),
	PLACE(weft_sqe, num_sge, 10),
	PLACE(weft_sqe, inline_len, 12),
	PLACE(weft_sqe, remote_addr, 16),
	PLACE(weft_sqe, rkey, 24),
	PLACE(weft_sqe, imm_or_inv, 28),
	PLACE(weft_sqe, atomic.compare_add, 32),
	PLACE(weft_sqe, atomic.swap, 40),
	PLACE(weft_sqe, atomic.compare_mask, 48),
	PLACE(weft_sqe, atomic.swap_mask, 56),
	PLACE(weft_sqe, bind.addr, 32),
	PLACE(weft_sqe, bind.length, 40),
	PLACE(weft_sqe, bind.mr_lkey, 48),
	PLACE(weft_sqe, bind.access, 52),
	PLACE(weft_sqe, bind.mw_rkey, 56),
	SIZE(weft_rqe, 16),
	PLACE(weft_rqe, wr_id, 0),
	PLACE(weft_rqe, num_sge, 8),
	SIZE(weft_cqe, 32),
	PLACE(weft_cqe, wr_id, 0),
	PLACE(weft_cqe, timestamp, 8),
	PLACE(weft_cqe, qp_num, 16),
	PLACE(weft_cqe, byte_len, 20),
	PLACE(weft_cqe, imm_or_inv, 24),
	PLACE(weft_cqe, opcode, 28),
	PLACE(weft_cqe, status, 29),
	PLACE(weft_cqe, flags, 30),
	PLACE(weft_cqe, vendor_err, 31),
	SIZE(weft_sq_ctl, WEFT_CTL_BYTES),
	PLACE(weft_sq_ctl, prod, 0),
	PLACE(weft_sq_ctl, defer_doorbell, 4),
	PLACE(weft_sq_ctl, cons, 64),
	PLACE(weft_sq_ctl, state, 68),
	SIZE(weft_rq_ctl, WEFT_CTL_BYTES),
	PLACE(weft_rq_ctl, prod, 0),
	PLACE(weft_rq_ctl, state, 4),
	PLACE(weft_rq_ctl, cons, 64),
	SIZE(weft_cq_ctl, WEFT_CTL_BYTES),
	PLACE(weft_cq_ctl, cons, 0),
	PLACE(weft_cq_ctl, prod, 64),
	PLACE(weft_cq_ctl, arm, 68),
};

/* They may grow at the end, where an older library or kernel does not look: no sizes. */
static const struct abi_row commands[] = {
	PLACE(weft_queue_map, key, 0),
	PLACE(weft_queue_map, bytes, 8),
	PLACE(weft_queue_map, entries, 12),
	PLACE(weft_queue_map, stride, 16),
	PLACE(weft_queue_map, offset, 20),
	SIZE(weft_queue_map, 24), /* others contain it */
	PLACE(weft_ureq_alloc_ctx, flags, 0),
	PLACE(weft_uresp_alloc_ctx, max_inline, 0),
	PLACE(weft_uresp_alloc_ctx, features, 4),
	PLACE(weft_uresp_create_cq, cq, 0),
	PLACE(weft_uresp_create_qp, sq, 0),
	PLACE(weft_uresp_create_qp, rq, 24),
	PLACE(weft_uresp_create_qp, max_inline, 48),
	PLACE(weft_ureq_create_srq, flags, 0),
	PLACE(weft_uresp_create_srq, rq, 0),
	PLACE(weft_uresp_resize_cq, cq, 0),
	PLACE(weft_ureq_modify_srq, map, 0),
};

static void stay(struct kunit *test, const struct abi_row *rows, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		KUNIT_EXPECT_EQ_MSG(test, rows[i].is, rows[i].due, "%s", rows[i].name);
}

static void weft_abi_numbers(struct kunit *test)
{
	stay(test, numbers, ARRAY_SIZE(numbers));
}

static void weft_abi_mapped_queues(struct kunit *test)
{
	stay(test, mapped, ARRAY_SIZE(mapped));
}

static void weft_abi_commands(struct kunit *test)
{
	stay(test, commands, ARRAY_SIZE(commands));
}

static struct kunit_case abi_cases[] = {
	KUNIT_CASE(weft_abi_numbers),
	KUNIT_CASE(weft_abi_mapped_queues),
	KUNIT_CASE(weft_abi_commands),
	{},
};

static struct kunit_suite abi_suite = {
	.name = "weft_abi",
	.test_cases = abi_cases,
};

kunit_test_suite(abi_suite);
