/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* No tracepoints. */
#ifndef WEFT_HOST_TRACE_H
#define WEFT_HOST_TRACE_H

#define trace_weft_message_received(...)
#define trace_weft_message_sent(...)
#define trace_weft_train(...)
#define trace_weft_kick(...)
#define trace_weft_qp_step(...)
#define trace_weft_fault(...)
#define trace_weft_peer_terminated(...)
#define trace_weft_send_done(...)
#define trace_weft_receive_done(...)
#define trace_weft_rnr(...)

#endif
