// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Which regions of its parent a child may name: those whose memory it shares, as a whole. */
#define _GNU_SOURCE
#include "verbs.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static struct ibv_mr *part_shared;

static void may_not_send_a_part(void)
{
	CHECK(send_sge(&c, 1, sge(part_shared, 0, 8), 0) == EFAULT);
}

static void may_not_send_what_it_lacks(void)
{
	CHECK(!munmap(part_shared->addr, sysconf(_SC_PAGESIZE)));
	may_not_send_a_part();
}

/*
 * Memory that a child has a copy of is no less a copy for a page that it shares; nor does it see
 * what it has unmapped.
 */
CASE("processes", a_region_that_is_shared_in_part)
{
	const int access = PROT_READ | PROT_WRITE, flags = MAP_ANONYMOUS | MAP_PRIVATE;
	const int shared = MAP_ANONYMOUS | MAP_SHARED | MAP_FIXED;
	long page = sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 2 * page, access, flags, -1, 0);

	CHECK(at != MAP_FAILED);
	CHECK(mmap(at, page, access, shared, -1, 0) == at);
	part_shared = ibv_reg_mr(c.id->pd, at, 2 * page, IBV_ACCESS_LOCAL_WRITE);
	CHECK(part_shared);
	ends_well(child(may_not_send_a_part));
	works(&c, &s);
	CHECK(!ibv_dereg_mr(part_shared));

	CHECK(mmap(at, 2 * page, access, shared, -1, 0) == at);
	part_shared = ibv_reg_mr(c.id->pd, at, 2 * page, IBV_ACCESS_LOCAL_WRITE);
	CHECK(part_shared);
	ends_well(child(may_not_send_what_it_lacks));
	works(&c, &s);
	CHECK(!ibv_dereg_mr(part_shared));
	CHECK(!munmap(at, 2 * page));
}

static struct ibv_qp *elsewhere;

static void posts_what_is_shared(void)
{
	struct ibv_sge sg = sge(part_shared, 0, 8);
	struct ibv_recv_wr *bad, wr = { .sg_list = &sg, .num_sge = 1 };

	CHECK(!ibv_post_recv(elsewhere, &wr, &bad));
}

/* Two mappings, right behind one that is private: it is no part of the region. */
CASE("processes", a_shared_region_behind_what_is_private)
{
	const int access = PROT_READ | PROT_WRITE, flags = MAP_ANONYMOUS | MAP_SHARED | MAP_FIXED;
	struct ibv_qp_init_attr attr = {
		.send_cq = c.id->send_cq,
		.recv_cq = c.id->recv_cq,
		.qp_type = IBV_QPT_RC,
		.cap = { 1, 1, 1, 1, 0 },
	};
	long page = sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 3 * page, access, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);

	CHECK(at != MAP_FAILED);
	CHECK(mmap(at + page, page, access, flags, -1, 0) == at + page);
	CHECK(mmap(at + 2 * page, page, access, flags, -1, 0) == at + 2 * page);
	part_shared = ibv_reg_mr(c.id->pd, at + page, 2 * page, IBV_ACCESS_LOCAL_WRITE);
	CHECK(part_shared);
	CHECK(elsewhere = ibv_create_qp(c.id->pd, &attr));
	ends_well(child(posts_what_is_shared));
	CHECK(!ibv_destroy_qp(elsewhere));
	works(&c, &s);
	CHECK(!ibv_dereg_mr(part_shared));
	CHECK(!munmap(at, 3 * page));
}

static void posts_a_key_elsewhere(void)
{
	struct ibv_sge sg = sge(s.own, 0, 8);
	struct ibv_recv_wr *bad, wr = { .sg_list = &sg, .num_sge = 1 };

	CHECK(recv_sge(&s, 1, sg) == EFAULT);
	CHECK(!ibv_post_recv(elsewhere, &wr, &bad));
}

/* Two devices may give the same key: what it is of one says nothing about the other. */
CASE("processes", a_key_is_that_of_its_context)
{
	struct ibv_context *context = ibv_open_device(s.id->verbs->device);
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_pd *pd;

	CHECK(context && (pd = ibv_alloc_pd(context)));
	CHECK(attr.send_cq = attr.recv_cq = ibv_create_cq(context, 2, NULL, NULL, 0));
	CHECK(elsewhere = ibv_create_qp(pd, &attr));
	ends_well(child(posts_a_key_elsewhere));
	CHECK(!ibv_destroy_qp(elsewhere) && !ibv_destroy_cq(attr.send_cq));
	CHECK(!ibv_dealloc_pd(pd) && !ibv_close_device(context));
	works(&c, &s);
}
