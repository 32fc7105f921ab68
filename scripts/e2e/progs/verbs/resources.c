// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What objects take, and that it is given back with them: mappings, numbers, completions. */
#define _GNU_SOURCE
#include "../mappings.h"
#include "verbs.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define MAPPINGS 1024
#define CQES	 (1 << 17) /* 4 MiB */
#define ROUNDS	 32

static struct end s2, c2;

static int mappings(void)
{
	static struct mapping all[MAPPINGS];
	int n = find_mappings(all, MAPPINGS);

	CHECK(n >= 0 && n < MAPPINGS);
	return n;
}

static struct ibv_qp *qp_of(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = { .cap = { WRS, WRS, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC,
					 .send_cq = cq,
					 .recv_cq = cq,
					 .srq = srq };
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	CHECK(qp);
	return qp;
}

static void resize_cq(struct ibv_cq *cq)
{
	int before = mappings();

	for (int i = 0; i < ROUNDS; i++)
		CHECK(!ibv_resize_cq(cq, i % 2 ? 5000 : 9000));
	CHECK(mappings() == before);
}

static void resize_srq(struct ibv_srq *srq)
{
	int before = mappings();

	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_srq_attr attr = { .max_wr = i % 2 ? 500 : 900 };

		CHECK(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	}
	CHECK(mappings() == before);
}

/* A queue that moves, and one that is destroyed, leaves no mapping behind. */
CASE("resources", no_mapping_is_left_behind)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 500, .max_sge = 1 } };
	int before = mappings();

	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_cq *cq = ibv_create_cq(c.id->verbs, 5000, NULL, NULL, 0);
		struct ibv_srq *srq = ibv_create_srq(c.id->pd, &attr);
		struct ibv_qp *one, *other;

		CHECK(cq && srq);
		one = qp_of(c.id->pd, cq, NULL);
		other = qp_of(c.id->pd, cq, srq);
		if (!i) {
			CHECK(mappings() > before);
			resize_cq(cq);
			resize_srq(srq);
		}
		CHECK(!ibv_destroy_qp(one) && !ibv_destroy_qp(other));
		CHECK(!ibv_destroy_srq(srq) && !ibv_destroy_cq(cq));
	}
	CHECK(mappings() == before);
}

/* Pages of the address space. */
static long address_space(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages;

	CHECK(f && fscanf(f, "%ld", &pages) == 1);
	fclose(f);
	return pages;
}

/* Addresses are kept for a queue before the kernel is asked; a refusal gives them back. */
CASE("resources", no_space_of_a_refused_resize_is_left_behind)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(s.id->pd, &init);
	struct ibv_srq_attr attr = {};
	struct ibv_device_attr dev;
	long before;

	CHECK(srq && !ibv_query_device(s.id->verbs, &dev));
	attr.max_wr = dev.max_srq_wr + 1;
	before = address_space();
	for (int i = 0; i < 4; i++) {
		CHECK(ibv_resize_cq(s.id->recv_cq, dev.max_cqe + 1) == EINVAL);
		CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == EINVAL);
	}
	CHECK(address_space() - before < 256);
	CHECK(!ibv_destroy_srq(srq));
	works(&c, &s);
}

/* Nor is more kept than the new queue takes, which stands where the addresses were kept. */
CASE("resources", a_resize_needs_the_space_of_the_queue)
{
	struct rlimit before, tight;

	CHECK(!getrlimit(RLIMIT_AS, &before));
	tight = before;
	tight.rlim_cur = address_space() * sysconf(_SC_PAGESIZE) + CQES * 32 + (1 << 20);
	CHECK(!setrlimit(RLIMIT_AS, &tight));
	CHECK(!ibv_resize_cq(s.id->recv_cq, CQES));
	CHECK(!setrlimit(RLIMIT_AS, &before));
	CHECK(s.id->recv_cq->cqe == CQES);
	works(&c, &s);
}

/* Without the other one, a queue that was mapped is given back, and there is no QP. */
static void qp_without_space(struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr attr = { .cap = cap,
					 .qp_type = IBV_QPT_RC,
					 .send_cq = s.id->send_cq,
					 .recv_cq = s.id->recv_cq };
	int before = mappings();
	struct rlimit all, tight;

	CHECK(!getrlimit(RLIMIT_AS, &all));
	tight = all;
	tight.rlim_cur = address_space() * sysconf(_SC_PAGESIZE) + (256 << 10);
	CHECK(!setrlimit(RLIMIT_AS, &tight));
	errno = 0;
	CHECK(!ibv_create_qp(s.id->pd, &attr) && errno == ENOMEM);
	CHECK(!setrlimit(RLIMIT_AS, &all));
	CHECK(mappings() == before);
}

CASE("resources", half_a_qp_is_none)
{
	/* The other one shares its pages with no queue that is there already. */
	qp_without_space((struct ibv_qp_cap){ 16384, 256, 1, 1, 0 });
	qp_without_space((struct ibv_qp_cap){ 256, 16384, 1, 1, 0 });
	works(&c, &s);
}

/* Small queues share pages, and what one leaves there the next one takes. */
CASE("resources", holes_are_filled)
{
	struct ibv_cq *cq[4 * ROUNDS];
	int before = mappings(), all;

	for (int i = 0; i < 4 * ROUNDS; i++)
		CHECK((cq[i] = ibv_create_cq(c.id->verbs, 1, NULL, NULL, 0)));
	all = mappings();
	CHECK(all <= before + ROUNDS); /* each for several queues */
	for (int i = 0; i < 4 * ROUNDS; i += 2)
		CHECK(!ibv_destroy_cq(cq[i]));
	for (int i = 0; i < 4 * ROUNDS; i += 2)
		CHECK((cq[i] = ibv_create_cq(c.id->verbs, 1, NULL, NULL, 0)));
	CHECK(mappings() == all);
	for (int i = 0; i < 4 * ROUNDS; i++)
		CHECK(!ibv_destroy_cq(cq[i]));
	CHECK(mappings() < all);
}

/* What makes a queue is refused, and so is memory that is nowhere. */
static void refused_objects(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_srq_init_attr large = { .attr = { .max_wr = 1 << 30, .max_sge = 1 } };
	struct ibv_qp_init_attr attr = {
		.cap = { 1 << 30, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq
	};
	struct ibv_srq_attr more = { .max_wr = 1 << 17 };

	CHECK(!ibv_create_cq(pd->context, 1 << 30, NULL, NULL, 0));
	CHECK(!ibv_create_srq(pd, &large) && !ibv_create_qp(pd, &attr));
	CHECK(!ibv_reg_mr(pd, NULL, BYTES, 0));
	CHECK(ibv_resize_cq(cq, 1 << 23) && ibv_modify_srq(srq, &more, IBV_SRQ_MAX_WR));
}

/* One object of each kind, in a context of its own. */
static void uses_the_library(void)
{
	struct ibv_context *context = ibv_open_device(s.id->verbs->device);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_parent_domain_init_attr of = {};
	struct ibv_td_init_attr promise = {};
	struct ibv_srq_attr more = { .max_wr = 900 };
	struct ibv_pd *parent;
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_qp *qp;

	CHECK(context && (of.pd = ibv_alloc_pd(context)));
	CHECK((of.td = ibv_alloc_td(context, &promise)));
	parent = ibv_alloc_parent_domain(context, &of);
	cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	srq = ibv_create_srq(of.pd, &init);
	mr = ibv_reg_mr(of.pd, s.buf, BYTES, IBV_ACCESS_LOCAL_WRITE);
	mw = ibv_alloc_mw(of.pd, IBV_MW_TYPE_1);
	CHECK(parent && cq && srq && mr && mw);
	qp = qp_of(parent, cq, srq);
	CHECK(!ibv_resize_cq(cq, 900) && !ibv_resize_cq(cq, 9));
	CHECK(!ibv_modify_srq(srq, &more, IBV_SRQ_MAX_WR));
	refused_objects(of.pd, cq, srq);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_srq(srq) && !ibv_destroy_cq(cq));
	CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_mw(mw));
	CHECK(!ibv_dealloc_pd(parent) && !ibv_dealloc_td(of.td) && !ibv_dealloc_pd(of.pd));
	CHECK(!ibv_close_device(context));
}

/* Of the process' own memory the library keeps none, which a long-lived program would miss. */
CASE("resources", no_memory_of_the_library_is_left_behind)
{
	size_t before = 0, after;

	for (int i = 0; i <= 2 * ROUNDS; i++) {
		if (i == ROUNDS)
			before = mallinfo2().uordblks;
		uses_the_library();
	}
	after = mallinfo2().uordblks;
	printf("%zu bytes, then %zu\n", before, after);
	CHECK(after < before + ROUNDS * 16);
}

/* More than half of it, so that it is shared with no other queue. */
static void queue_of_a_page(void)
{
	struct ibv_cq *cq = ibv_create_cq(c.id->verbs, 64, NULL, NULL, 0);

	CHECK(cq && !ibv_destroy_cq(cq));
}

/* The kernel's own search for memory that is lost does not look for pages. */
CASE("resources", no_page_of_queues_is_left_behind)
{
	leaves_no_pages(queue_of_a_page);
}

/* A core dump shows what a program held, not what its queues look like. */
CASE("resources", queue_memory_is_in_no_core_dump)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	int of_queues = 0, seen = 0;
	char line[512];

	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		if (strchr(line, '-') && strchr(line, '/'))
			of_queues = !!strstr(line, "uverbs");
		if (!of_queues || strncmp(line, "VmFlags:", 8))
			continue;
		CHECK(strstr(line, " dd") && strstr(line, " de"));
		of_queues = 0;
		seen++;
	}
	fclose(f);
	CHECK(seen && seen == mappings());
}

static void no_mapping(size_t bytes, int flags, unsigned long offset)
{
	errno = 0;
	CHECK(mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, s.id->verbs->cmd_fd, offset) ==
	      MAP_FAILED);
	CHECK(errno == EINVAL);
}

/* What can be mapped are queues, whole and shared, and nothing else. */
CASE("resources", what_is_no_queue_is_not_mapped)
{
	const unsigned long page = sysconf(_SC_PAGESIZE);
	struct mapping of[MAPPINGS];
	int n = find_mappings(of, MAPPINGS);
	size_t bytes;

	CHECK(n > 0);
	bytes = of[0].end - of[0].begin;
	no_mapping(bytes, MAP_PRIVATE, of[0].offset);
	no_mapping(bytes + page, MAP_SHARED, of[0].offset);
	no_mapping(page, MAP_SHARED, 0);
	no_mapping(page, MAP_SHARED, 0xfffffUL * page);
	works(&c, &s);
}

/* Small queues share pages, and a page stays as long as one of them. */
CASE("resources", a_queue_begins_empty)
{
	struct ibv_send_wr *bad,
		wr = { .wr_id = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_cq *neighbour = ibv_create_cq(c.id->verbs, 4, NULL, NULL, 0);
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };

	CHECK(neighbour);
	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_cq *cq = ibv_create_cq(c.id->verbs, 4, NULL, NULL, 0);
		struct ibv_qp *qp;

		CHECK(cq && !ibv_poll_cq(cq, 1, &(struct ibv_wc){}));
		qp = qp_of(c.id->pd, cq, NULL);
		CHECK(!ibv_modify_qp(qp, &error, IBV_QP_STATE));
		CHECK(!ibv_post_send(qp, &wr, &bad));
		expect(cq, 1, IBV_WC_WR_FLUSH_ERR);
		CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
	}
	CHECK(!ibv_destroy_cq(neighbour));
}

/* A segment of an earlier life must find no QP: a number rests before it is used again. */
CASE("resources", qp_numbers_are_not_given_again_at_once)
{
	uint32_t seen[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_qp *qp = qp_of(c.id->pd, c.id->send_cq, NULL);

		seen[i] = qp->qp_num;
		for (int j = 0; j < i; j++)
			CHECK(seen[i] != seen[j]);
		CHECK(!ibv_destroy_qp(qp));
	}
}

static void with_the_recv_cq_of_s(struct end *e)
{
	struct ibv_qp_init_attr attr = { .cap = { WRS, WRS, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

	attr.recv_cq = s.id->recv_cq;
	CHECK(!rdma_create_qp(e->id, NULL, &attr));
}

/* All that was sent before has arrived: a Read is answered in its turn. */
static void settled(struct end *from, struct end *to)
{
	CHECK(!post(from, 77, IBV_WR_RDMA_READ, sge(from->own, 0, 8), (uintptr_t)to->buf,
		    to->open->rkey, IBV_SEND_SIGNALED));
	expect(from->id->send_cq, 77, IBV_WC_SUCCESS);
}

/* Two QPs complete to one CQ; with one of them only its completions go. */
CASE("resources", destroying_forgets_its_own_completions_only)
{
	struct ibv_cq *send_cq;

	connect_pair(&c2, &s2, with_the_recv_cq_of_s);
	for (int i = 0; i < 4; i++) {
		CHECK(!recv_sge(&s, i, sge(s.own, 0, 8)));
		CHECK(!recv_sge(&s2, 100 + i, sge(s2.own, 0, 8)));
		send_empty(&c);
		settled(&c, &s);
		send_empty(&c2);
		settled(&c2, &s2);
	}
	send_cq = s2.id->send_cq;
	s2.id->send_cq = s2.id->recv_cq = NULL;
	rdma_destroy_qp(s2.id);
	/* Where they were there is room again, before the queue is polled. */
	for (int i = 4; i < s.id->recv_cq->cqe; i++) {
		CHECK(!recv_sge(&s, i, sge(s.own, 0, 8)));
		send_empty(&c);
		settled(&c, &s);
	}
	for (int i = 0; i < s.id->recv_cq->cqe; i++)
		CHECK(expect(s.id->recv_cq, i, IBV_WC_SUCCESS).qp_num == s.id->qp->qp_num);
	nothing(s.id->recv_cq);
	works(&c, &s);
	CHECK(!ibv_destroy_cq(send_cq));
	release(&c2);
	release(&s2);
}

/* Up to the very last address, and one byte further. */
CASE("resources", a_region_that_wraps_is_refused)
{
	unsigned char *from = c.buf + 4096 - 64;
	uint64_t last = -64ULL;
	struct ibv_mr *mr;

	mr = ibv_reg_mr_iova(c.id->pd, from, 64, last, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_reg_mr_iova(c.id->pd, from, 65, last, IBV_ACCESS_LOCAL_WRITE));
	CHECK(errno == EINVAL);
}

/*
 * As many as the device says, and one more is refused: a few others may be there, of the two ends
 * and of other users of the device.
 */
static void reaches(const char *what, int most, void *(*make)(void), int (*drop)(void *))
{
	void **made = calloc(most + 1, sizeof(*made));
	int count = 0;

	CHECK(made);
	while (count <= most && (made[count] = make()))
		count++;
	printf("%d %s, then: %s\n", count, what, strerror(errno));
	CHECK(errno == ENOMEM && count <= most && count >= most - 16);
	CHECK(!drop(made[--count]));
	made[count] = make();
	CHECK(made[count]);
	CHECK(!make() && errno == ENOMEM);
	while (count >= 0)
		CHECK(!drop(made[count--]));
	free(made);
}

static void *make_pd(void)
{
	return ibv_alloc_pd(c.id->verbs);
}

static int drop_pd(void *pd)
{
	return ibv_dealloc_pd(pd);
}

static void *make_cq(void)
{
	return ibv_create_cq(c.id->verbs, 1, NULL, NULL, 0);
}

static int drop_cq(void *cq)
{
	return ibv_destroy_cq(cq);
}

static void *make_srq(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1, .max_sge = 1 } };

	return ibv_create_srq(c.id->pd, &attr);
}

static int drop_srq(void *srq)
{
	return ibv_destroy_srq(srq);
}

static void *make_lone_qp(void)
{
	struct ibv_qp_init_attr attr = { .cap = { 1, 1, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC,
					 .send_cq = c.id->send_cq,
					 .recv_cq = c.id->recv_cq };

	return ibv_create_qp(c.id->pd, &attr);
}

static int drop_qp(void *qp)
{
	return ibv_destroy_qp(qp);
}

static struct ibv_device_attr named(void)
{
	struct ibv_device_attr dev;

	CHECK(!ibv_query_device(c.id->verbs, &dev));
	return dev;
}

CASE("resources", as_many_pds_as_the_device_names)
{
	reaches("PDs", named().max_pd, make_pd, drop_pd);
}

CASE("resources", as_many_cqs_as_the_device_names)
{
	reaches("CQs", named().max_cq, make_cq, drop_cq);
}

CASE("resources", as_many_srqs_as_the_device_names)
{
	reaches("SRQs", named().max_srq, make_srq, drop_srq);
}

CASE("resources", as_many_qps_as_the_device_names)
{
	reaches("QPs", named().max_qp, make_lone_qp, drop_qp);
}

/* One after the other there may be more PDs than there are numbers for them. */
CASE("resources", pds_are_counted_down)
{
	struct ibv_device_attr dev;

	CHECK(!ibv_query_device(c.id->verbs, &dev));
	for (int i = 0; i <= dev.max_pd; i++) {
		struct ibv_pd *pd = ibv_alloc_pd(c.id->verbs);

		CHECK(pd);
		CHECK(!ibv_dealloc_pd(pd));
	}
}
