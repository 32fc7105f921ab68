// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Every limit the device names can be had, and carries data. */
#define _GNU_SOURCE
#include "verbs.h"

#include <limits.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#define SGES	32
#define INLINE	512
#define STAGS	16777215
#define ABILITIES                                                                      \
	(IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_SRQ_RESIZE | \
	 IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_PORT_ACTIVE_EVENT)

static struct end s2, c2;
static struct ibv_device_attr dev;
static struct ibv_cq *cq;

CASE("limits", limits_named)
{
	struct ibv_port_attr port;
	__be16 pkey;

	CHECK(!ibv_query_device(s.id->verbs, &dev));
	CHECK(dev.max_qp == 65536 && dev.max_cq == 65536 && dev.max_srq == 65536);
	CHECK(dev.max_pd == 65536);
	CHECK(dev.max_qp_wr >= 65536 && dev.max_srq_wr >= 65536 && dev.max_cqe >= 4194304);
	CHECK(dev.max_sge >= SGES && dev.max_sge_rd >= SGES && dev.max_srq_sge >= SGES);
	CHECK(dev.max_mr == STAGS && dev.max_mw == STAGS);
	CHECK(dev.max_qp_rd_atom == 255 && dev.max_qp_init_rd_atom == 255);
	CHECK(dev.max_mr_size >= 1ULL << 40);
	CHECK(dev.max_res_rd_atom == 255 * 65536);
	CHECK(dev.page_size_cap == (uint64_t)sysconf(_SC_PAGESIZE));
	CHECK((dev.device_cap_flags & ABILITIES) == ABILITIES);
	CHECK(!ibv_query_port(s.id->verbs, 1, &port) && port.gid_tbl_len == 128);
	CHECK(port.pkey_tbl_len == 1 && port.max_msg_sz == UINT32_MAX);
	CHECK(dev.max_pkeys == 1 && port.max_vl_num == 1);
	CHECK(!ibv_query_pkey(s.id->verbs, 1, 0, &pkey) && pkey == 0xffff); /* in any order */
}

static void largest_qp(struct end *e)
{
	struct ibv_qp_init_attr attr = {
		.cap = { dev.max_qp_wr, dev.max_qp_wr, dev.max_sge, dev.max_sge, INLINE },
		.qp_type = IBV_QPT_RC,
	};

	cq = ibv_create_cq(e->id->verbs, dev.max_cqe, NULL, NULL, 0);
	CHECK(cq && cq->cqe >= dev.max_cqe);
	attr.send_cq = attr.recv_cq = cq;
	CHECK(!rdma_create_qp(e->id, NULL, &attr));
	CHECK((int)attr.cap.max_send_wr >= dev.max_qp_wr);
	CHECK((int)attr.cap.max_recv_wr >= dev.max_qp_wr);
	CHECK((int)attr.cap.max_send_sge >= dev.max_sge);
	CHECK((int)attr.cap.max_recv_sge >= dev.max_sge && attr.cap.max_inline_data >= INLINE);
	e->id->send_cq = e->id->recv_cq = cq;
}

/* Pieces of different lengths with holes in between, from @mr. */
static uint32_t scatter(struct ibv_sge *list, struct ibv_mr *mr)
{
	uint32_t total = 0;

	for (int i = 0; i < SGES; i++) {
		list[i] = sge(mr, i * 1000, 1 + i * 29);
		total += list[i].length;
	}
	return total;
}

static void same_bytes(const struct ibv_sge *list, const unsigned char *flat)
{
	for (int i = 0; i < SGES; i++) {
		CHECK(!memcmp((void *)(uintptr_t)list[i].addr, flat, list[i].length));
		flat += list[i].length;
	}
}

static void many_elements(void)
{
	struct ibv_sge list[SGES];
	struct ibv_recv_wr *bad_r, rwr = { .wr_id = 1, .sg_list = list, .num_sge = SGES };
	struct ibv_send_wr *bad, wr = { .wr_id = 2, .sg_list = list, .num_sge = SGES };
	uint32_t total = scatter(list, s2.own);

	/* Into them by a message and by a Read, out of them by a message. */
	wr.send_flags = IBV_SEND_SIGNALED;
	CHECK(!ibv_post_recv(s2.id->qp, &rwr, &bad_r));
	fill(&c2, 1);
	CHECK(!send_sge(&c2, 3, sge(c2.open, 0, total), 0));
	CHECK(expect(cq, 1, IBV_WC_SUCCESS).byte_len == total);
	expect(c2.id->send_cq, 3, IBV_WC_SUCCESS);
	same_bytes(list, c2.buf);

	fill(&c2, 2);
	wr.opcode = IBV_WR_RDMA_READ;
	wr.wr.rdma.remote_addr = (uintptr_t)c2.buf;
	wr.wr.rdma.rkey = c2.open->rkey;
	CHECK(!ibv_post_send(s2.id->qp, &wr, &bad));
	CHECK(expect(cq, 2, IBV_WC_SUCCESS).byte_len == total);
	same_bytes(list, c2.buf);

	fill(&s2, 3);
	wr.opcode = IBV_WR_SEND;
	CHECK(!recv_sge(&c2, 4, sge(c2.own, 0, total)));
	CHECK(!ibv_post_send(s2.id->qp, &wr, &bad));
	expect(cq, 2, IBV_WC_SUCCESS);
	CHECK(expect(c2.id->recv_cq, 4, IBV_WC_SUCCESS).byte_len == total);
	same_bytes(list, c2.buf + BYTES);
}

static void long_inline(void)
{
	struct ibv_sge sg = { (uintptr_t)s2.buf, INLINE, 0 };
	struct ibv_send_wr *bad, wr = { .wr_id = 5, .opcode = IBV_WR_SEND, .sg_list = &sg };

	fill(&s2, 4);
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
	CHECK(!recv_sge(&c2, 6, sge(c2.own, 0, INLINE)));
	CHECK(!ibv_post_send(s2.id->qp, &wr, &bad));
	expect(cq, 5, IBV_WC_SUCCESS);
	expect(c2.id->recv_cq, 6, IBV_WC_SUCCESS);
	CHECK(!memcmp(c2.buf + BYTES, s2.buf, INLINE));
	sg.length++;
	CHECK(ibv_post_send(s2.id->qp, &wr, &bad) == EINVAL);
}

/* Both queues to the brim, in one list each; then all of it completes once. */
static void full_to_the_brim(void)
{
	int n = dev.max_qp_wr;
	struct ibv_recv_wr *bad_r, *r = calloc(n, sizeof(*r));
	struct ibv_send_wr *bad, *w = calloc(n, sizeof(*w));
	struct ibv_sge sg = sge(s2.own, 0, 1);

	CHECK(r && w);
	for (int i = 0; i < n; i++) {
		r[i] = (struct ibv_recv_wr){ i, i + 1 < n ? &r[i + 1] : NULL, &sg, 1 };
		w[i] = (struct ibv_send_wr){ .wr_id = i,
					     .next = i + 1 < n ? &w[i + 1] : NULL,
					     .opcode = IBV_WR_RDMA_WRITE,
					     .send_flags = IBV_SEND_SIGNALED,
					     .sg_list = &sg,
					     .num_sge = 1 };
		w[i].wr.rdma.remote_addr = (uintptr_t)c2.buf + i % BYTES;
		w[i].wr.rdma.rkey = c2.open->rkey;
	}
	CHECK(!ibv_post_recv(s2.id->qp, r, &bad_r));
	CHECK(recv_sge(&s2, 1, sg) == ENOMEM);
	memset(c2.buf, 0, BYTES);
	*(unsigned char *)s2.own->addr = 0xa5;
	CHECK(!ibv_post_send(s2.id->qp, w, &bad));
	for (int i = 0; i < n; i++) {
		struct ibv_wc wc;

		while (!ibv_poll_cq(cq, 1, &wc))
			;
		CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == (unsigned int)i);
	}
	CHECK(!post(&s2, 9, IBV_WR_RDMA_READ, sge(s2.own, 0, 1), (uintptr_t)c2.buf, c2.open->rkey,
		    IBV_SEND_SIGNALED));
	expect(cq, 9, IBV_WC_SUCCESS);
	for (int i = 0; i < BYTES; i++)
		CHECK(c2.buf[i] == 0xa5);
	free(r);
	free(w);
}

CASE("limits", limits_used)
{
	CHECK(!ibv_query_device(s.id->verbs, &dev));
	connect_pair(&c2, &s2, largest_qp);
	many_elements();
	long_inline();
	full_to_the_brim();
	release(&c2);
	s2.id->send_cq = s2.id->recv_cq = NULL;
	release(&s2);
	CHECK(!ibv_destroy_cq(cq));
}

CASE("limits", largest_srq)
{
	struct ibv_srq_init_attr attr = {};
	struct ibv_srq *srq;

	CHECK(!ibv_query_device(s.id->verbs, &dev));
	attr.attr.max_wr = dev.max_srq_wr;
	attr.attr.max_sge = dev.max_srq_sge;
	srq = ibv_create_srq(s.id->pd, &attr);
	CHECK(srq && (int)attr.attr.max_wr >= dev.max_srq_wr);
	CHECK(!ibv_destroy_srq(srq));
	attr.attr.max_wr++;
	errno = 0;
	CHECK(!ibv_create_srq(s.id->pd, &attr) && errno == EINVAL);
	attr.attr.max_wr = 1;
	attr.attr.max_sge = dev.max_srq_sge + 1;
	errno = 0;
	CHECK(!ibv_create_srq(s.id->pd, &attr) && errno == EINVAL);
	attr.attr.max_sge = 1;
	attr.attr.max_wr = 0;
	errno = 0;
	CHECK(!ibv_create_srq(s.id->pd, &attr) && errno == EINVAL);
}

/* Of 16 million regions as many as a small machine has room for. */
CASE("limits", many_regions)
{
	const int count = 20000;
	struct ibv_mr **mr = calloc(count, sizeof(*mr));
	const long before = pinned();

	CHECK(mr);
	for (int i = 0; i < count; i++) {
		mr[i] = ibv_reg_mr(s.id->pd, s.buf + i % BYTES, 1, IBV_ACCESS_REMOTE_READ);
		CHECK(mr[i]);
	}
	fill(&s, 1);
	for (int i = 0; i < count; i += 997) {
		CHECK(!post(&c, i, IBV_WR_RDMA_READ, sge(c.own, 0, 1), (uintptr_t)mr[i]->addr,
			    mr[i]->rkey, IBV_SEND_SIGNALED));
		expect(c.id->send_cq, i, IBV_WC_SUCCESS);
		CHECK(*(unsigned char *)c.own->addr == s.buf[i % BYTES]);
	}
	CHECK(pinned() >= before + count * 4L);
	for (int i = 0; i < count; i++)
		CHECK(!ibv_dereg_mr(mr[i]));
	CHECK(pinned() == before);
	free(mr);
}

/* The window that took the last STag works: 10 bytes are read through it. */
static void last_window(struct ibv_mw *mw, struct ibv_mr *region)
{
	struct ibv_mw_bind bind = {
		.wr_id = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { region, (uintptr_t)s.buf, 10, IBV_ACCESS_REMOTE_READ },
	};

	CHECK(!ibv_bind_mw(s.id->qp, mw, &bind));
	expect(s.id->send_cq, 1, IBV_WC_SUCCESS);
	fill(&s, 5);
	CHECK(!post(&c, 2, IBV_WR_RDMA_READ, sge(c.own, 0, 10), (uintptr_t)s.buf, mw->rkey,
		    IBV_SEND_SIGNALED));
	expect(c.id->send_cq, 2, IBV_WC_SUCCESS);
	CHECK(!memcmp(c.own->addr, s.buf, 10));
}

/* What a test that runs for minutes has come to, if its time ends before it does. */
static void tell_millions(const char *what, int count)
{
	if (count && count % 1000000 == 0)
		fprintf(stderr, "%d millions %s\n", count / 1000000, what);
}

/*
 * Have the pages of so many bytes of heap now, one after the other. In User-Mode Linux
 * pages that came one by one are a mapping of the host each, and a process may have 65530
 * (vm.max_map_count): then its page faults never end.
 */
static void heap_of(size_t bytes)
{
	void *all;

	CHECK(mallopt(M_MMAP_MAX, 0) && mallopt(M_TRIM_THRESHOLD, INT_MAX));
	all = malloc(bytes);
	CHECK(all);
	explicit_bzero(all, bytes);
	free(all);
}

/* All there are. Windows, because they need the least memory: 8 GB of it. */
UNLISTED(every_stag)
{
	struct ibv_mr *region = ibv_reg_mr(s.id->pd, s.buf, BYTES, IBV_ACCESS_MW_BIND);
	const int regions = 5; /* of the two ends, and this one */
	struct ibv_mw **mw;
	int made = 0, err;

	heap_of(STAGS * (sizeof(*mw) + sizeof(**mw) + 32));
	mw = calloc(STAGS, sizeof(*mw));
	CHECK(region && mw);
	while (made < STAGS && (mw[made] = ibv_alloc_mw(s.id->pd, IBV_MW_TYPE_1)))
		tell_millions("made", ++made);
	err = errno;
	printf("%d windows and %d regions, then: %s\n", made, regions, strerror(err));
	CHECK(made + regions == STAGS && err == ENOMEM);
	last_window(mw[made - 1], region);
	while (made--) {
		CHECK(!ibv_dealloc_mw(mw[made]));
		tell_millions("left", made);
	}
	CHECK(!ibv_dereg_mr(region));
	free(mw);
}
