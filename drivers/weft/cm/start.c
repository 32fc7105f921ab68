// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Carrying MPA start frames, RFC 5044, 7.1. Nothing here waits, so a peer that
 * sends half a frame keeps only itself waiting, and nothing behind the
 * frame is touched: those bytes are for the stream.
 */
#include "cm/start.h"

#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "net/tcp_socket.h"

/**
 * weft_start_recv - read as much of the frame as is there, and nothing behind it
 * @in: the frame
 * @s: connected socket
 *
 * Context: process; does not wait. Return: 0 when the frame is complete, -EAGAIN
 * when more has to come, -EPROTO when it never will be a frame, -ECONNRESET when
 * the peer is gone, or what the socket says.
 */
int weft_start_recv(struct weft_start_in *in, struct weft_sock *s)
{
	const char *key = in->request ? WEFT_MPA_KEY_REQ : WEFT_MPA_KEY_REP;
	u16 pd_length;

	while (in->have < in->need) {
		int n = weft_sock_recv(s, in->frame + in->have, in->need - in->have);

		if (n <= 0)
			return n ?: -ECONNRESET;
		in->have += n;
		/* What does not even begin like a frame need not be read up to its end. */
		if (memcmp(in->frame, key, min_t(u32, in->have, WEFT_MPA_KEY_LEN)))
			return -EPROTO;
		if (in->have != WEFT_MPA_START_LEN)
			continue;
		if (weft_mpa_start_length(in->frame, in->request, &pd_length))
			return -EPROTO;
		in->need = WEFT_MPA_START_LEN + pd_length;
	}
	return 0;
}

/**
 * weft_start_send - write what is left of the frame
 * @out: the frame
 * @s: connected socket
 *
 * Context: process; does not wait. Return: 0 when TCP has all of it, -EAGAIN when
 * the socket is full, or another -errno.
 */
int weft_start_send(struct weft_start_out *out, struct weft_sock *s)
{
	while (out->sent < out->len) {
		int n = weft_sock_send(s, out->frame + out->sent, out->len - out->sent);

		if (n < 0)
			return n;
		out->sent += n;
	}
	return 0;
}
