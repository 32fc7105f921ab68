/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * States of a connection from TCP to running stream, both sides: one const
 * table, stepped by one function. RFC 5044, 7.1; RFC 6581, 5.
 */
#ifndef WEFT_PROTO_CONN_FSM_H
#define WEFT_PROTO_CONN_FSM_H

#include "proto/env.h"

enum weft_conn_state {
	WEFT_CONN_IDLE,
	WEFT_CONN_CONNECTING,	/* initiator: TCP */
	WEFT_CONN_AWAIT_REPLY,	/* initiator: request is out */
	WEFT_CONN_AWAIT_REQUEST, /* responder: TCP is up */
	WEFT_CONN_AWAIT_ACCEPT,	/* responder: consumer decides */
	WEFT_CONN_AWAIT_RTR,	/* responder: accepted, peer-to-peer */
	WEFT_CONN_RUNNING,
	WEFT_CONN_CLOSING,
	WEFT_CONN_CLOSED,
	WEFT_CONN_STATES
};

enum weft_conn_event {
	WEFT_CONN_CONNECT,
	WEFT_CONN_TCP_ACCEPTED,	/* a child of a listener */
	WEFT_CONN_TCP_CONNECTED,
	WEFT_CONN_TCP_FAILED,
	WEFT_CONN_REQUEST_RECEIVED,
	WEFT_CONN_REPLY_RECEIVED,	/* accepting, negotiated */
	WEFT_CONN_REJECT_RECEIVED,
	WEFT_CONN_BAD_FRAME,
	WEFT_CONN_ULP_ACCEPTED,	/* no RTR to wait for */
	WEFT_CONN_ULP_ACCEPTED_P2P,
	WEFT_CONN_ULP_REJECTED,
	WEFT_CONN_READY,	/* the initiator's first FPDU is in */
	WEFT_CONN_TIMED_OUT,
	WEFT_CONN_PEER_CLOSED,	/* FIN or reset before the stream runs */
	WEFT_CONN_STREAM_CLOSING,
	WEFT_CONN_STREAM_CLOSED,
	WEFT_CONN_ABANDONED,	/* consumer destroyed its id, device goes away */
	WEFT_CONN_EVENTS
};

enum weft_conn_action {
	WEFT_CONNA_SEND_REQUEST		= 1 << 0,
	WEFT_CONNA_SEND_REPLY		= 1 << 1,
	WEFT_CONNA_SEND_REJECT		= 1 << 2,
	WEFT_CONNA_START_STREAM		= 1 << 3,
	WEFT_CONNA_TELL_REQUEST		= 1 << 4,
	WEFT_CONNA_TELL_REPLY		= 1 << 5,	/* outcome of connect, good or bad */
	WEFT_CONNA_TELL_ESTABLISHED	= 1 << 6,
	WEFT_CONNA_TELL_DISCONNECT	= 1 << 7,
	WEFT_CONNA_TELL_CLOSE		= 1 << 8,
	WEFT_CONNA_ARM_TIMER		= 1 << 9,
	WEFT_CONNA_CANCEL_TIMER		= 1 << 10,
	WEFT_CONNA_ABORT_STREAM		= 1 << 11,
	WEFT_CONNA_RELEASE		= 1 << 12,	/* close the socket we still own */
	WEFT_CONNA_IMPOSSIBLE		= 1 << 13,
};

struct weft_conn_step {
	u8 next;
	u16 actions;
};

struct weft_conn_step weft_conn_fsm(enum weft_conn_state state, enum weft_conn_event event);
const char *weft_conn_state_name(enum weft_conn_state state);
const char *weft_conn_event_name(enum weft_conn_event event);

#endif
