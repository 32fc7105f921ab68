/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause */
/*
 * The contract between weft.ko and its libibverbs provider.
 *
 * Every queue is a part of a mapped region: a control block of two cache lines, one
 * written by the application and one by the kernel, then fixed-stride entries.
 * Indices run freely over 32 bits; entry i stands at i & (entries - 1). Neither
 * side ever stores a pointer here, and the kernel believes nothing it reads
 * here before checking a private copy. Documentation/abi.md tells the rules.
 */
#ifndef WEFT_ABI_H
#define WEFT_ABI_H

#include <linux/types.h>

/* Unassigned by the kernel's enum rdma_driver_id on purpose; fixed for ever. */
#define WEFT_DRIVER_ID		0x57656674
#define WEFT_ABI_VERSION	3

/* Room in front of the entries of every queue: struct weft_*_ctl. */
#define WEFT_CTL_BYTES		128

/**
 * enum weft_wr_op - opcodes of a send queue entry
 *
 * From WEFT_WR_KERNEL_FIRST on an opcode is refused in a user's queue.
 */
enum weft_wr_op {
	WEFT_WR_SEND		= 0,
	WEFT_WR_SEND_INV	= 1,
	WEFT_WR_WRITE		= 2,
	WEFT_WR_WRITE_IMM	= 3,
	WEFT_WR_READ		= 4,
	WEFT_WR_ATOMIC_FADD	= 5,
	WEFT_WR_ATOMIC_CSWAP	= 6,
	WEFT_WR_LOCAL_INV	= 7,
	WEFT_WR_BIND_MW		= 8,
	WEFT_WR_SEND_IMM	= 9,	/* directly connected QPs */
	WEFT_WR_KERNEL_FIRST	= 10,
	WEFT_WR_READ_INV	= 10,
	WEFT_WR_REG_MR		= 11,
	WEFT_WR_OP_COUNT	= 12,
};

enum weft_wr_flags {
	WEFT_WRF_SIGNALED	= 1 << 0,
	WEFT_WRF_SOLICITED	= 1 << 1,
	WEFT_WRF_FENCE		= 1 << 2,
	WEFT_WRF_INLINE		= 1 << 3,
};

struct weft_sge {
	__aligned_u64 addr;
	__u32 length;
	__u32 lkey;
};

/**
 * struct weft_sqe - head of a send queue entry
 * @wr_id: handed back in the completion
 * @opcode: enum weft_wr_op
 * @flags: enum weft_wr_flags
 * @num_sge: elements of struct weft_sge behind this head, 0 with INLINE
 * @inline_len: bytes of payload behind this head when INLINE is set
 * @rkey: remote STag; the STag to invalidate for LOCAL_INV; the new STag of a
 *	window for BIND_MW
 * @remote_addr: tagged offset at the peer
 * @imm_or_inv: immediate value (network order) or the peer's STag to invalidate
 * @atomic: operands of ATOMIC_*; plain ones carry masks too: all ones for the
 *	compare and swap masks, 0 for the field boundaries of an add (@swap_mask)
 * @bind: operands of BIND_MW, @access as enum ib_access_flags
 */
struct weft_sqe {
	__aligned_u64 wr_id;
	__u8 opcode;
	__u8 flags;
	__u16 num_sge;
	__u32 inline_len;
	__aligned_u64 remote_addr;
	__u32 rkey;
	__u32 imm_or_inv;
	union {
		struct {
			__aligned_u64 compare_add;
			__aligned_u64 swap;
			__aligned_u64 compare_mask;
			__aligned_u64 swap_mask;
		} atomic;
		struct {
			__aligned_u64 addr;
			__aligned_u64 length;
			__u32 mr_lkey;
			__u32 access;
			__u32 mw_rkey;
			__u32 reserved;
		} bind;
	};
};

/* Head of a receive queue entry; num_sge elements follow. */
struct weft_rqe {
	__aligned_u64 wr_id;
	__u32 num_sge;
	__u32 reserved;
};

/* opcode of a completion; the provider maps them to enum ibv_wc_opcode. */
enum weft_wc_op {
	WEFT_WC_SEND		= 0,
	WEFT_WC_WRITE		= 1,
	WEFT_WC_READ		= 2,
	WEFT_WC_FADD		= 3,
	WEFT_WC_CSWAP		= 4,
	WEFT_WC_LOCAL_INV	= 5,
	WEFT_WC_BIND_MW		= 6,
	WEFT_WC_REG_MR		= 7,
	WEFT_WC_RECV		= 8,
	WEFT_WC_RECV_IMM	= 9,	/* Immediate Data of a Write-with-immediate */
};

enum weft_wc_flags {
	WEFT_WCF_IMM		= 1 << 0,
	WEFT_WCF_INV		= 1 << 1,
	WEFT_WCF_SOLICITED	= 1 << 2,
};

/**
 * struct weft_cqe - a completion
 * @status: enum ibv_wc_status, which equals the kernel's enum ib_wc_status
 * @imm_or_inv: immediate value (network order) or the STag that was invalidated
 * @timestamp: CLOCK_MONOTONIC in nanoseconds, taken when the entry was written, if
 *	the queue was created with IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION
 */
struct weft_cqe {
	__aligned_u64 wr_id;
	__aligned_u64 timestamp;
	__u32 qp_num;
	__u32 byte_len;
	__u32 imm_or_inv;
	__u8 opcode;
	__u8 status;
	__u8 flags;
	__u8 vendor_err;
};

/*
 * Send queue control. After publishing @prod with release the application
 * issues a full fence and reads @state: only WEFT_SQ_NEED_DOORBELL asks for the
 * doorbell call. The kernel stores NEED_DOORBELL, fences, and looks at @prod again
 * before it leaves the queue, so one of the two always sees the other.
 * @defer_doorbell: the application rings when it finds its CQ empty; only then does the
 *	kernel leave the queue POLLED: a doorbell is welcome at any time, and without
 *	one a post is found some time later.
 * @cons: entries before this index may be reused.
 */
enum weft_sq_state {
	WEFT_SQ_NEED_DOORBELL	= 0,
	WEFT_SQ_BUSY		= 1,
	WEFT_SQ_POLLED		= 2,
};

struct weft_sq_ctl {
	__u32 prod;
	__u32 defer_doorbell;
	__u32 user_pad[14];
	__u32 cons;
	__u32 state;
	__u32 kernel_pad[14];
};

/*
 * Receive queue control, @cons written by the kernel as it takes entries. Posting reads
 * @state each time, so it stands where the kernel does not write as a rule. It turns to
 * NEED_DOORBELL while messages wait for a receive, and for good when the QP has failed, so that
 * late receives are flushed. Then the application rings after publishing, with the same
 * fences as on the send queue: an SRQ of its own method, and only if it said WEFT_SRQ_DOORBELL.
 * A shared queue turns to it for good when its device goes: the doorbell, and so posting, fails.
 *
 *	     a message waits for a receive, the QP fails, the device goes
 *	OPEN -----------------------------------------------------------> NEED_DOORBELL
 *	 ^        no message waits any more, or the QP was reset            |
 *	 +------------------------------------------------------------------+
 */
enum weft_rq_state {
	WEFT_RQ_OPEN		= 0,
	WEFT_RQ_NEED_DOORBELL	= 1,
};

struct weft_rq_ctl {
	__u32 prod;
	__u32 state;
	__u32 user_pad[14];
	__u32 cons;
	__u32 kernel_pad[15];
};

/*
 * Completion queue control. To arm: store to @arm, full fence, poll once more. It
 * stands beside @prod, which both look at anyway: the kernel does not touch the line
 * that polling writes to until the queue seems full.
 * The kernel publishes @prod with release, fences, and takes @arm back to
 * WEFT_ARM_NONE with one exchange when it raises the event. So @arm has two writers:
 *
 *	NONE --- application: solicited ---> SOLICITED --- application: any ---> NEXT
 *	| ^                                      |                               ^ |
 *	| +------ kernel: event -----------------+----------- kernel: event -----|-+
 *	+-------- application: any ----------------------------------------------+
 */
enum weft_arm {
	WEFT_ARM_NONE		= 0,
	WEFT_ARM_SOLICITED	= 1,
	WEFT_ARM_NEXT		= 2,
};

struct weft_cq_ctl {
	__u32 cons;
	__u32 user_pad[15];
	__u32 prod;
	__u32 arm;
	__u32 kernel_pad[14];
};

/**
 * struct weft_queue_map - where a queue is found
 * @key: offset for mmap() of the device's file descriptor, 0: no such queue
 * @bytes: length to map
 * @entries: a power of two
 * @stride: bytes from entry to entry
 * @offset: where the control block stands in it, a multiple of WEFT_CTL_BYTES; other
 *	queues of the process may stand before and behind. 0 unless the application
 *	said WEFT_CTX_SHARED_PAGES
 */
struct weft_queue_map {
	__aligned_u64 key;
	__u32 bytes;
	__u32 entries;
	__u32 stride;
	__u32 offset;
};

/* What an application says of itself when it opens the device, if anything. */
enum weft_ctx_flags {
	WEFT_CTX_SHARED_PAGES = 1 << 0, /* looks at the offset of a queue */
};

struct weft_ureq_alloc_ctx {
	__u32 flags;		/* enum weft_ctx_flags */
	__u32 reserved;
};

/* What the kernel says of itself. */
enum weft_features {
	WEFT_FEATURE_UNIQUE_MMAP_KEYS	= 1 << 0, /* a key of a mapping is not given again */
	WEFT_FEATURE_OWNER		= 1 << 1, /* has WEFT_METHOD_DEVICE_OWN */
};

struct weft_uresp_alloc_ctx {
	__u32 max_inline;
	__u32 features;		/* enum weft_features */
};

struct weft_uresp_create_cq {
	struct weft_queue_map cq;
};

struct weft_uresp_create_qp {
	struct weft_queue_map sq;
	struct weft_queue_map rq;
	__u32 max_inline;
	__u32 reserved;
};

/* What an application says of an SRQ, if anything. */
enum weft_srq_flags {
	WEFT_SRQ_DOORBELL	= 1 << 0, /* it rings when @state asks for it */
};

struct weft_ureq_create_srq {
	__u32 flags;		/* enum weft_srq_flags */
	__u32 reserved;
};

struct weft_uresp_create_srq {
	struct weft_queue_map rq;
	__u32 srqn;
	__u32 reserved;
};

/*
 * The application keeps @cons still. Unread entries stand at the same indices of
 * the new region, whose control block carries on with cons, arm and prod.
 */
struct weft_uresp_resize_cq {
	struct weft_queue_map cq;
};

/*
 * Behind the command that resizes an SRQ, which has no answer of its own: where
 * the struct weft_queue_map of the new region is to be stored. The application
 * keeps @prod still; waiting entries stand at the same indices of the new region.
 */
struct weft_ureq_modify_srq {
	__aligned_u64 map;
};

/*
 * The doorbell: a driver method of the QP object, or of the SRQ object, through the
 * RDMA_VERBS_IOCTL of the device's file descriptor. Sent only when @state asks for it.
 */
enum weft_qp_methods {
	WEFT_METHOD_QP_DOORBELL	= 1U << 12,	/* first of the driver's namespace */
};

enum weft_qp_doorbell_attrs {
	WEFT_ATTR_QP_DOORBELL_HANDLE = 1U << 12,
};

enum weft_srq_methods {
	WEFT_METHOD_SRQ_DOORBELL	= 1U << 12,
};

enum weft_srq_doorbell_attrs {
	WEFT_ATTR_SRQ_DOORBELL_HANDLE = 1U << 12,
};

/*
 * Does the device's file, inherited from a parent, belong to the caller? A driver method of
 * the device object without attributes. EBUSY while the address space that it belongs to
 * lives; once that is gone it belongs to the first that asks.
 */
enum weft_device_methods {
	WEFT_METHOD_DEVICE_OWN	= (1U << 12) + 1,
};

#endif
