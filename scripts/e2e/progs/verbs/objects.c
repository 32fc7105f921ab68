// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Regions that change, domains, shared contexts. */
#define _GNU_SOURCE
#include "verbs.h"

#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../../drivers/weft/uapi/weft-abi.h"

#define OPEN (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static void write_to(uint64_t to, uint32_t rkey, uint32_t length)
{
	CHECK(!post(&c, 20, IBV_WR_RDMA_WRITE, sge(c.own, 0, length), to, rkey, IBV_SEND_SIGNALED));
	expect(c.id->send_cq, 20, IBV_WC_SUCCESS);
}

void read_back(uint64_t from, uint32_t rkey, uint32_t length, enum ibv_wc_status status)
{
	CHECK(!post(&c, 21, IBV_WR_RDMA_READ, sge(c.own, 30000, length), from, rkey,
		    IBV_SEND_SIGNALED));
	expect(c.id->send_cq, 21, status);
}

void both_ways(void *memory, uint64_t at, uint32_t rkey, uint32_t length)
{
	fill(&c, 1);
	memset(memory, 0, length);
	write_to(at, rkey, length);
	read_back(at, rkey, length, IBV_WC_SUCCESS);
	CHECK(!memcmp(memory, c.buf + BYTES, length));
	CHECK(!memcmp(c.buf + BYTES + 30000, c.buf + BYTES, length));
}

/* --- rereg_mr ------------------------------------------------------------------------ */

CASE("objects", rereg_translation)
{
	long before = pinned();
	struct ibv_mr *mr = ibv_reg_mr(s.id->pd, s.buf, 8192, OPEN);

	CHECK(mr);
	both_ways(s.buf, (uintptr_t)s.buf, mr->rkey, 8192);
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, s.buf + 20480, 12288, 0));
	CHECK(mr->addr == s.buf + 20480 && mr->length == 12288);
	both_ways(s.buf + 20480, (uintptr_t)s.buf + 20480, mr->rkey, 12288);
	read_back((uintptr_t)s.buf, mr->rkey, 100, IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_dereg_mr(mr));
	CHECK(pinned() == before);
}

CASE("objects", rereg_access)
{
	struct ibv_mr *mr = ibv_reg_mr(s.id->pd, s.buf, 8192, OPEN);

	CHECK(mr);
	both_ways(s.buf, (uintptr_t)s.buf, mr->rkey, 8192);
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	write_to((uintptr_t)s.buf, mr->rkey, 100);
	read_back((uintptr_t)s.buf, mr->rkey, 100, IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_dereg_mr(mr));
}

/*
 * What was pinned for reading only does not become writable; nor is an unknown right ignored. The
 * mapping is a private one: before 6.2, ib_core pins no shared one that is read-only.
 */
CASE("objects", rereg_of_read_only_memory)
{
	const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	char *map = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	CHECK(map != MAP_FAILED);
	mr = ibv_reg_mr(s.id->pd, map, 8192, IBV_ACCESS_REMOTE_READ);
	CHECK(mr);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, rights));
	read_back((uintptr_t)map, mr->rkey, 100, IBV_WC_SUCCESS);
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_reg_mr(s.id->pd, s.buf, 8192, IBV_ACCESS_LOCAL_WRITE | 1 << 8));
	munmap(map, 8192);
}

/* It stays what it was told to be: its first byte is at 0 wherever it lies. */
CASE("objects", rereg_zero_based)
{
	struct ibv_mr *mr = ibv_reg_mr(s.id->pd, s.buf, 8192, OPEN | IBV_ACCESS_ZERO_BASED);

	CHECK(mr);
	both_ways(s.buf, 0, mr->rkey, 8192);
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, s.buf + 20480, 12288, 0));
	both_ways(s.buf + 20480, 0, mr->rkey, 12288);
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, NULL,
			    s.buf, 8192, OPEN));
	both_ways(s.buf, (uintptr_t)s.buf, mr->rkey, 8192);
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, s.buf + 20480, 12288, 0));
	both_ways(s.buf + 20480, (uintptr_t)s.buf + 20480, mr->rkey, 12288);
	CHECK(!ibv_dereg_mr(mr));
}

CASE("objects", rereg_domain)
{
	struct ibv_pd *pd = ibv_alloc_pd(s.id->verbs);
	struct ibv_mr *mr;

	CHECK(pd);
	mr = ibv_reg_mr(pd, s.buf, 8192, OPEN);
	CHECK(mr);
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, s.id->pd, NULL, 0, 0));
	CHECK(mr->pd == s.id->pd);
	both_ways(s.buf, (uintptr_t)s.buf, mr->rkey, 8192);
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0));
	read_back((uintptr_t)s.buf, mr->rkey, 100, IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd));
}

/* A failure leaves the region as it was. */
CASE("objects", rereg_refused)
{
	struct ibv_mr *mr = ibv_reg_mr(s.id->pd, s.buf, 8192, OPEN);

	CHECK(mr);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)4096, 8192, 0));
	both_ways(s.buf, (uintptr_t)s.buf, mr->rkey, 8192);
	CHECK(!ibv_dereg_mr(mr));
}

/* --- advise_mr -------------------------------------------------------------------------- */

CASE("objects", advise)
{
	struct ibv_mr *mr = ibv_reg_mr(s.id->pd, s.buf, BYTES, IBV_ACCESS_REMOTE_READ);
	struct ibv_sge list[2] = { sge(s.own, 0, BYTES), sge(mr, 100, 200) };
	enum ibv_advise_mr_advice writes = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	enum ibv_advise_mr_advice reads = IBV_ADVISE_MR_ADVICE_PREFETCH;

	CHECK(mr);
	CHECK(!ibv_advise_mr(s.id->pd, reads, 0, list, 2));
	CHECK(!ibv_advise_mr(s.id->pd, reads, IBV_ADVISE_MR_FLAG_FLUSH, list, 2));
	CHECK(!ibv_advise_mr(s.id->pd, writes, 0, list, 1));
	CHECK(ibv_advise_mr(s.id->pd, writes, 0, list, 2) == EPERM);
	list[1].length = BYTES;
	CHECK(ibv_advise_mr(s.id->pd, reads, 0, list, 2) == EFAULT);
	list[1].length = 2 * BYTES;
	CHECK(ibv_advise_mr(s.id->pd, reads, 0, list, 2) == EFAULT);
	list[1].length = 1;
	list[1].addr -= 101;
	CHECK(ibv_advise_mr(s.id->pd, reads, 0, list, 2) == EFAULT);
	list[1].lkey ^= 0x5a00;
	CHECK(ibv_advise_mr(s.id->pd, reads, 0, list, 2) == ENOENT);
	CHECK(ibv_advise_mr(s.id->pd, 77, 0, list, 1) == EOPNOTSUPP);
	CHECK(!ibv_dereg_mr(mr));
}

/* A key belongs to its domain, here as everywhere. */
CASE("objects", advice_on_a_region_of_another_domain)
{
	struct ibv_pd *pd = ibv_alloc_pd(s.id->verbs);
	struct ibv_sge sg = sge(s.own, 0, BYTES);
	enum ibv_advise_mr_advice reads = IBV_ADVISE_MR_ADVICE_PREFETCH;

	CHECK(pd);
	CHECK(!ibv_advise_mr(s.id->pd, reads, 0, &sg, 1));
	CHECK(ibv_advise_mr(pd, reads, 0, &sg, 1) == ENOENT);
	CHECK(!ibv_dealloc_pd(pd));
}

/* --- parent domains ------------------------------------------------------------------------ */

static struct ibv_pd *parent;
static struct ibv_cq_ex *cq_ex;
static struct ibv_srq *srq;

static void in_parent(struct end *e)
{
	struct ibv_cq_init_attr_ex cq = { .cqe = 64,
					  .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
					  .parent_domain = parent };
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = 32, .max_sge = 1 } };
	struct ibv_qp_init_attr attr = { .cap = { WRS, WRS, 4, 4, 64 }, .qp_type = IBV_QPT_RC };

	cq_ex = ibv_create_cq_ex(e->id->verbs, &cq);
	srq = ibv_create_srq(parent, &shared);
	CHECK(cq_ex && srq);
	attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(cq_ex);
	attr.srq = srq;
	CHECK(!rdma_create_qp(e->id, parent, &attr));
	e->id->send_cq = e->id->recv_cq = attr.send_cq;
}

CASE("objects", parent_domain)
{
	struct ibv_td_init_attr td_attr = {};
	struct ibv_td *td = ibv_alloc_td(s.id->verbs, &td_attr);
	struct ibv_pd *pd = ibv_alloc_pd(s.id->verbs);
	struct ibv_parent_domain_init_attr attr = { .pd = pd, .td = td };
	struct ibv_recv_wr *bad, wr = { .wr_id = 5, .num_sge = 1 };
	struct end c2, s2;
	struct ibv_sge sg;
	struct ibv_mr *mr;

	CHECK(td && pd);
	parent = ibv_alloc_parent_domain(s.id->verbs, &attr);
	CHECK(parent);
	CHECK(ibv_dealloc_td(td) == EBUSY && ibv_dealloc_pd(pd) == EBUSY);
	connect_pair(&c2, &s2, in_parent);
	mr = ibv_reg_mr(parent, s2.buf, BYTES, OPEN);
	CHECK(mr);
	sg = sge(mr, 0, 100);
	wr.sg_list = &sg;
	for (int i = 0; i < 200; i++) {
		c2.buf[BYTES] = i;
		CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
		CHECK(!send_sge(&c2, 6, sge(c2.own, 0, 100), 0));
		expect(c2.id->send_cq, 6, IBV_WC_SUCCESS);
		expect(s2.id->recv_cq, 5, IBV_WC_SUCCESS);
		CHECK(s2.buf[0] == (unsigned char)i);
		CHECK(!post(&s2, 7, IBV_WR_RDMA_READ, sge(mr, 200, 50), (uintptr_t)c2.buf,
			    c2.open->rkey, IBV_SEND_SIGNALED));
		expect(s2.id->send_cq, 7, IBV_WC_SUCCESS);
	}
	CHECK(!ibv_dereg_mr(mr));
	s2.id->send_cq = s2.id->recv_cq = NULL;
	release(&c2);
	release(&s2);
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex)) && !ibv_destroy_srq(srq));
	CHECK(!ibv_dealloc_pd(parent) && !ibv_dealloc_td(td) && !ibv_dealloc_pd(pd));
}

/* One is as good as the domain it was made of: another is made of it. */
CASE("objects", parent_of_a_parent_domain)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = ibv_alloc_pd(s.id->verbs),
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.pd_context = &attr,
	};
	struct ibv_pd *pd = attr.pd, *inner, *outer;
	struct ibv_mr *mr;

	inner = ibv_alloc_parent_domain(s.id->verbs, &attr);
	attr.pd = inner;
	outer = ibv_alloc_parent_domain(s.id->verbs, &attr);
	CHECK(pd && inner && outer);
	mr = ibv_reg_mr(outer, s.buf, BYTES, OPEN);
	CHECK(mr);
	CHECK(ibv_dealloc_pd(inner) == EBUSY && ibv_dealloc_pd(pd) == EBUSY);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(outer));
	CHECK(ibv_dealloc_pd(pd) == EBUSY);
	CHECK(!ibv_dealloc_pd(inner) && !ibv_dealloc_pd(pd));
}

CASE("objects", parent_domain_refused)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = s.id->pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
	};
	struct ibv_td_init_attr unknown = { .comp_mask = 1 };

	errno = 0;
	CHECK(!ibv_alloc_parent_domain(s.id->verbs, &attr) && errno == EOPNOTSUPP);
	attr = (struct ibv_parent_domain_init_attr){};
	CHECK(!ibv_alloc_parent_domain(s.id->verbs, &attr) && errno == EINVAL);
	errno = 0;
	CHECK(!ibv_alloc_td(s.id->verbs, &unknown) && errno == EOPNOTSUPP);
}

/* --- shared contexts -------------------------------------------------------------------------- */

/* Another process: it has the file, and the numbers of a domain and a region. */
static void other_process(int fd, uint32_t pd_handle, uint32_t mr_handle, uint32_t lkey)
{
	struct ibv_context *context = ibv_import_device(fd);
	struct ibv_pd *pd;
	struct ibv_mr *mr, *own;
	char *page = aligned_alloc(4096, 4096);

	CHECK(context);
	pd = ibv_import_pd(context, pd_handle);
	CHECK(pd);
	mr = ibv_import_mr(pd, mr_handle);
	CHECK(mr && mr->lkey == lkey && mr->length == BYTES);
	own = ibv_reg_mr(pd, page, 4096, OPEN);
	CHECK(own && own->lkey != lkey);
	CHECK(!ibv_dereg_mr(own));
	ibv_unimport_mr(mr);
	CHECK(!ibv_import_mr(pd, 0xabcdef));
	ibv_unimport_pd(pd);
	CHECK(!ibv_close_device(context));
	exit(0);
}

/* Past the provider, which refuses it to a child. A write() is for the process that has opened. */
static int raw_rereg_access(const struct ibv_mr *mr, uint32_t access)
{
	struct ib_uverbs_rereg_mr cmd = {
		.mr_handle = mr->handle,
		.flags = IBV_REREG_MR_CHANGE_ACCESS,
		.access_flags = access,
	};
	struct ib_uverbs_rereg_mr_resp resp = {};
	const struct ib_uverbs_attr attrs[3] = {
		{ .attr_id = UVERBS_ATTR_CORE_IN,
		  .len = sizeof(cmd),
		  .flags = UVERBS_ATTR_F_MANDATORY,
		  .data = (uintptr_t)&cmd },
		{ .attr_id = UVERBS_ATTR_CORE_OUT,
		  .len = sizeof(resp),
		  .flags = UVERBS_ATTR_F_MANDATORY,
		  .data = (uintptr_t)&resp },
		{ .attr_id = UVERBS_ATTR_WRITE_CMD,
		  .len = sizeof(uint64_t),
		  .flags = UVERBS_ATTR_F_MANDATORY,
		  .data = IB_USER_VERBS_CMD_REREG_MR },
	};

	return device_method(mr->context->cmd_fd, UVERBS_METHOD_INVOKE_WRITE, attrs);
}

/* The region is of its maker's memory, and stays of it: a child has other pages there. */
CASE("objects", rereg_in_another_process)
{
	struct ibv_mr *mr = ibv_reg_mr(s.id->pd, s.buf, 8192, IBV_ACCESS_REMOTE_READ);
	struct ibv_mr *paged =
		ibv_reg_mr(s.id->pd, s.buf + 8192, 8192, OPEN | IBV_ACCESS_ON_DEMAND);
	int status = 0;
	pid_t pid;

	CHECK(mr && paged);
	pid = fork();
	if (!pid) {
		CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, OPEN));
		CHECK(errno == EPERM);
		CHECK(raw_rereg_access(mr, OPEN) && errno == EOPNOTSUPP);
		CHECK(raw_rereg_access(paged, OPEN) && errno == EOPNOTSUPP);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(!raw_rereg_access(paged, OPEN) && !ibv_dereg_mr(paged));
	CHECK(!raw_rereg_access(mr, OPEN));
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ));
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, OPEN));
	both_ways(s.buf, (uintptr_t)s.buf, mr->rkey, 8192);
	CHECK(!ibv_dereg_mr(mr));
}

CASE("objects", import_objects)
{
	struct ibv_context *context = ibv_import_device(dup(s.id->verbs->cmd_fd));
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	int status = 0;
	pid_t pid;

	CHECK(context);
	pd = ibv_import_pd(context, s.id->pd->handle);
	CHECK(pd);
	mr = ibv_import_mr(pd, s.open->handle);
	CHECK(mr && mr->lkey == s.open->lkey && mr->rkey == s.open->rkey);
	both_ways(s.buf, (uintptr_t)s.buf, mr->rkey, 8192);
	ibv_unimport_mr(mr);
	/* The region is still there: an import is a view. */
	mr = ibv_reg_mr(pd, s.buf, 8192, OPEN);
	CHECK(mr);
	both_ways(s.buf, (uintptr_t)s.buf, mr->rkey, 8192);
	CHECK(!ibv_dereg_mr(mr));
	ibv_unimport_pd(pd);
	CHECK(!ibv_close_device(context));
	pid = fork();
	if (!pid)
		other_process(dup(s.id->verbs->cmd_fd), s.id->pd->handle, s.open->handle,
			      s.open->lkey);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	works(&c, &s);
}

/* Not the one that has number 0. What is made in it is the other's: it cannot go meanwhile. */
CASE("objects", an_imported_domain_is_the_one_that_is_named)
{
	struct ibv_context *context = ibv_import_device(dup(s.id->verbs->cmd_fd));
	struct ibv_pd *own = ibv_alloc_pd(s.id->verbs);
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	CHECK(context && own);
	pd = ibv_import_pd(context, own->handle);
	CHECK(pd);
	mr = ibv_reg_mr(pd, s.buf, 8192, OPEN);
	CHECK(mr && ibv_dealloc_pd(own) == EBUSY);
	CHECK(!ibv_dereg_mr(mr));
	ibv_unimport_pd(pd);
	CHECK(!ibv_dealloc_pd(own) && !ibv_close_device(context));
	works(&c, &s);
}

/* There is no memory on a device without hardware. */
CASE("objects", device_memory_refused)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_device_attr_ex dev;

	CHECK(!ibv_query_device_ex(s.id->verbs, NULL, &dev) && dev.max_dm_size == 0);
	errno = 0;
	CHECK(!ibv_alloc_dm(s.id->verbs, &attr) && errno == EOPNOTSUPP);
}

/* --- what a library says of itself ---------------------------------------------------------------- */

/* What the kernel says of itself. */
static struct {
	struct ib_uverbs_get_context_resp core;
	struct weft_uresp_alloc_ctx own;
} said;

/*
 * As the library opens a device, with @words of its own behind, and room for all but @spared bytes
 * of the answer. Returns 0 or why not.
 */
static int ask_for_context(const uint32_t *own, size_t words, int missing, size_t spared)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_get_context cmd;
		uint32_t own[8];
	} req = {};
	size_t bytes = offsetof(typeof(req), own) + words * 4;
	unsigned char *end;
	char path[256];
	int fd, ret;

	/* The last @missing bytes cannot be read. */
	end = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(end != MAP_FAILED);
	end += 4096;
	CHECK(!munmap(end, 4096));
	snprintf(path, sizeof(path), "/dev/infiniband/%s", c.id->verbs->device->dev_name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	req.hdr.command = IB_USER_VERBS_CMD_GET_CONTEXT;
	req.hdr.in_words = bytes / 4;
	req.hdr.out_words = (sizeof(said) - spared) / 4;
	req.cmd.response = (uintptr_t)&said;
	memset(&said, 0xa5, sizeof(said));
	memcpy(req.own, own, words * 4);
	memcpy(end - (bytes - missing), &req, bytes - missing);
	ret = write(fd, end - (bytes - missing), bytes) == (ssize_t)bytes ? 0 : errno;
	if (!ret)
		close(said.core.async_fd);
	close(fd);
	return ret;
}

static int open_context(const uint32_t *own, size_t words, int missing)
{
	return ask_for_context(own, words, missing, 0);
}

/* A mistake is an error; it is not treated as a smaller request. */
CASE("objects", unknown_requests_are_refused)
{
	uint32_t own[6] = { WEFT_CTX_SHARED_PAGES };

	CHECK(open_context(own, 0, 0) == 0 && said.own.max_inline >= 512);
	CHECK(said.own.features == (WEFT_FEATURE_UNIQUE_MMAP_KEYS | WEFT_FEATURE_OWNER));
	/* Older libraries know of less than is said. */
	CHECK(ask_for_context(own, 0, 0, sizeof(said.own.features)) == 0);
	CHECK(said.own.max_inline >= 512 && said.own.features == 0xa5a5a5a5);
	CHECK(open_context(own, 2, 0) == 0);
	CHECK(open_context(own, 6, 0) == 0);
	CHECK(open_context(own, 2, 8) == EFAULT);
	own[5] = 1;
	CHECK(open_context(own, 6, 0) == EOPNOTSUPP);
	own[5] = 0;
	own[1] = 1;
	CHECK(open_context(own, 2, 0) == EOPNOTSUPP);
	own[1] = 0;
	own[0] = 1U << 31;
	CHECK(open_context(own, 2, 0) == EOPNOTSUPP);
	works(&c, &s);
}

/* With a word of the library's own behind. */
static int command(uint32_t number, const void *cmd, size_t bytes, uint32_t own)
{
	return raw_command(number, cmd, bytes, &own, sizeof(own));
}

/* The same of commands that have no request of weft's. Each works, but for the last word. */
CASE("objects", unknown_words_are_refused)
{
	uint32_t resp[RAW_WORDS];
	const uintptr_t at = (uintptr_t)resp;
	const struct ib_uverbs_alloc_pd pd = { .response = at };
	const struct ib_uverbs_alloc_mw window = { .response = at,
						   .pd_handle = s.id->pd->handle,
						   .mw_type = IBV_MW_TYPE_1 };
	const struct ib_uverbs_reg_mr region = { .response = at,
						 .start = (uintptr_t)s.buf,
						 .length = 64,
						 .hca_va = (uintptr_t)s.buf,
						 .pd_handle = s.id->pd->handle };
	const struct ib_uverbs_rereg_mr again = { .response = at,
						  .mr_handle = s.own->handle,
						  .flags = IBV_REREG_MR_CHANGE_ACCESS,
						  .access_flags = IBV_ACCESS_LOCAL_WRITE };
	struct ibv_cq *cq = ibv_create_cq(s.id->verbs, 4, NULL, NULL, 0);
	const struct ib_uverbs_create_cq queue = cq_command(at, 4);
	const struct ib_uverbs_create_qp pair = qp_command(at, 4);
	const struct ib_uverbs_modify_qp timer = { .qp_handle = s.id->qp->handle,
						   .attr_mask = IBV_QP_MIN_RNR_TIMER,
						   .min_rnr_timer = 3 };
	const struct ib_uverbs_create_srq shared = srq_command(at, 4);
	struct ib_uverbs_resize_cq larger = { .response = at, .cqe = 100 };

	CHECK(cq);
	larger.cq_handle = cq->handle;
	CHECK(command(IB_USER_VERBS_CMD_ALLOC_PD, &pd, sizeof(pd), 1) == EOPNOTSUPP);
	CHECK(command(IB_USER_VERBS_CMD_ALLOC_PD, &pd, sizeof(pd), 0) == 0);
	CHECK(command(IB_USER_VERBS_CMD_ALLOC_MW, &window, sizeof(window), 1) == EOPNOTSUPP);
	CHECK(command(IB_USER_VERBS_CMD_ALLOC_MW, &window, sizeof(window), 0) == 0);
	CHECK(command(IB_USER_VERBS_CMD_REG_MR, &region, sizeof(region), 1) == EOPNOTSUPP);
	CHECK(command(IB_USER_VERBS_CMD_REG_MR, &region, sizeof(region), 0) == 0);
	CHECK(command(IB_USER_VERBS_CMD_REREG_MR, &again, sizeof(again), 1) == EOPNOTSUPP);
	CHECK(command(IB_USER_VERBS_CMD_REREG_MR, &again, sizeof(again), 0) == 0);
	CHECK(command(IB_USER_VERBS_CMD_CREATE_CQ, &queue, sizeof(queue), 1) == EOPNOTSUPP);
	CHECK(command(IB_USER_VERBS_CMD_CREATE_CQ, &queue, sizeof(queue), 0) == 0);
	CHECK(command(IB_USER_VERBS_CMD_RESIZE_CQ, &larger, sizeof(larger), 1) == EOPNOTSUPP);
	CHECK(command(IB_USER_VERBS_CMD_RESIZE_CQ, &larger, sizeof(larger), 0) == 0);
	CHECK(command(IB_USER_VERBS_CMD_CREATE_QP, &pair, sizeof(pair), 1) == EOPNOTSUPP);
	CHECK(command(IB_USER_VERBS_CMD_CREATE_QP, &pair, sizeof(pair), 0) == 0);
	CHECK(command(IB_USER_VERBS_CMD_CREATE_SRQ, &shared, sizeof(shared), 2) == EOPNOTSUPP);
	CHECK(command(IB_USER_VERBS_CMD_CREATE_SRQ, &shared, sizeof(shared), WEFT_SRQ_DOORBELL) ==
	      0);
	CHECK(command(IB_USER_VERBS_CMD_MODIFY_QP, &timer, sizeof(timer), 1) == EOPNOTSUPP);
	CHECK(command(IB_USER_VERBS_CMD_MODIFY_QP, &timer, sizeof(timer), 0) == 0);
	works(&c, &s);
	CHECK(!ibv_destroy_cq(cq));
}

/* The same of commands with a request of weft's: reserved words, and what stands behind it. */
CASE("objects", unknown_words_of_an_srq_are_refused)
{
	static const uint32_t known[3] = { WEFT_SRQ_DOORBELL };
	static const uint32_t reserved[2] = { WEFT_SRQ_DOORBELL, 1 };
	static const uint32_t behind[3] = { 0, 0, 1 };
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(s.id->pd, &attr);
	struct ib_uverbs_modify_srq limit = { .attr_mask = IBV_SRQ_LIMIT, .srq_limit = 2 };
	struct ib_uverbs_modify_srq more = { .attr_mask = IBV_SRQ_MAX_WR, .max_wr = 8 };
	struct ibv_recv_wr *bad, wr = {};
	const int create = IB_USER_VERBS_CMD_CREATE_SRQ, modify = IB_USER_VERBS_CMD_MODIFY_SRQ;
	uint32_t resp[RAW_WORDS];
	const struct ib_uverbs_create_srq shared = srq_command((uintptr_t)resp, 4);

	CHECK(srq);
	for (int i = 0; i < 3; i++)
		CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
	limit.srq_handle = more.srq_handle = srq->handle;
	CHECK(raw_command(create, &shared, sizeof(shared), reserved, 8) == EOPNOTSUPP);
	CHECK(raw_command(create, &shared, sizeof(shared), behind, 12) == EOPNOTSUPP);
	CHECK(raw_command(create, &shared, sizeof(shared), known, 12) == 0);
	CHECK(raw_command(modify, &more, sizeof(more), "", 0) == EOPNOTSUPP);
	CHECK(raw_command(modify, &limit, sizeof(limit), behind, 12) == EOPNOTSUPP);
	CHECK(!ibv_query_srq(srq, &attr.attr) && !attr.attr.srq_limit && attr.attr.max_wr == 4);
	CHECK(raw_command(modify, &limit, sizeof(limit), known, 12) == 0);
	CHECK(!ibv_query_srq(srq, &attr.attr) && attr.attr.srq_limit == 2);
	CHECK(!ibv_destroy_srq(srq));
}
