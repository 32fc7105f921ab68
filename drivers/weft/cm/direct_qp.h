/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* A QP that is connected by ibv_modify_qp(): of cm/direct.c and cm/direct_conn.c only. */
#ifndef WEFT_CM_DIRECT_QP_H
#define WEFT_CM_DIRECT_QP_H

#include <linux/kref.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "cm/direct.h"
#include "proto/direct.h"

struct weft_cm;
struct weft_conn;
struct weft_direct_port;
struct weft_stream;

/* What has become of its connection. */
enum weft_direct_state {
	WEFT_DIRECT_WAITING,	/* there is none yet */
	WEFT_DIRECT_CONNECTED,	/* there is one, or was */
	WEFT_DIRECT_ENDED,	/* there is none any more: the QP left RTR and RTS, or failed */
};

/**
 * struct weft_direct - a QP from RTR on
 * @ref: one of the QP, one of each connection
 * @cm: of the device
 * @stream: of the QP, a reference held
 * @role: which end connects
 * @local: own address; with the port at the end that accepts
 * @peer: address of the peer; with the port if that accepts
 * @tos: of the socket, or WEFT_TOS_NONE
 * @ird: as in struct weft_direct_config
 * @min_rnr_timer: as there
 * @port: where the peer comes to
 * @state: enum weft_direct_state
 * @own: what the peer is told
 * @peer_rq_psn: what the peer has told
 * @peer_told: @peer_rq_psn is known; what is sent must begin with it
 * @conn: at most one, a reference held
 * @may_send: the QP is in RTS
 * @ord: as in struct weft_direct_send
 * @retry_time: jiffies that a request may wait for the peer, 0: for ever
 * @waits_since: jiffies when a request was found to wait
 * @waits: it counts
 * @grace_end: jiffies; until then it is not worth while to be connected before RTS
 * @next_try: jiffies
 * @backoff: between the last attempt and the next
 * @lost: @conn is over, and the QP does not know
 * @told: the operator knows why it fails
 * @work: attempts, and the clock
 *
 * From @state on protected by the lock of weft_directs.
 */
struct weft_direct {
	struct kref ref;
	struct weft_cm *cm;
	struct weft_stream *stream;
	enum weft_direct_role role;
	struct sockaddr_storage local;
	struct sockaddr_storage peer;
	int tos;
	u32 ird;
	u8 min_rnr_timer;
	struct weft_direct_port *port;

	enum weft_direct_state state;
	struct weft_direct_hello own;
	u32 peer_rq_psn;
	bool peer_told;
	struct weft_conn *conn;
	bool may_send;
	u32 ord;
	unsigned long retry_time;
	unsigned long waits_since;
	bool waits;
	unsigned long grace_end;
	unsigned long next_try;
	unsigned long backoff;
	bool told;
	bool lost;
	struct delayed_work work;
};

/* cm/direct.c */
void weft_direct_free(struct kref *ref);
void weft_direct_log_failure(struct weft_direct *d, const char *why);
bool weft_direct_knows_enough(const struct weft_direct *d);
void weft_direct_plan_next_look(struct weft_direct *d);
void weft_direct_back_off(struct weft_direct *d);
void weft_direct_settle(struct weft_direct *d);

/* cm/direct_conn.c */
void weft_direct_try_to_connect(struct weft_direct *d);
void weft_direct_answer_held(struct weft_direct *d);

#endif
