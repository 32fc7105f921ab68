// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Two QPs of this process that are connected with each other, made by one thread. */
#define _GNU_SOURCE
#include "races.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#define ACCESS                                                                      \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)
#define STEP_MS 5000

void fill(unsigned char *buf, uint32_t length, uint32_t from)
{
	for (uint32_t i = 0; i < length; i++)
		buf[i] = (i * 2654435761U + from * 40503U) >> 13;
}

bool is_filled(const unsigned char *buf, uint32_t length, uint32_t from)
{
	for (uint32_t i = 0; i < length; i++)
		if (buf[i] != (unsigned char)((i * 2654435761U + from * 40503U) >> 13))
			return false;
	return true;
}

/* Something to read from a descriptor that does not block. */
static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int ready = poll(&p, 1, step_timeout() * 1000);

	errno = ETIMEDOUT;
	return ready == 1;
}

/* The end of the other side may come before what is waited for. */
static bool tells_of_an_end(enum rdma_cm_event_type type)
{
	return type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_TIMEWAIT_EXIT ||
	       type == RDMA_CM_EVENT_CONNECT_ERROR || type == RDMA_CM_EVENT_REJECTED;
}

bool pair_event(struct pair *p, enum rdma_cm_event_type wanted, struct rdma_cm_id **id)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;
	int status;

	do {
		TRY(readable(p->events->fd));
		TRY(!rdma_get_cm_event(p->events, &event));
		type = event->event;
		status = event->status;
		if (id)
			*id = event->id;
		CHECK(!rdma_ack_cm_event(event));
		if (type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
			errno = ENODEV;
			return failed(__FILE__, __LINE__, "the device has gone");
		}
	} while (type != wanted && wanted == RDMA_CM_EVENT_DISCONNECTED && tells_of_an_end(type));
	if (type != wanted && !may_go)
		printf("%s (status %d) instead of %s\n", rdma_event_str(type), status,
		       rdma_event_str(wanted));
	errno = type == wanted ? 0 : may_lack ? ENOMEM : ECONNRESET;
	TRY(type == wanted);
	return true;
}

/*
 * TCP has no memory for the bucket of a port, if allocations that may not wait fail, and calls that
 * an address in use. That is no news of weft's, unless it stays so.
 */
static bool in_use_for_now(int ret, int *tries)
{
	if (!ret || errno != EADDRINUSE || !(*tries)--)
		return false;
	usleep(1000);
	return true;
}

static int listen_in_the_end(struct rdma_cm_id *id)
{
	int tries = 20, ret;

	do
		ret = rdma_listen(id, 8);
	while (in_use_for_now(ret, &tries));
	return ret;
}

static int connect_in_the_end(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	int tries = 20, ret;

	do
		ret = rdma_connect(id, param);
	while (in_use_for_now(ret, &tries));
	return ret;
}

static bool listen_anywhere(struct pair *p)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	int ret;

	CHECK(inet_pton(AF_INET, address, &at.sin_addr) == 1);
	p->events = rdma_create_event_channel();
	/* Where its file cannot be opened, librdmacm looks for it at another place. */
	if (!p->events && errno == ENOENT && may_lack)
		errno = ENOMEM;
	TRY(p->events);
	CHECK(!fcntl(p->events->fd, F_SETFL, O_NONBLOCK));
	TRY(!rdma_create_id(p->events, &p->listener, NULL, RDMA_PS_TCP));
	TRY(!rdma_bind_addr(p->listener, (struct sockaddr *)&at));
	ret = listen_in_the_end(p->listener);
	/* The port is any that is free. */
	if (ret && errno == EADDRINUSE && may_lack)
		errno = ENOMEM;
	TRY(!ret);
	return true;
}

static bool resolve(struct pair *p)
{
	struct rdma_cm_id **id = &p->id[CLIENT];

	TRY(!rdma_create_id(p->events, id, NULL, RDMA_PS_TCP));
	TRY(!rdma_resolve_addr(*id, NULL, rdma_get_local_addr(p->listener), STEP_MS));
	if (!pair_event(p, RDMA_CM_EVENT_ADDR_RESOLVED, NULL))
		return false;
	TRY(!rdma_resolve_route(*id, STEP_MS));
	return pair_event(p, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
}

/* An id of librdmacm has the context that it was resolved to. */
static bool make_qp(struct pair *p, enum side side)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = { DEPTH, DEPTH, 2, 2, 64 },
		.qp_type = IBV_QPT_RC,
		.send_cq = p->send_cq,
		.recv_cq = p->recv_cq,
		.pd = p->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.srq = side == SERVER ? p->srq : NULL,
	};

	if (p->extended && side == CLIENT) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE;
	}
	TRY(!rdma_create_qp_ex(p->id[side], &attr));
	p->buf[side] =
		mmap(NULL, PAIR_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TRY(p->buf[side] != MAP_FAILED);
	p->mr[side] = ibv_reg_mr(p->pd, p->buf[side], PAIR_BYTES, ACCESS);
	TRY(p->mr[side]);
	return true;
}

static bool answer(struct pair *p, enum outcome outcome, struct rdma_conn_param *param)
{
	if (!pair_event(p, RDMA_CM_EVENT_CONNECT_REQUEST, &p->id[SERVER]))
		return false;
	if (outcome == REJECTED) {
		TRY(!rdma_reject(p->id[SERVER], "no", 2));
		return pair_event(p, RDMA_CM_EVENT_REJECTED, NULL);
	}
	if (!make_qp(p, SERVER))
		return false;
	TRY(!rdma_accept(p->id[SERVER], param));
	/* Both ends tell of it, in whichever order. */
	return pair_event(p, RDMA_CM_EVENT_ESTABLISHED, NULL) &&
	       pair_event(p, RDMA_CM_EVENT_ESTABLISHED, NULL);
}

bool pair_join(struct pair *p, enum outcome outcome)
{
	struct rdma_conn_param param = { .initiator_depth = 4, .responder_resources = 4 };

	if (!listen_anywhere(p) || !resolve(p))
		return false;
	if (!make_qp(p, CLIENT))
		return false;
	TRY(!connect_in_the_end(p->id[CLIENT], &param));
	return outcome == ABANDONED || answer(p, outcome, &param);
}

static bool drop_end(struct pair *p, enum side side)
{
	struct rdma_cm_id *id = p->id[side];

	if (id && id->qp) {
		/* rdma_destroy_qp() does not tell what this answers. */
		TRY0(ibv_destroy_qp(id->qp));
		id->qp = NULL;
	}
	if (p->mr[side])
		TRY0(ibv_dereg_mr(p->mr[side]));
	if (p->buf[side] && p->buf[side] != MAP_FAILED)
		munmap(p->buf[side], PAIR_BYTES);
	if (id)
		TRY(!rdma_destroy_id(id));
	return true;
}

/* Requests that are still to be read are events, with an id of their own. */
static bool drop_requests(struct pair *p)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *request;

	while (!rdma_get_cm_event(p->events, &event)) {
		request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->id : NULL;
		CHECK(!rdma_ack_cm_event(event));
		if (request)
			TRY(!rdma_destroy_id(request));
	}
	return true;
}

bool pair_part(struct pair *p)
{
	if (!p->events)
		return true;
	if (!drop_end(p, CLIENT) || !drop_end(p, SERVER) || !drop_requests(p))
		return false;
	if (p->listener)
		TRY(!rdma_destroy_id(p->listener));
	if (!drop_requests(p))
		return false;
	rdma_destroy_event_channel(p->events);
	return true;
}

int pair_send(struct pair *p, enum side from, uint64_t wr_id, enum ibv_wr_opcode op,
	      uint32_t offset, uint32_t length, int flags)
{
	struct ibv_sge sge = { (uintptr_t)p->buf[from] + offset, length, p->mr[from]->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id, .opcode = op, .sg_list = &sge, .num_sge = 1, .send_flags = flags
	};

	wr.wr.rdma.remote_addr = (uintptr_t)p->buf[!from] + offset;
	wr.wr.rdma.rkey = p->mr[!from]->rkey;
	return ibv_post_send(p->id[from]->qp, &wr, &bad);
}

/* On the first word of the other side's memory; what was there goes to the first of this one's. */
int pair_atomic(struct pair *p, enum side from, uint64_t wr_id, enum ibv_wr_opcode op,
		uint64_t compare_add, uint64_t swap)
{
	struct ibv_sge sge = { (uintptr_t)p->buf[from], sizeof(uint64_t), p->mr[from]->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = wr_id,
					.opcode = op,
					.sg_list = &sge,
					.num_sge = 1,
					.send_flags = IBV_SEND_SIGNALED };

	wr.wr.atomic.remote_addr = (uintptr_t)p->buf[!from];
	wr.wr.atomic.rkey = p->mr[!from]->rkey;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	return ibv_post_send(p->id[from]->qp, &wr, &bad);
}

int pair_recv(struct pair *p, enum side at, uint64_t wr_id, uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)p->buf[at] + offset, length, p->mr[at]->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	if (p->srq && at == SERVER)
		return ibv_post_srq_recv(p->srq, &wr, &bad);
	return ibv_post_recv(p->id[at]->qp, &wr, &bad);
}

bool completed(struct ibv_cq *cq, unsigned int count)
{
	double limit = now() + step_timeout();
	struct ibv_wc wc;
	int n;

	while (count) {
		n = ibv_poll_cq(cq, 1, &wc);
		errno = EIO;
		TRY(n >= 0);
		if (n && wc.status != IBV_WC_SUCCESS && !may_go)
			printf("%s\n", ibv_wc_status_str(wc.status));
		TRY(!n || wc.status == IBV_WC_SUCCESS);
		errno = ETIMEDOUT;
		TRY(now() < limit);
		count -= n;
	}
	return true;
}
