/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Requests that are answered.
 */
#ifndef WEFT_ENGINE_OPS_CREDIT_H
#define WEFT_ENGINE_OPS_CREDIT_H

#include <linux/types.h>

#include "proto/fault.h"

struct weft_stream;
struct weft_swr;
struct weft_tx_op;

enum weft_fault weft_tx_check_sink(struct weft_stream *st, const struct weft_swr *swr);
bool weft_tx_waits(struct weft_stream *st, const struct weft_swr *swr, const struct weft_tx_op *op);
void weft_tx_response_in(struct weft_stream *st);

#endif
