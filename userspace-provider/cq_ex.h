/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The extended poll interface of a CQ: start, next, end, and readers. */
#ifndef WEFT_CQ_EX_H
#define WEFT_CQ_EX_H

#include <stdint.h>

struct ibv_cq_ex;
struct weft_cq;

/* What ibv_create_cq_ex() may ask to read: enum ibv_create_cq_wc_flags. */
extern const uint64_t weft_cq_ex_readable;

/* Set the readers that @wc_flags asks for; the rest stays NULL. */
void weft_cq_ex_init(struct weft_cq *cq, uint64_t wc_flags);

#endif
