/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The actions of a connection: what a step of its state machine entails.
 */
#ifndef WEFT_CM_ACTION_H
#define WEFT_CM_ACTION_H

struct weft_conn;

/* Context: the connection's worker. */
void weft_action_run(struct weft_conn *conn, unsigned long actions);
void weft_action_offer_request(struct weft_conn *conn);

#endif
