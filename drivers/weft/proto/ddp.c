// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The first message numbers of a stream, either way: each queue starts at 1. RFC 5041, 4.3.
 */
#include "proto/ddp.h"

/**
 * weft_ddp_tx_init - no message sent yet
 * @tx: numbers of the sending direction
 */
void weft_ddp_tx_init(struct weft_ddp_tx *tx)
{
	u32 qn;

	for (qn = 0; qn < WEFT_DDP_QUEUES; qn++)
		tx->msn[qn] = 1;
}

/**
 * weft_ddp_rx_init - nothing received yet
 * @rx: expectations of the receiving direction
 */
void weft_ddp_rx_init(struct weft_ddp_rx *rx)
{
	u32 qn;

	memset(rx, 0, sizeof(*rx));
	for (qn = 0; qn < WEFT_DDP_QUEUES; qn++)
		rx->msn[qn] = 1;
}
