/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Long messages of a process are sent from its memory, where that pays.
 */
#ifndef WEFT_ENGINE_PATH_ZC_TX_H
#define WEFT_ENGINE_PATH_ZC_TX_H

#include <linux/types.h>

struct weft_msg;
struct weft_stream;
struct weft_swr;

/* Bytes of a message that is worth it. */
#define WEFT_ZC_TX_MIN 131072U

/* Holder of the tx claim. */
void weft_zc_tx_begin(struct weft_stream *st, struct weft_swr *swr, const struct weft_msg *msg);
bool weft_zc_tx_segment(const struct weft_stream *st, const struct weft_msg *msg);

/* The stream's worker, on the way down. */
bool weft_zc_tx_settle(struct weft_stream *st);
void weft_zc_tx_end(struct weft_stream *st);

#endif
