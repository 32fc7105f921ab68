// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * States of a stream: what every event means in every state. RFC 5040, 6.2
 * (graceful, Terminate, abortive); RFC 5041, 6.2; RFC 5044, 8.
 */
#include "proto/qp_fsm.h"

/* clang-format off */
#define GO(state, actions)	{ WEFT_QP_##state, (actions) }
#define STAY(state)		{ WEFT_QP_##state, 0 }
#define NEVER(state)		{ WEFT_QP_##state, WEFT_QPA_IMPOSSIBLE }
/* clang-format on */

/* The connection is no use any more; what is left to do is to flush. */
#define FLUSH	(WEFT_QPA_TX | WEFT_QPA_RELEASE)
/* The same, and this is the moment it turns out. */
#define DOWN	(WEFT_QPA_STOP_RX | WEFT_QPA_TELL_CM | FLUSH)
/* The peer has to be told first. */
#define SEND_TERMINATE \
	(WEFT_QPA_STOP_RX | WEFT_QPA_TX | WEFT_QPA_TELL_CM | WEFT_QPA_DEADLINE | WEFT_QPA_REPORT)

static const struct weft_qp_step steps[WEFT_QP_STATES][WEFT_QP_EVENTS] = {
	/*
	 * A socket may fail between being attached and STARTED; there are no
	 * FPDUs yet, so a fault is not reported.
	 */
	[WEFT_QP_IDLE] = {
		[WEFT_QP_STARTED]		= GO(RTS, WEFT_QPA_TX),
		[WEFT_QP_CLOSE]			= STAY(IDLE),
		[WEFT_QP_ABORT]			= GO(ERROR, FLUSH),
		[WEFT_QP_FAULTED]		= GO(ERROR, FLUSH | WEFT_QPA_REPORT),
		[WEFT_QP_PEER_TERMINATED]	= NEVER(IDLE),
		[WEFT_QP_TERMINATE_SENT]	= NEVER(IDLE),
		[WEFT_QP_SQ_DRAINED]		= NEVER(IDLE),
		[WEFT_QP_PEER_CLOSED]		= GO(ERROR, DOWN),
		[WEFT_QP_CONN_LOST]		= GO(ERROR, DOWN),
		[WEFT_QP_TIMED_OUT]		= NEVER(IDLE),
		[WEFT_QP_RESET]			= STAY(IDLE),
	},
	[WEFT_QP_RTS] = {
		[WEFT_QP_STARTED]		= NEVER(RTS),
		[WEFT_QP_CLOSE]			= GO(CLOSING, WEFT_QPA_TX | WEFT_QPA_DEADLINE),
		[WEFT_QP_ABORT]			= GO(ERROR, DOWN),
		[WEFT_QP_FAULTED]		= GO(TERMINATE, SEND_TERMINATE),
		[WEFT_QP_PEER_TERMINATED]	= GO(ERROR, DOWN | WEFT_QPA_REPORT),
		[WEFT_QP_TERMINATE_SENT]	= NEVER(RTS),
		[WEFT_QP_SQ_DRAINED]		= NEVER(RTS),
		[WEFT_QP_PEER_CLOSED]		= GO(ERROR, DOWN),
		[WEFT_QP_CONN_LOST]		= GO(ERROR, DOWN),
		[WEFT_QP_TIMED_OUT]		= NEVER(RTS),
		[WEFT_QP_RESET]			= NEVER(RTS),
	},
	[WEFT_QP_CLOSING] = {
		[WEFT_QP_STARTED]		= NEVER(CLOSING),
		[WEFT_QP_CLOSE]			= STAY(CLOSING),
		[WEFT_QP_ABORT]			= GO(ERROR, DOWN),
		[WEFT_QP_FAULTED]		= GO(TERMINATE, SEND_TERMINATE),
		[WEFT_QP_PEER_TERMINATED]	= GO(ERROR, DOWN | WEFT_QPA_REPORT),
		[WEFT_QP_TERMINATE_SENT]	= NEVER(CLOSING),
		[WEFT_QP_SQ_DRAINED]		= GO(CLOSING, WEFT_QPA_HALF_CLOSE |
							      WEFT_QPA_DEADLINE),
		/* Both close at once: the peer still takes what is queued. */
		[WEFT_QP_PEER_CLOSED]		= STAY(CLOSING),
		[WEFT_QP_CONN_LOST]		= GO(ERROR, DOWN),
		[WEFT_QP_TIMED_OUT]		= GO(ERROR, DOWN),
		[WEFT_QP_RESET]			= NEVER(CLOSING),
	},
	/*
	 * Entered once, with SEND_TERMINATE, so rx is stopped and cm knows. A FIN of the
	 * peer leaves our direction open: the Terminate still goes, and both
	 * FINs together come as CONN_LOST. Only the first fault is reported.
	 */
	[WEFT_QP_TERMINATE] = {
		[WEFT_QP_STARTED]		= NEVER(TERMINATE),
		[WEFT_QP_CLOSE]			= STAY(TERMINATE),
		[WEFT_QP_ABORT]			= GO(ERROR, FLUSH),
		[WEFT_QP_FAULTED]		= STAY(TERMINATE),
		[WEFT_QP_PEER_TERMINATED]	= GO(ERROR, FLUSH),
		[WEFT_QP_TERMINATE_SENT]	= GO(TERMINATE, WEFT_QPA_HALF_CLOSE |
								WEFT_QPA_DEADLINE),
		[WEFT_QP_SQ_DRAINED]		= STAY(TERMINATE),
		[WEFT_QP_PEER_CLOSED]		= STAY(TERMINATE),
		[WEFT_QP_CONN_LOST]		= GO(ERROR, FLUSH),
		[WEFT_QP_TIMED_OUT]		= GO(ERROR, FLUSH),
		[WEFT_QP_RESET]			= NEVER(TERMINATE),
	},
	/* Whatever was on its way when it happened comes too late. */
	[WEFT_QP_ERROR] = {
		[WEFT_QP_STARTED]		= STAY(ERROR),
		[WEFT_QP_CLOSE]			= STAY(ERROR),
		[WEFT_QP_ABORT]			= STAY(ERROR),
		[WEFT_QP_FAULTED]		= STAY(ERROR),
		[WEFT_QP_PEER_TERMINATED]	= STAY(ERROR),
		[WEFT_QP_TERMINATE_SENT]	= STAY(ERROR),
		[WEFT_QP_SQ_DRAINED]		= STAY(ERROR),
		[WEFT_QP_PEER_CLOSED]		= STAY(ERROR),
		[WEFT_QP_CONN_LOST]		= STAY(ERROR),
		[WEFT_QP_TIMED_OUT]		= STAY(ERROR),
		[WEFT_QP_RESET]			= GO(IDLE, 0),
	},
};

/**
 * weft_qp_fsm - one step
 * @state: where the stream is
 * @event: what happened
 *
 * Return: the state to be in, and what to do about it, once it is entered.
 */
struct weft_qp_step weft_qp_fsm(enum weft_qp_state state, enum weft_qp_event event)
{
	return steps[state][event];
}

/**
 * weft_qp_state_name - for logs and traces
 * @state: any value
 */
const char *weft_qp_state_name(enum weft_qp_state state)
{
	static const char *const names[WEFT_QP_STATES] = {
		/* clang-format off */
		[WEFT_QP_IDLE]		= "idle",
		[WEFT_QP_RTS]		= "rts",
		[WEFT_QP_CLOSING]	= "closing",
		[WEFT_QP_TERMINATE]	= "terminate",
		[WEFT_QP_ERROR]		= "error",
		/* clang-format on */
	};

	return (size_t)state < ARRAY_SIZE(names) ? names[state] : "?";
}

/**
 * weft_qp_event_name - for logs and traces
 * @event: any value
 */
const char *weft_qp_event_name(enum weft_qp_event event)
{
	static const char *const names[WEFT_QP_EVENTS] = {
		[WEFT_QP_STARTED]		= "started",
		[WEFT_QP_CLOSE]			= "close",
		[WEFT_QP_ABORT]			= "abort",
		[WEFT_QP_FAULTED]		= "faulted",
		[WEFT_QP_PEER_TERMINATED]	= "peer-terminated",
		[WEFT_QP_TERMINATE_SENT]	= "terminate-sent",
		[WEFT_QP_SQ_DRAINED]		= "sq-drained",
		[WEFT_QP_PEER_CLOSED]		= "peer-closed",
		[WEFT_QP_CONN_LOST]		= "conn-lost",
		[WEFT_QP_TIMED_OUT]		= "timed-out",
		[WEFT_QP_RESET]			= "reset",
	};

	return (size_t)event < ARRAY_SIZE(names) ? names[event] : "?";
}
