/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The handshake of a connection: its socket, its two frames, what they mean.
 */
#ifndef WEFT_CM_HANDSHAKE_H
#define WEFT_CM_HANDSHAKE_H

#include <linux/socket.h>
#include <linux/types.h>

#include "cm/start.h"
#include "proto/conn_fsm.h"
#include "proto/mpa_start.h"

struct weft_conn;
struct weft_sock;

/**
 * struct weft_handshake - what is needed only until the outcome is known
 * @policy: what this side wants
 * @local, @remote: of an initiator as asked for; once TCP is up, as they are
 * @in: the peer's frame
 * @peer: @in taken apart
 * @out: our frame
 * @pd, @pd_len: private data of an initiator, for a second attempt
 * @tos: for an initiator's socket, -1: none
 * @itself: TCP connects the socket to itself: there are no frames, and no other end
 * @retried: this is the second attempt, with revision 1
 */
struct weft_handshake {
	struct weft_mpa_policy policy;
	struct sockaddr_storage local;
	struct sockaddr_storage remote;
	struct weft_start_in in;
	struct weft_mpa_frame peer;
	struct weft_start_out out;
	u8 pd[WEFT_MPA_PD_MAX];
	u16 pd_len;
	int tos;
	bool itself;
	bool retried;
};

int weft_handshake_connect(struct weft_conn *conn);
void weft_handshake_serve(struct weft_conn *conn, struct weft_sock *s);
int weft_handshake_prepare_accept(struct weft_conn *conn, const void *pd, u32 pd_len);
bool weft_handshake_peer_left(const struct weft_conn *conn);
void weft_handshake_prepare_reject(struct weft_conn *conn, const void *pd, u32 pd_len);

/* The worker of the connection. */
bool weft_handshake_poll(struct weft_conn *conn, enum weft_conn_event *event);
void weft_handshake_close(struct weft_conn *conn);

#endif
