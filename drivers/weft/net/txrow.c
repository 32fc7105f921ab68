// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Where a row of FPDUs begins and ends.
 */
#include "net/txrow.h"

#include <linux/minmax.h>

#include "net/txroom.h"
#include "proto/hot.h"
#include "proto/mpa_frame.h"

/**
 * weft_txrow_begin - start FPDUs of @ulpdu_len each
 * @tx: the writer, between two FPDUs, weft_txrow_may_begin()
 * @ulpdu_len: of each
 * @most: how many there are
 *
 * Context: process, tx claim. Return: how many are to be put now, or 0 if they go one by one.
 */
u32 weft_hot weft_txrow_begin(struct weft_txsock *tx, u32 ulpdu_len, u32 most)
{
	u32 wire_len = weft_mpa_bare_len(ulpdu_len);
	u32 staged = tx->pos - tx->pushed;

	/* An FPDU of exactly one segment at the start of one leaves nothing to align. */
	if (wire_len != tx->mss || staged >= tx->goal || weft_txroom_make(tx, wire_len))
		return 0;
	weft_txroom_mark(tx);
	tx->end = tx->pos + (u64)wire_len * min(most, DIV_ROUND_UP(tx->goal - staged, wire_len));
	if (weft_txroom_open(tx))
		return 0;
	most = tx->room / wire_len;
	if (!most)
		tx->room = 0;
	else
		tx->big = true;
	return most;
}

/**
 * weft_txrow_end - complete the row
 * @tx: the writer, all FPDUs of it put
 *
 * Context: process, tx claim. Return: 0, or -errno: weft_txsock_cancel() undoes all of them.
 */
int weft_hot weft_txrow_end(struct weft_txsock *tx)
{
	return weft_txroom_close(tx);
}
