/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * MPA start frames on a socket: whole ones out, and in bit by bit.
 */
#ifndef WEFT_CM_START_H
#define WEFT_CM_START_H

#include <linux/types.h>

#include "proto/mpa_start.h"

struct weft_sock;

/**
 * struct weft_start_out - a frame on its way out
 * @len: bytes of it, 0: there is none
 * @sent: bytes TCP has taken
 */
struct weft_start_out {
	u32 len;
	u32 sent;
	u8 frame[WEFT_MPA_FRAME_MAX];
};

/**
 * struct weft_start_in - a frame that comes in
 * @request: a request is due, else a reply
 * @have: bytes of it
 * @need: bytes of it as far as is known: first the fixed part, then all
 */
struct weft_start_in {
	bool request;
	u32 have;
	u32 need;
	u8 frame[WEFT_MPA_FRAME_MAX];
};

int weft_start_recv(struct weft_start_in *in, struct weft_sock *s);
int weft_start_send(struct weft_start_out *out, struct weft_sock *s);

#endif
