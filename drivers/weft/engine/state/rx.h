/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The receiving direction of a stream.
 */
#ifndef WEFT_ENGINE_STATE_RX_H
#define WEFT_ENGINE_STATE_RX_H

#include <linux/types.h>

#include "engine/state/paging.h"
#include "mem/access.h"
#include "net/mpa_rx.h"
#include "proto/ddp.h"
#include "proto/rdmap.h"
#include "ring/recvq.h"
#include "uapi/weft-abi.h"

struct weft_cq_batch;
struct weft_mem_region;
struct weft_swr;

/**
 * struct weft_rx_held - a completion kept back until an STag is quiet
 * @busy: invalidated, but another stream is still copying; NULL: nothing is held
 * @swr: the read it ends, or NULL: @cqe is a receive
 */
struct weft_rx_held {
	struct weft_mem_region *busy;
	struct weft_swr *swr;
	struct weft_cqe cqe;
};

/**
 * struct weft_rx - the receiving direction; owner: the socket lock
 * @sock: deframer
 * @mem: its view of memory; holds a region while it reads
 * @rq_mem: likewise for receives, whose buffers are in the domain of the receive queue
 * @ddp: expected MSN and MO per untagged queue
 * @msgs: which messages are in progress
 * @like: header of the last segment, while others like it are expected (engine/path/rx.c)
 * @rwr: receive in hand, valid while @rwr_held
 * @rtr_kinds: a ready-to-receive message of one of these kinds must come first
 * @first_seen: the peer has sent its first FPDU
 * @atomics: the peer may ask for them
 * @rtr_send: the message in progress is the RTR Send: no receive is consumed
 * @written: bytes of the last Write, unless a Send, a Read Request, an Atomic Request or
 *	Immediate Data came after it: byte_len of Immediate Data that comes next
 * @placed: bytes of the tagged message in progress
 * @tx_needed: tx has something to do once the loop is done
 * @batch: completion queues to notify then
 * @held: reading goes on when this is settled
 * @paging: or when these pages are there
 */
struct weft_rx {
	struct weft_mpa_rx sock;
	struct weft_mem_user mem;
	struct weft_mem_user rq_mem;
	struct weft_ddp_rx ddp;
	struct weft_rdmap_rx msgs;
	struct weft_ddp_hdr like;
	struct weft_rwr rwr;
	bool rwr_held;
	bool first_seen;
	bool atomics;
	bool rtr_send;
	u8 rtr_kinds;
	bool tx_needed;
	u32 written;
	u32 placed;
	struct weft_cq_batch *batch;
	struct weft_rx_held held;
	struct weft_paging paging;
};

#endif
