/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Tracepoints, at the boundaries of messages and states. Scalars only: what a
 * number means is told beside it, so that perf and bpftrace need nothing of us.
 * A device is named by the index of its network device, as in `ip link`.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM weft

#if !defined(WEFT_BASE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define WEFT_BASE_TRACE_H

#include <linux/tracepoint.h>
#include <linux/types.h>

/* clang-format off */

#ifndef WEFT_TRACE_NAMES
#define WEFT_TRACE_NAMES

/* Values of the wire, of proto/qp_fsm.h, proto/conn_fsm.h and the ABI. */
#define weft_show_opcode(op)					\
	__print_symbolic(op,					\
		{ 0, "write" }, { 1, "read-request" },		\
		{ 2, "read-response" }, { 3, "send" },		\
		{ 4, "send-inv" }, { 5, "send-se" },		\
		{ 6, "send-se-inv" }, { 7, "terminate" },	\
		{ 8, "imm" }, { 9, "imm-se" },			\
		{ 10, "atomic-request" }, { 11, "atomic-response" }, \
		{ 12, "send-imm" }, { 13, "send-se-imm" })

#define weft_show_qp_state(state)				\
	__print_symbolic(state,					\
		{ 0, "idle" }, { 1, "rts" }, { 2, "closing" },	\
		{ 3, "terminate" }, { 4, "error" })

#define weft_show_qp_event(event)				\
	__print_symbolic(event,					\
		{ 0, "started" }, { 1, "close" },		\
		{ 2, "abort" }, { 3, "faulted" },		\
		{ 4, "peer-terminated" }, { 5, "terminate-sent" }, \
		{ 6, "sq-drained" }, { 7, "peer-closed" },	\
		{ 8, "conn-lost" }, { 9, "timed-out" },	\
		{ 10, "reset" })

#define weft_show_conn_state(state)				\
	__print_symbolic(state,					\
		{ 0, "idle" }, { 1, "connecting" },		\
		{ 2, "await-reply" }, { 3, "await-request" },	\
		{ 4, "await-accept" }, { 5, "await-rtr" },		\
		{ 6, "running" }, { 7, "closing" }, { 8, "closed" })

#define weft_show_conn_event(event)				\
	__print_symbolic(event,					\
		{ 0, "connect" }, { 1, "tcp-accepted" },	\
		{ 2, "tcp-connected" }, { 3, "tcp-failed" },		\
		{ 4, "request-received" }, { 5, "reply-received" },		\
		{ 6, "reject-received" }, { 7, "bad-frame" },		\
		{ 8, "ulp-accepted" }, { 9, "ulp-accepted-p2p" }, \
		{ 10, "ulp-rejected" }, { 11, "ready" },	\
		{ 12, "timed-out" }, { 13, "peer-closed" },	\
		{ 14, "stream-closing" }, { 15, "stream-closed" }, \
		{ 16, "abandoned" })

#define weft_show_tx_mode(mode) \
	__print_symbolic(mode, { 0, "doorbell" }, { 1, "queued" }, { 2, "merged" }, \
		{ 3, "softirq" })

#define weft_show_rnr(event) \
	__print_symbolic(event, { 0, "wait" }, { 1, "ready" }, { 2, "timeout" }, \
		{ 3, "closed" })

#endif

DECLARE_EVENT_CLASS(weft_message,
	TP_PROTO(int ifindex, u32 qpn, u8 opcode, u32 length, u32 msn),
	TP_ARGS(ifindex, qpn, opcode, length, msn),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, qpn)
		__field(u32, length)
		__field(u32, msn)
		__field(u8, opcode)
	),
	TP_fast_assign(
		__entry->ifindex = ifindex;
		__entry->qpn = qpn;
		__entry->length = length;
		__entry->msn = msn;
		__entry->opcode = opcode;
	),
	TP_printk("ifindex=%d qpn=%u opcode=%s length=%u msn=%u",
		  __entry->ifindex, __entry->qpn, weft_show_opcode(__entry->opcode),
		  __entry->length, __entry->msn)
);

/* The last segment of an RDMAP message is staged. */
DEFINE_EVENT(weft_message, weft_message_sent,
	TP_PROTO(int ifindex, u32 qpn, u8 opcode, u32 length, u32 msn),
	TP_ARGS(ifindex, qpn, opcode, length, msn)
);

/* The last segment of an RDMAP message was placed. */
DEFINE_EVENT(weft_message, weft_message_received,
	TP_PROTO(int ifindex, u32 qpn, u8 opcode, u32 length, u32 msn),
	TP_ARGS(ifindex, qpn, opcode, length, msn)
);

/* A batch of segments was handed to TCP; err: 0, -EAGAIN when TCP was full. */
TRACE_EVENT(weft_tx_batch,
	TP_PROTO(int ifindex, u32 qpn, u32 bytes, int err),
	TP_ARGS(ifindex, qpn, bytes, err),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, qpn)
		__field(u32, bytes)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->ifindex = ifindex;
		__entry->qpn = qpn;
		__entry->bytes = bytes;
		__entry->err = err;
	),
	TP_printk("ifindex=%d qpn=%u bytes=%u err=%d",
		  __entry->ifindex, __entry->qpn, __entry->bytes, __entry->err)
);

TRACE_EVENT(weft_tx_run,
	TP_PROTO(int ifindex, u32 qpn, u8 mode),
	TP_ARGS(ifindex, qpn, mode),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, qpn)
		__field(u8, mode)
	),
	TP_fast_assign(
		__entry->ifindex = ifindex;
		__entry->qpn = qpn;
		__entry->mode = mode;
	),
	TP_printk("ifindex=%d qpn=%u mode=%s",
		  __entry->ifindex, __entry->qpn, weft_show_tx_mode(__entry->mode))
);

/* A work request is done, whether or not it leaves a completion. */
DECLARE_EVENT_CLASS(weft_done,
	TP_PROTO(int ifindex, u32 qpn, u64 wr_id, u8 status, u32 length),
	TP_ARGS(ifindex, qpn, wr_id, status, length),
	TP_STRUCT__entry(
		__field(u64, wr_id)
		__field(int, ifindex)
		__field(u32, qpn)
		__field(u32, length)
		__field(u8, status)
	),
	TP_fast_assign(
		__entry->wr_id = wr_id;
		__entry->ifindex = ifindex;
		__entry->qpn = qpn;
		__entry->length = length;
		__entry->status = status;
	),
	TP_printk("ifindex=%d qpn=%u wr_id=0x%llx status=%u length=%u",
		  __entry->ifindex, __entry->qpn, __entry->wr_id, __entry->status,
		  __entry->length)
);

DEFINE_EVENT(weft_done, weft_send_done,
	TP_PROTO(int ifindex, u32 qpn, u64 wr_id, u8 status, u32 length),
	TP_ARGS(ifindex, qpn, wr_id, status, length)
);

DEFINE_EVENT(weft_done, weft_receive_done,
	TP_PROTO(int ifindex, u32 qpn, u64 wr_id, u8 status, u32 length),
	TP_ARGS(ifindex, qpn, wr_id, status, length)
);

TRACE_EVENT(weft_qp_state,
	TP_PROTO(int ifindex, u32 qpn, u8 event, u8 from, u8 to),
	TP_ARGS(ifindex, qpn, event, from, to),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, qpn)
		__field(u8, event)
		__field(u8, from)
		__field(u8, to)
	),
	TP_fast_assign(
		__entry->ifindex = ifindex;
		__entry->qpn = qpn;
		__entry->event = event;
		__entry->from = from;
		__entry->to = to;
	),
	TP_printk("ifindex=%d qpn=%u event=%s from=%s to=%s", __entry->ifindex, __entry->qpn,
		  weft_show_qp_event(__entry->event), weft_show_qp_state(__entry->from),
		  weft_show_qp_state(__entry->to))
);

/* The handle numbers connections; qpn is 0 until one has a QP. */
TRACE_EVENT(weft_cm_state,
	TP_PROTO(int ifindex, u32 handle, u32 qpn, u8 event, u8 from, u8 to, int err),
	TP_ARGS(ifindex, handle, qpn, event, from, to, err),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, handle)
		__field(u32, qpn)
		__field(u8, event)
		__field(u8, from)
		__field(u8, to)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->ifindex = ifindex;
		__entry->handle = handle;
		__entry->qpn = qpn;
		__entry->event = event;
		__entry->from = from;
		__entry->to = to;
		__entry->err = err;
	),
	TP_printk("ifindex=%d handle=%u qpn=%u event=%s from=%s to=%s err=%d",
		  __entry->ifindex, __entry->handle, __entry->qpn,
		  weft_show_conn_event(__entry->event), weft_show_conn_state(__entry->from),
		  weft_show_conn_state(__entry->to), __entry->err)
);

/* A message waits for a receive, or does so no longer. */
TRACE_EVENT(weft_rnr,
	TP_PROTO(int ifindex, u32 qpn, u8 event),
	TP_ARGS(ifindex, qpn, event),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, qpn)
		__field(u8, event)
	),
	TP_fast_assign(
		__entry->ifindex = ifindex;
		__entry->qpn = qpn;
		__entry->event = event;
	),
	TP_printk("ifindex=%d qpn=%u event=%s", __entry->ifindex, __entry->qpn,
		  weft_show_rnr(__entry->event))
);

/* A rule was broken, by the peer or by us; fault is enum weft_fault. */
TRACE_EVENT(weft_protocol_error,
	TP_PROTO(int ifindex, u32 qpn, u32 fault, u8 layer, u8 etype, u8 ecode),
	TP_ARGS(ifindex, qpn, fault, layer, etype, ecode),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, qpn)
		__field(u32, fault)
		__field(u8, layer)
		__field(u8, etype)
		__field(u8, ecode)
	),
	TP_fast_assign(
		__entry->ifindex = ifindex;
		__entry->qpn = qpn;
		__entry->fault = fault;
		__entry->layer = layer;
		__entry->etype = etype;
		__entry->ecode = ecode;
	),
	TP_printk("ifindex=%d qpn=%u fault=%u layer=%u type=%u code=0x%02x",
		  __entry->ifindex, __entry->qpn, __entry->fault, __entry->layer,
		  __entry->etype, __entry->ecode)
);

/* What the peer's Terminate says. */
TRACE_EVENT(weft_rx_terminate,
	TP_PROTO(int ifindex, u32 qpn, u8 layer, u8 etype, u8 ecode),
	TP_ARGS(ifindex, qpn, layer, etype, ecode),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, qpn)
		__field(u8, layer)
		__field(u8, etype)
		__field(u8, ecode)
	),
	TP_fast_assign(
		__entry->ifindex = ifindex;
		__entry->qpn = qpn;
		__entry->layer = layer;
		__entry->etype = etype;
		__entry->ecode = ecode;
	),
	TP_printk("ifindex=%d qpn=%u layer=%u type=%u code=0x%02x",
		  __entry->ifindex, __entry->qpn, __entry->layer, __entry->etype,
		  __entry->ecode)
);

/* clang-format on */

#endif

/* Found by the compiler's search path, as every header of ours. */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH base
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
