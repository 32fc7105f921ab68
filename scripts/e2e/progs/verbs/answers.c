// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Commands as a library gives them: answers that the kernel cannot write where the process wants
 * them, so that the call fails and leaves nothing behind; and libraries of before.
 */
#define _GNU_SOURCE
#include "../proc.h"
#include "verbs.h"

#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../../drivers/weft/uapi/weft-abi.h"

#define TRIES 64
#define ENTRIES 16384	/* of a queue, which has pages of its own then */
#define SPARE 8192	/* KiB that others may take meanwhile; each queue is half a MiB or more */

static int write_command(uint32_t number, const void *cmd, size_t bytes, const void *own,
			 size_t own_bytes, uint16_t out_words)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		unsigned char rest[256];
	} req = {
		.hdr = {
			.command = number,
			.in_words = (sizeof(req.hdr) + bytes + own_bytes) / 4,
			.out_words = out_words,
		},
	};
	ssize_t all = req.hdr.in_words * 4;

	memcpy(req.rest, cmd, bytes);
	memcpy(req.rest + bytes, own, own_bytes);
	return write(s.id->verbs->cmd_fd, &req, all) == all ? 0 : errno;
}

int raw_command(uint32_t number, const void *cmd, size_t bytes, const void *own, size_t own_bytes)
{
	return write_command(number, cmd, bytes, own, own_bytes, RAW_WORDS);
}

struct ib_uverbs_create_cq cq_command(uintptr_t response, uint32_t entries)
{
	return (struct ib_uverbs_create_cq){ .response = response,
					     .cqe = entries,
					     .comp_channel = -1 };
}

struct ib_uverbs_create_qp qp_command(uintptr_t response, uint32_t entries)
{
	return (struct ib_uverbs_create_qp){
		.response = response,
		.pd_handle = s.id->pd->handle,
		.send_cq_handle = s.id->send_cq->handle,
		.recv_cq_handle = s.id->recv_cq->handle,
		.max_send_wr = entries,
		.max_recv_wr = entries,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.qp_type = IBV_QPT_RC,
	};
}

struct ib_uverbs_create_srq srq_command(uintptr_t response, uint32_t entries)
{
	return (struct ib_uverbs_create_srq){
		.response = response, .pd_handle = s.id->pd->handle, .max_wr = entries, .max_sge = 1
	};
}

int device_method(int cmd_fd, uint16_t method, const struct ib_uverbs_attr *attrs)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[3];
	} request = {
		.hdr = {
			.length = sizeof(request),
			.object_id = UVERBS_OBJECT_DEVICE,
			.method_id = method,
			.num_attrs = 3,
			.driver_id = WEFT_DRIVER_ID,
		},
		.attrs = { attrs[0], attrs[1], attrs[2] },
	};

	return ioctl(cmd_fd, RDMA_VERBS_IOCTL, &request);
}

/* Where @bytes can be written, and nothing behind them. */
static uint64_t space_for(size_t bytes)
{
	static unsigned char *end;
	long page = sysconf(_SC_PAGESIZE);

	if (!end) {
		end = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
		CHECK(end != MAP_FAILED);
		end += page;
		CHECK(!munmap(end, page));
	}
	return (uintptr_t)end - bytes;
}

/* Again and again: it fails for that, and takes no memory. */
static void fails(uint32_t number, const void *cmd, size_t bytes, uint64_t own)
{
	long before = proc_vmalloc_used();

	CHECK(before >= 0);
	for (int i = 0; i < TRIES; i++)
		CHECK(raw_command(number, cmd, bytes, &own, sizeof(own)) == EFAULT);
	printf("command %u: %ld KiB more\n", number, proc_vmalloc_used() - before);
	CHECK(proc_vmalloc_used() - before < SPARE);
}

CASE("objects", answers_that_cannot_be_written)
{
	const struct ib_uverbs_create_cq queue =
		cq_command(space_for(sizeof(struct ib_uverbs_create_cq_resp)), ENTRIES);
	const struct ib_uverbs_create_qp pair =
		qp_command(space_for(sizeof(struct ib_uverbs_create_qp_resp)), ENTRIES);
	const struct ib_uverbs_create_srq shared =
		srq_command(space_for(sizeof(struct ib_uverbs_create_srq_resp)), ENTRIES);

	fails(IB_USER_VERBS_CMD_CREATE_CQ, &queue, sizeof(queue), 0);
	fails(IB_USER_VERBS_CMD_CREATE_QP, &pair, sizeof(pair), 0);
	fails(IB_USER_VERBS_CMD_CREATE_SRQ, &shared, sizeof(shared), 0);
	works(&c, &s);
}

/* A queue that cannot be told where it would go on stays where it is. */
CASE("objects", resizes_that_cannot_be_told)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(s.id->pd, &attr);
	const struct ib_uverbs_resize_cq larger = {
		.response = space_for(sizeof(struct ib_uverbs_resize_cq_resp)),
		.cq_handle = s.id->recv_cq->handle,
		.cqe = ENTRIES,
	};
	struct ib_uverbs_modify_srq more = { .attr_mask = IBV_SRQ_MAX_WR, .max_wr = ENTRIES };
	struct ibv_recv_wr *bad, wr = {};

	CHECK(srq);
	fails(IB_USER_VERBS_CMD_RESIZE_CQ, &larger, sizeof(larger), 0);
	works(&c, &s);
	more.srq_handle = srq->handle;
	fails(IB_USER_VERBS_CMD_MODIFY_SRQ, &more, sizeof(more), space_for(0));
	CHECK(!ibv_query_srq(srq, &attr.attr) && attr.attr.max_wr == 8);
	CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
	CHECK(!ibv_destroy_srq(srq));
}

/* --- libraries of before -------------------------------------------------------------------- */

#define UNTOUCHED 0xa5a5a5a5

/* The library knows of the core's part and of the first two words of weft's, which are a key. */
static void takes_the_key(uint32_t number, const void *cmd, size_t bytes, size_t core)
{
	uint32_t *resp = *(uint32_t *const *)cmd; /* each begins with where its answer is to be */
	uint32_t words = core / sizeof(*resp) + 2;

	memset(resp, 0xa5, RAW_WORDS * sizeof(*resp));
	CHECK(!write_command(number, cmd, bytes, "", 0, words));
	CHECK(resp[words - 2] != UNTOUCHED && resp[words - 1] != UNTOUCHED);
	for (; words < RAW_WORDS; words++)
		CHECK(resp[words] == UNTOUCHED);
}

CASE("objects", an_older_library_gets_the_answer_that_it_knows)
{
	uint32_t resp[RAW_WORDS];
	const uintptr_t at = (uintptr_t)resp;
	struct ibv_cq *cq = ibv_create_cq(s.id->verbs, 4, NULL, NULL, 0);
	struct ib_uverbs_resize_cq larger = { .response = at, .cqe = 100 };
	const struct ib_uverbs_create_cq queue = cq_command(at, 4);
	const struct ib_uverbs_create_qp pair = qp_command(at, 4);
	const struct ib_uverbs_create_srq shared = srq_command(at, 4);

	CHECK(cq);
	larger.cq_handle = cq->handle;
	takes_the_key(IB_USER_VERBS_CMD_CREATE_CQ, &queue, sizeof(queue),
		      sizeof(struct ib_uverbs_create_cq_resp));
	takes_the_key(IB_USER_VERBS_CMD_RESIZE_CQ, &larger, sizeof(larger),
		      sizeof(struct ib_uverbs_resize_cq_resp));
	takes_the_key(IB_USER_VERBS_CMD_CREATE_QP, &pair, sizeof(pair),
		      sizeof(struct ib_uverbs_create_qp_resp));
	takes_the_key(IB_USER_VERBS_CMD_CREATE_SRQ, &shared, sizeof(shared),
		      sizeof(struct ib_uverbs_create_srq_resp));
	CHECK(!ibv_destroy_cq(cq));
}

#define OLD_ENTRIES 1024	/* the queue has pages of its own */

struct old_srq {
	uint32_t handle;
	struct weft_rq_ctl *ctl;
	struct weft_rqe *first;
};

/* It does not say that it rings, since that was not asked for then. */
static struct old_srq old_srq(void)
{
	struct {
		struct ib_uverbs_create_srq_resp core;
		struct weft_uresp_create_srq own;
		uint32_t spare[RAW_WORDS];
	} resp;
	const struct ib_uverbs_create_srq cmd = srq_command((uintptr_t)&resp, OLD_ENTRIES);
	unsigned char *map;

	CHECK(!raw_command(IB_USER_VERBS_CMD_CREATE_SRQ, &cmd, sizeof(cmd), NULL, 0));
	map = mmap(NULL, resp.own.rq.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s.id->verbs->cmd_fd,
		   resp.own.rq.key);
	CHECK(map != MAP_FAILED && !resp.own.rq.offset);
	return (struct old_srq){ .handle = resp.core.srq_handle,
				 .ctl = (void *)map,
				 .first = (void *)(map + WEFT_CTL_BYTES) };
}

/* A QP that takes its receives there. Returns its number. */
static uint32_t qp_of_old_srq(const struct old_srq *srq)
{
	struct {
		struct ib_uverbs_create_qp_resp core;
		uint32_t spare[RAW_WORDS];
	} resp;
	const struct ib_uverbs_create_qp cmd = {
		.response = (uintptr_t)&resp,
		.pd_handle = s.id->pd->handle,
		.send_cq_handle = s.id->send_cq->handle,
		.recv_cq_handle = s.id->recv_cq->handle,
		.srq_handle = srq->handle,
		.is_srq = 1,
		.max_send_wr = 4,
		.max_send_sge = 1,
		.qp_type = IBV_QPT_RC,
	};

	CHECK(!raw_command(IB_USER_VERBS_CMD_CREATE_QP, &cmd, sizeof(cmd), NULL, 0));
	return resp.core.qpn;
}

static void *accept_it(void *arg)
{
	accept_end(arg, NULL);
	return NULL;
}

/* The kernel looks by itself for a receive that a message waits for. */
CASE_WITH("late", late_receive_of_an_older_library, "rnr_timeout_ms=600000")
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *res;
	struct old_srq srq = old_srq();
	struct rdma_conn_param param = { .qp_num = qp_of_old_srq(&srq) };
	struct rdma_cm_id *id;
	struct end other;
	pthread_t thread;

	CHECK(!rdma_getaddrinfo(address, "7555", &hints, &res));
	CHECK(!rdma_create_ep(&id, res, NULL, NULL));
	CHECK(!pthread_create(&thread, NULL, accept_it, &other));
	CHECK(!rdma_connect(id, &param));
	pthread_join(thread, NULL);
	fill(&other, 3);
	CHECK(!send_sge(&other, 1, sge(other.own, 0, 100), 0));
	expect(other.id->send_cq, 1, IBV_WC_SUCCESS);
	nothing(s.id->recv_cq);
	*srq.first = (struct weft_rqe){ .wr_id = 7, .num_sge = 1 };
	*(struct ibv_sge *)(srq.first + 1) = sge(s.own, 0, 100);
	__atomic_store_n(&srq.ctl->prod, 1, __ATOMIC_RELEASE);
	expect(s.id->recv_cq, 7, IBV_WC_SUCCESS);
	CHECK(!memcmp(s.own->addr, other.own->addr, 100));
	rdma_destroy_ep(id);
	release(&other);
}
