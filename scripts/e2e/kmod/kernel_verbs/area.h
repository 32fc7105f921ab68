/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Memory of many single pages, with its region.
 */
#ifndef WEFT_TEST_AREA_H
#define WEFT_TEST_AREA_H

#include <linux/scatterlist.h>
#include <rdma/ib_verbs.h>

#define PAGES	4096
#define BYTES	(PAGES * PAGE_SIZE)

struct op;

struct area {
	struct page **pages;
	struct sg_table sgt;
	struct ib_mr *mr;
	bool mapped;
};

int area_make(struct area *a);
void area_drop(struct area *a);

int area_register(struct area *a);
int area_register_by(struct ib_qp *qp, struct area *a);
int area_register_from(struct ib_qp *qp, struct area *a, unsigned int skip);
int area_post_rdma_of(struct op *op, enum ib_wr_opcode opcode, struct ib_sge sge,
		      const struct area *remote);
int area_post_rdma(struct op *op, enum ib_wr_opcode opcode, struct area *local,
		   struct area *remote);
int area_do_rdma(enum ib_wr_opcode opcode, struct area *local, struct area *remote);

void area_fill(struct area *a, int seed);
bool area_is_filled(struct area *a, int seed);
int area_compare(const struct area *a, const struct area *b);

#endif
