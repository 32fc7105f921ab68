/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A connection, from the first byte of its handshake until its stream is gone.
 */
#ifndef WEFT_CM_CONN_H
#define WEFT_CM_CONN_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/timer.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "proto/conn_fsm.h"
#include "proto/mpa_start.h"

struct iw_cm_id;
struct weft_cm;
struct weft_conn;
struct weft_direct;
struct weft_direct_port;
struct weft_handshake;
struct weft_listener;
struct weft_sock;
struct weft_stream;

/* Bits of @events behind those of enum weft_conn_event. */
#define WEFT_CONN_POLL	WEFT_CONN_EVENTS	/* something happened to the socket */
#define WEFT_CONN_TURN	(WEFT_CONN_EVENTS + 1)	/* the consumer is to be told of the request */

/**
 * struct weft_conn_ops - what takes the place of iw_cm
 * @act: carries out an action, enum weft_conn_action; false: the usual has to be done, too. The
 *	worker
 * @lost: the stream has no connection any more, and goes on; softirq
 */
struct weft_conn_ops {
	bool (*act)(struct weft_conn *conn, unsigned long action);
	void (*lost)(struct weft_conn *conn);
};

/**
 * struct weft_conn - a connection
 * @handle: its number in the device, which consumers hold instead of a pointer, so
 *	that an answer that comes too late finds nothing; 0: not begun
 * @initiator: we connect
 * @work: runs everything; its items hold a reference
 * @events: what happened, bits set from any context, taken by @work
 * @timer: sets WEFT_CONN_TIMED_OUT
 * @lock: protects @state and @todo; and, while the consumer decides, that only
 *	one of accept, reject and the worker goes on
 * @state: enum weft_conn_state
 * @todo: enum weft_conn_action not carried out yet
 * @id: of iw_cm, a reference held; protected by @lock, as is the next one
 * @established: iw_cm has that event
 * @context: of the consumer, whose @id it is
 * @by_context: in the table of that name in @cm, as long as there is an @id
 * @listener: where we came from, until the consumer has answered
 * @backlog: in a list of @listener's backlog
 * @place: enum weft_backlog_place; protected by the backlog's lock, as are the next two
 * @arrived: jiffies
 * @probe: offered although the consumer has not answered as many as it asked for
 * @ops: of connections without a consumer of iw_cm, else NULL
 * @port: where we came from, if that is where QPs connect directly
 * @at_port: in its list of those that have not sent their request, or in weft_directs.held
 * @held: in the latter; under the lock of that
 * @dropped: given up for a newer connection of @port; protected by its lock
 * @direct: the QP is connected directly, a reference held; NULL until it is known which
 * @stream: of the consumer's QP, a reference held
 * @reserved: @stream is, for us; until it is started or will not be
 * @sock: until the stream owns it
 * @hs: until the consumer knows the outcome
 * @result: what both agreed on
 * @status: why it failed, 0: it did not
 * @close_error: why the stream went down
 * @deadline: jiffies
 * @timing: @deadline counts
 * @connected: the consumer was told so, and has to be told of the end
 *
 * What has no owner above belongs to @work; before that runs, to the creator.
 * Until it is closed it holds a reference to itself.
 */
struct weft_conn {
	struct kref ref;
	struct rcu_head rcu;
	struct weft_cm *cm;
	u32 handle;
	bool initiator;
	bool connected;

	struct work_struct work;
	unsigned long events;
	struct timer_list timer;

	struct mutex lock; /* state, todo, id, established */
	enum weft_conn_state state;
	u32 todo;

	struct iw_cm_id *id;
	bool established;
	const void *context;
	struct hlist_node by_context;
	struct weft_listener *listener;
	struct list_head backlog;
	u8 place;
	bool probe;
	unsigned long arrived;
	const struct weft_conn_ops *ops;
	struct weft_direct_port *port;
	struct list_head at_port;
	bool held;
	bool dropped;
	struct weft_direct *direct;
	struct weft_stream *stream;
	bool reserved;
	struct weft_sock *sock;
	struct weft_handshake *hs;
	struct weft_mpa_result result;
	int status;
	int close_error;
	bool timing;
	unsigned long deadline;
};

struct weft_conn *weft_conn_new(struct weft_cm *cm, bool initiator);
struct weft_conn *weft_conn_find(struct weft_cm *cm, u32 handle);
void weft_conn_get(struct weft_conn *conn);
void weft_conn_put(struct weft_conn *conn);
int weft_conn_reserve(struct weft_conn *conn, u32 qpn);
void weft_conn_unreserve(struct weft_conn *conn);

void weft_conn_post(struct weft_conn *conn, unsigned int event);
int weft_conn_begin(struct weft_conn *conn, enum weft_conn_event event);
void weft_conn_decide(struct weft_conn *conn, enum weft_conn_event event);

void weft_conn_arm(struct weft_conn *conn);
void weft_conn_disarm(struct weft_conn *conn);

#endif
