/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef WEFT_ENGINE_OPS_LOCAL_H
#define WEFT_ENGINE_OPS_LOCAL_H

#include "engine/ops/op.h"

enum weft_fault weft_local_inv(struct weft_stream *st, struct weft_swr *swr, struct weft_msg *msgs);
enum weft_fault weft_local_bind(struct weft_stream *st, struct weft_swr *swr,
				struct weft_msg *msgs);
enum weft_fault weft_local_register(struct weft_stream *st, struct weft_swr *swr,
				    struct weft_msg *msgs);

#endif
