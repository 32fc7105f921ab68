/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The sending direction of a stream.
 */
#ifndef WEFT_ENGINE_STATE_TX_H
#define WEFT_ENGINE_STATE_TX_H

#include <linux/types.h>

#include "engine/state/msg.h"
#include "engine/state/paging.h"
#include "mem/access.h"
#include "net/mpa_tx.h"
#include "proto/ddp.h"
#include "proto/rdmap.h"

/**
 * struct weft_tx - the sending direction
 * @claim: engine/state/claim.h; its holder owns the rest
 * @sock: stager and pusher
 * @mem: its view of memory; holds a region while a batch is staged
 * @swr: work request in hand, fetched and waiting for a credit or a fence
 * @msg, @msgs, @cur: messages in hand
 * @hdr: RDMAP header of the one that has any
 * @sent: send queue index behind the last request whose bytes TCP has all
 * @ddp: next MSN per untagged queue
 * @rtr: kind of ready-to-receive message to send first, 0: none
 * @burst: answers sent since the send queue had its turn
 * @term_staged: the Terminate is out; nothing may follow
 * @drained: the send queue was found empty while closing
 * @paging: the message in hand, or an atomic that is owed, waits for these pages
 */
struct weft_tx {
	unsigned long claim;
	struct weft_mpa_tx sock;
	struct weft_mem_user mem;
	struct weft_swr *swr;
	u8 msgs;
	u8 cur;
	u8 hdr[WEFT_RDMAP_HDR_MAX];
	struct weft_msg msg[WEFT_MSGS_PER_WR];
	u32 sent;
	struct weft_ddp_tx ddp;
	u8 rtr;
	u8 burst;
	bool term_staged;
	bool drained;
	struct weft_paging paging;
};

#endif
