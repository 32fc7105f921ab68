// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory in pages that are not contiguous: made, registered, filled, compared,
 * and moved by RDMA.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include "area.h"

#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "op.h"
#include "world.h"

#define RIGHTS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)

int area_make(struct area *a)
{
	struct scatterlist *sg;
	int i;

	a->pages = vcalloc(PAGES, sizeof(*a->pages));
	CHECK(a->pages);
	for (i = 0; i < PAGES; i++) {
		a->pages[i] = alloc_page(GFP_KERNEL);
		CHECK(a->pages[i]);
	}
	/* One element per page, and neighbours swapped, so that none are merged. */
	for (i = 0; i < PAGES; i += 2)
		swap(a->pages[i], a->pages[i + 1]);
	CHECK(!sg_alloc_table(&a->sgt, PAGES, GFP_KERNEL));
	for_each_sgtable_sg(&a->sgt, sg, i) sg_set_page(sg, a->pages[i], PAGE_SIZE, 0);
	a->mapped = ib_dma_map_sg(world.pd->device, a->sgt.sgl, PAGES, DMA_BIDIRECTIONAL);
	CHECK(a->mapped);
	a->mr = ib_alloc_mr(world.pd, IB_MR_TYPE_MEM_REG, PAGES);
	return PTR_ERR_OR_ZERO(a->mr);
}

void area_drop(struct area *a)
{
	int i;

	if (!IS_ERR_OR_NULL(a->mr))
		ib_dereg_mr(a->mr);
	if (a->mapped)
		ib_dma_unmap_sg(world.pd->device, a->sgt.sgl, PAGES, DMA_BIDIRECTIONAL);
	sg_free_table(&a->sgt);
	for (i = 0; a->pages && i < PAGES; i++)
		if (a->pages[i])
			__free_page(a->pages[i]);
	vfree(a->pages);
}

int area_register(struct area *a)
{
	return area_register_by(world.self.to.client->qp, a);
}

int area_register_by(struct ib_qp *qp, struct area *a)
{
	return area_register_from(qp, a, 0);
}

int area_register_from(struct ib_qp *qp, struct area *a, unsigned int skip)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.wr.send_flags = IB_SEND_SIGNALED,
		.mr = a->mr,
		.access = RIGHTS,
	};
	struct op op;

	op_init(&op);
	op_expect(&op, qp, IB_WC_REG_MR);
	ib_update_fast_reg_key(a->mr, ib_inc_rkey(a->mr->rkey));
	wr.key = a->mr->rkey;
	wr.wr.wr_cqe = &op.cqe;
	CHECK(ib_map_mr_sg(a->mr, a->sgt.sgl, a->sgt.nents, &skip, PAGE_SIZE) == PAGES);
	return ib_post_send(qp, &wr.wr, NULL) ?: op_wait(&op);
}

/* To or from the beginning of an area. */
int area_post_rdma_of(struct op *op, enum ib_wr_opcode opcode, struct ib_sge sge,
		      const struct area *remote)
{
	struct ib_rdma_wr wr = {
		.wr.wr_cqe = &op->cqe,
		.wr.opcode = opcode,
		.wr.send_flags = IB_SEND_SIGNALED,
		.wr.sg_list = &sge,
		.wr.num_sge = 1,
		.wr.ex.invalidate_rkey = sge.lkey,
		.remote_addr = remote->mr->iova,
		.rkey = remote->mr->rkey,
	};

	op_init(op);
	op_expect(op, world.self.to.client->qp,
		  opcode == IB_WR_RDMA_WRITE ? IB_WC_RDMA_WRITE : IB_WC_RDMA_READ);
	return ib_post_send(world.self.to.client->qp, &wr.wr, NULL);
}

/* All of one area to or from the other. */
int area_post_rdma(struct op *op, enum ib_wr_opcode opcode, struct area *local, struct area *remote)
{
	struct ib_sge sge = { .addr = local->mr->iova, .length = BYTES, .lkey = local->mr->lkey };

	return area_post_rdma_of(op, opcode, sge, remote);
}

int area_do_rdma(enum ib_wr_opcode opcode, struct area *local, struct area *remote)
{
	struct op op;

	return area_post_rdma(&op, opcode, local, remote) ?: op_wait(&op);
}

void area_fill(struct area *a, int seed)
{
	int i;

	for (i = 0; i < PAGES; i++)
		memset(page_address(a->pages[i]), seed + i * 7, PAGE_SIZE);
}

bool area_is_filled(struct area *a, int seed)
{
	int i;

	for (i = 0; i < PAGES; i++)
		if (memchr_inv(page_address(a->pages[i]), seed + i * 7, PAGE_SIZE))
			return false;
	return true;
}

int area_compare(const struct area *a, const struct area *b)
{
	int i;

	for (i = 0; i < PAGES; i++)
		CHECK(!memcmp(page_address(a->pages[i]), page_address(b->pages[i]), PAGE_SIZE));
	return 0;
}
