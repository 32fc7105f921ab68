/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What verbs and cm hand to a stream, and what it tells them.
 */
#ifndef WEFT_ENGINE_STATE_CONFIG_H
#define WEFT_ENGINE_STATE_CONFIG_H

#include <linux/atomic.h>
#include <linux/types.h>
#include <linux/xarray.h>

struct weft_db_stat;
struct weft_counters;
struct weft_cq;
struct weft_recvq;
struct weft_sendq;
struct weft_stag_table;
struct weft_stream;

/**
 * struct weft_stream_index - all streams of a device
 * @xa: by QP number; read under RCU, or under its lock (irqsave): then its owner is not gone
 * @next: number to try next
 * @close_timeout: milliseconds a peer may take to answer our FIN or Terminate with its
 *	own FIN; may be changed at any time
 * @rnr_timeout: milliseconds for which a message waits for a receive, 0: it does not; may be
 *	changed at any time
 * @atomics: peers of later connections may ask for them; may be changed at any time
 * @loopback: enum weft_loopback_mode; may be changed at any time
 * @sq_poll_interval: microseconds between two looks at the queue of a process that streams,
 *	0: none is polled; may be changed at any time
 * @polled: queues that are looked at (engine/run/defer.c)
 * @tcp_counted: jiffies when TCP's counts were last looked at
 */
struct weft_stream_index {
	struct xarray xa;
	u32 next;
	u32 close_timeout;
	u32 rnr_timeout;
	u8 atomics;
	u8 loopback;
	u32 sq_poll_interval;
	atomic_t polled;
	unsigned long tcp_counted;
};

enum weft_stream_event {
	WEFT_STREAM_FATAL,	/* an own error, lost framing, or the peer's Terminate */
	WEFT_STREAM_REQ_ERR,	/* the peer broke the protocol */
	WEFT_STREAM_ACCESS_ERR,	/* the peer asked for what it has no right to */
	WEFT_STREAM_LAST_WQE,	/* in error, and no receive of the SRQ is held */
};

/**
 * struct weft_stream_qp_events - what verbs hears
 * @async: process context, no weft lock held, at most once per kind
 */
struct weft_stream_qp_events {
	void (*async)(void *owner, enum weft_stream_event event);
};

/**
 * struct weft_stream_cm_events - what the connection hears
 * @ready: responder only: the initiator's first FPDU (or the RTR) is in; softirq
 * @lost: the peer has closed, or TCP has lost it, and the stream goes on without; softirq. NULL:
 *	it goes down
 * @closing: the connection is going down, from either end
 * @closed: the socket is gone; the last call, exactly once per started stream
 *
 * @closing and @closed: process context, no weft lock held, in this order,
 * @closing is never left out. @error is 0 for an orderly close, else -errno.
 */
struct weft_stream_cm_events {
	void (*ready)(void *owner);
	void (*lost)(void *owner);
	void (*closing)(void *owner, int error);
	void (*closed)(void *owner);
};

/**
 * struct weft_stream_config - what a stream works on; all of it outlives it
 * @ifindex: of the device's network device, for traces
 * @pd: protection domain of the QP
 * @rq_pd: protection domain of the receive queue: that of the QP, or that of the SRQ
 * @rq: its own or a shared receive queue
 * @shared_rq: @rq belongs to an SRQ: it is not flushed
 * @signal_all: every send completes
 * @db_stat: of the process that posts, NULL for a kernel consumer
 */
struct weft_stream_config {
	int ifindex;
	u32 pd;
	u32 rq_pd;
	bool kernel;
	bool signal_all;
	bool shared_rq;
	struct weft_sendq *sq;
	struct weft_recvq *rq;
	struct weft_cq *send_cq;
	struct weft_cq *recv_cq;
	struct weft_stag_table *stags;
	struct weft_counters *counters;
	struct weft_db_stat *db_stat;
	const struct weft_stream_qp_events *events;
	void *owner;
};

void weft_stream_put(struct weft_stream *st);

#endif
