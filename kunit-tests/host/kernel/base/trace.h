/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* No tracepoints. */
#ifndef WEFT_HOST_TRACE_H
#define WEFT_HOST_TRACE_H

#define trace_weft_message_received(...)
#define trace_weft_message_sent(...)
#define trace_weft_tx_batch(...)
#define trace_weft_tx_run(...)
#define trace_weft_qp_state(...)
#define trace_weft_protocol_error(...)
#define trace_weft_rx_terminate(...)
#define trace_weft_send_done(...)
#define trace_weft_receive_done(...)
#define trace_weft_rnr(...)

#endif
