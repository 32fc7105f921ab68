/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What all directly connected QPs of a device share.
 */
#ifndef WEFT_CM_DIRECTS_H
#define WEFT_CM_DIRECTS_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/xarray.h>

/**
 * struct weft_directs - the QPs of a device, and the requests for them
 * @lock: protects everything here but @port, and what struct weft_direct says
 * @by_qpn: struct weft_direct, from RTR until the QP leaves it
 * @ports: listeners, one for each address that is in use
 * @held: requests that came before their QP was in RTR
 * @num_held: of them
 * @port: TCP port of all devices that are to be reached; 0: no QP is connected directly.
 *	May be changed at any time and counts for QPs that enter RTR later
 */
struct weft_directs {
	/*
	 * by_qpn, ports, held, num_held, weft_conn.held, weft_direct_port.users,
	 * weft_direct.state, weft_direct.own, weft_direct.peer_rq_psn, weft_direct.peer_told,
	 * weft_direct.conn, weft_direct.may_send, weft_direct.ord, weft_direct.retry_time,
	 * weft_direct.waits_since, weft_direct.waits, weft_direct.grace_end, weft_direct.next_try,
	 * weft_direct.backoff, weft_direct.told, weft_direct.lost
	 */
	struct mutex lock;
	struct xarray by_qpn;
	struct list_head ports;
	struct list_head held;
	u32 num_held;
	u32 port;
};

#endif
