/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * States of a stream: one const table, stepped by one function. RFC 5040, 6.
 */
#ifndef WEFT_PROTO_QP_FSM_H
#define WEFT_PROTO_QP_FSM_H

#include "proto/env.h"

enum weft_qp_state {
	WEFT_QP_IDLE,		/* no connection yet */
	WEFT_QP_RTS,
	WEFT_QP_CLOSING,	/* asked to close: the send queue drains, then FIN */
	WEFT_QP_TERMINATE,	/* a Terminate is due or just sent */
	WEFT_QP_ERROR,		/* flushed, until it is reset */
	WEFT_QP_STATES
};

enum weft_qp_event {
	WEFT_QP_STARTED,	/* got its socket */
	WEFT_QP_CLOSE,	/* modify to SQD, disconnect */
	WEFT_QP_ABORT,	/* modify to ERR, destroy */
	WEFT_QP_FAULTED,	/* local fault, or the peer's that we must tell it */
	WEFT_QP_PEER_TERMINATED,
	WEFT_QP_TERMINATE_SENT,
	WEFT_QP_SQ_DRAINED,
	WEFT_QP_PEER_CLOSED,	/* FIN on a message boundary */
	WEFT_QP_CONN_LOST,	/* reset, timeout, FIN inside an FPDU */
	WEFT_QP_TIMED_OUT,	/* the deadline of closing or terminating */
	WEFT_QP_RESET,		/* modify to RESET, and nothing is left of the connection */
	WEFT_QP_EVENTS
};

enum weft_qp_action {
	WEFT_QPA_STOP_RX	= 1 << 0,	/* take no more segments */
	WEFT_QPA_TX		= 1 << 1,	/* run tx: drain, Terminate or flush */
	WEFT_QPA_TELL_CM	= 1 << 2,	/* connection is going down */
	WEFT_QPA_HALF_CLOSE	= 1 << 3,	/* FIN */
	WEFT_QPA_DEADLINE	= 1 << 4,	/* arm the deadline */
	WEFT_QPA_RELEASE	= 1 << 5,	/* flush, let go of the socket */
	WEFT_QPA_REPORT		= 1 << 6,	/* raise the asynchronous event */
	WEFT_QPA_IMPOSSIBLE	= 1 << 7,	/* cannot happen; counted, warned once */
};

struct weft_qp_step {
	u8 next;	/* enum weft_qp_state */
	u8 actions;	/* enum weft_qp_action */
};

struct weft_qp_step weft_qp_fsm(enum weft_qp_state state, enum weft_qp_event event);
const char *weft_qp_state_name(enum weft_qp_state state);
const char *weft_qp_event_name(enum weft_qp_event event);

#endif
