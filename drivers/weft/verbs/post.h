/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Kernel consumers' work requests into the rings the engine reads.
 */
#ifndef WEFT_VERBS_POST_H
#define WEFT_VERBS_POST_H

#include <rdma/ib_verbs.h>

struct weft_recvq;

int weft_post_send(struct ib_qp *ib, const struct ib_send_wr *wr, const struct ib_send_wr **bad);
int weft_post_recv(struct ib_qp *ib, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad);
int weft_post_recv_list(struct weft_recvq *rq, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad);

#endif
