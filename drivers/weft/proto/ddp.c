// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The first message numbers of a stream, either way. RFC 5041, 4.3.
 */
#include "proto/ddp.h"

/* Numbers of a new stream: every queue starts at 1 (RFC 5041, 4.3). */
static void first_msns(u32 *msn)
{
	u32 qn;

	for (qn = 0; qn < WEFT_DDP_QUEUES; qn++)
		msn[qn] = 1;
}

/**
 * weft_ddp_tx_init - no message sent yet
 * @tx: numbers of the sending direction
 */
void weft_ddp_tx_init(struct weft_ddp_tx *tx)
{
	first_msns(tx->msn);
}

/**
 * weft_ddp_rx_init - nothing received yet
 * @rx: expectations of the receiving direction
 */
void weft_ddp_rx_init(struct weft_ddp_rx *rx)
{
	memset(rx, 0, sizeof(*rx));
	first_msns(rx->msn);
}
