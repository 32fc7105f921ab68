/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The completion handler: where it runs, and posting from it.
 */
#ifndef WEFT_TEST_EVENT_H
#define WEFT_TEST_EVENT_H

#include <rdma/ib_verbs.h>

struct op;

void event_watch(struct ib_cq *cq);
void event_answer(struct ib_qp *qp, struct op *op);
int event_check(void);

/* Calls since event_watch(). */
int event_count(void);

#endif
