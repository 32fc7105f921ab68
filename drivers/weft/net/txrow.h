/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * FPDUs in a row: each fills one TCP segment, none has CRC or markers, and the room for
 * all of them is opened once.
 */
#ifndef WEFT_NET_TXROW_H
#define WEFT_NET_TXROW_H

#include "base/copy.h"
#include "net/txsock.h"
#include "proto/crc.h"
#include "proto/wire.h"

/* At the start of a segment, with nothing to add to its octets? Context: tx claim. */
static inline bool weft_txrow_may_begin(const struct weft_txsock *tx)
{
	return !tx->seg_fill && !tx->crc && !tx->markers && !tx->loan;
}

u32 weft_txrow_begin(struct weft_txsock *tx, u32 ulpdu_len, u32 most);
int weft_txrow_end(struct weft_txsock *tx);

/**
 * weft_txrow_put - the next octets of the row
 * @tx: the writer, within a row
 * @from: kernel memory
 * @len: octets, no more than are left of the row
 *
 * Context: process, tx claim.
 */
static __always_inline void weft_txrow_put(struct weft_txsock *tx, const void *from, u32 len)
{
	weft_copy(tx->to, from, len);
	weft_txsock_advance(tx, len);
}

/**
 * weft_txrow_put_crc - what ends an FPDU
 * @tx: the writer, within a row, all of a ULPDU put
 *
 * A segment is a multiple of four octets, so there is no pad. Context: process, tx claim.
 */
static __always_inline void weft_txrow_put_crc(struct weft_txsock *tx)
{
	weft_crc_store(WEFT_CRC_SEED, tx->to);
	weft_txsock_advance(tx, WEFT_MPA_CRC_OCTETS);
}

#endif
