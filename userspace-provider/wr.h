/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The ibv_wr_* interface: work requests built call by call in the ring. */
#ifndef WEFT_WR_H
#define WEFT_WR_H

#include <stdint.h>

#include <infiniband/verbs.h>

/* What ibv_create_qp_ex() may ask for: enum ibv_qp_create_send_ops_flags. */
extern const uint64_t weft_wr_buildable;

/* Set the operations that @send_ops asks for, and the common ones. */
void weft_wr_init(struct ibv_qp_ex *qpx, uint64_t send_ops);

#endif
