/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Looking into a stream from outside: resource tracking, statistics.
 */
#ifndef WEFT_ENGINE_LIFE_INTROSPECT_H
#define WEFT_ENGINE_LIFE_INTROSPECT_H

#include <linux/socket.h>
#include <linux/types.h>

#include "net/tcp_info.h"
#include "proto/fault.h"
#include "proto/mpa_start.h"
#include "proto/qp_fsm.h"

struct weft_counters;
struct weft_stream;
struct weft_stream_index;

/* Untagged queues of DDP, which an MSN each counts messages on. */
#define WEFT_STREAM_QUEUES	4

/**
 * struct weft_stream_info - a snapshot for query_qp and resource tracking
 * @started: it has, or had, a connection: depths were agreed on
 * @ird, @ord: depths
 */
struct weft_stream_info {
	enum weft_qp_state state;
	bool started;
	u32 ird;
	u32 ord;
	u32 mulpdu;
	bool sq_drained;
};

/**
 * struct weft_stream_end - why a stream failed
 * @fault: the rule that was broken, seen from here
 * @peer_terminated: the peer has sent a Terminate
 * @peer_fault: what it says, NONE for a code without a name
 */
struct weft_stream_end {
	enum weft_fault fault;
	bool peer_terminated;
	enum weft_fault peer_fault;
};

/**
 * struct weft_stream_details - a stream, told to an operator
 * @started: it has, or had, a connection; else the fields about one are 0
 * @initiator: this side connected
 * @gate_open: it may send; a responder waits for the initiator's first FPDU
 * @rnr_waits: a message waits for a receive
 * @mpa: what both sides agreed on
 * @end: why it failed, if it did
 * @tx_msn: next to use, per untagged queue
 * @rx_msn: next expected
 * @ord_used: requests that wait for their response, at most ORD
 * @ird_used: requests of the peer we owe a response, at most IRD
 * @staged: bytes of the outgoing stream that were built
 * @pushed: bytes of it that TCP has taken
 * @connected: the socket is there, and so are the fields below
 * @local, @peer: addresses and ports
 * @tcp: what TCP knows
 */
struct weft_stream_details {
	bool started;
	bool initiator;
	bool gate_open;
	bool rnr_waits;
	struct weft_mpa_result mpa;
	struct weft_stream_end end;
	u32 tx_msn[WEFT_STREAM_QUEUES];
	u32 rx_msn[WEFT_STREAM_QUEUES];
	u32 ord_used;
	u32 ird_used;
	u64 staged;
	u64 pushed;
	bool connected;
	struct sockaddr_storage local;
	struct sockaddr_storage peer;
	struct weft_tcp_info tcp;
};

void weft_stream_query(struct weft_stream *st, struct weft_stream_info *out);
void weft_stream_get_error(struct weft_stream *st, struct weft_stream_end *out);
void weft_stream_inspect(struct weft_stream *st, struct weft_stream_details *out);

void weft_stream_count_tcp(struct weft_stream *st);
void weft_stream_count_tcp_all(struct weft_stream_index *index, unsigned long max_age);
void weft_stream_count_in(struct weft_stream *st, const struct weft_counters *to);

#endif
