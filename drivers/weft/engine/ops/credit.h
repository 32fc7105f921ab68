/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Requests that are answered.
 */
#ifndef WEFT_ENGINE_OPS_CREDIT_H
#define WEFT_ENGINE_OPS_CREDIT_H

#include <linux/types.h>

struct weft_stream;
struct weft_swr;
struct weft_tx_op;

bool weft_tx_waits(struct weft_stream *st, const struct weft_swr *swr, const struct weft_tx_op *op);
void weft_tx_response_in(struct weft_stream *st);

#endif
