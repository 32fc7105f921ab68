// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Work requests and completions.
 */
#include "agent.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SGE		16

struct queue queues[MAX_OBJECTS];

struct queue *queue_of(const struct args *a, const char *key)
{
	const char *name = arg_str(a, key, "cq");

	for (int i = 0; i < MAX_OBJECTS; i++)
		if (queues[i].cq && !strcmp(queues[i].name, name))
			return &queues[i];
	err(ENOENT, "cq");
}

/* cq name= depth= [manual=1: only "poll" looks] */
COMMAND(cq, a)
{
	struct queue *q = queues;
	int ret;

	while (q < queues + MAX_OBJECTS && q->cq)
		q++;
	if (q == queues + MAX_OBJECTS)
		err(ENOSPC, "cq");
	q->channel = ibv_create_comp_channel(device);
	if (q->channel)
		q->cq = ibv_create_cq(device, (int)arg_num(a, "depth", 256), q, q->channel, 0);
	if (!q->cq) {
		ret = errno;
		if (q->channel)
			ibv_destroy_comp_channel(q->channel);
		q->channel = NULL;
		err(ret, "ibv_create_cq");
	}
	fcntl(q->channel->fd, F_SETFL, O_NONBLOCK);
	q->manual = arg_num(a, "manual", 0);
	snprintf(q->name, sizeof(q->name), "%s", arg_str(a, "name", "cq"));
	ok("cqe=%d", q->cq->cqe);
}

/* dropcq name= */
COMMAND(dropcq, a)
{
	struct queue *q = queue_of(a, "name");
	int ret;

	ret = ibv_destroy_cq(q->cq);
	if (ret)
		err(ret, "ibv_destroy_cq");
	ibv_destroy_comp_channel(q->channel);
	memset(q, 0, sizeof(*q));
	ok("dropcq");
}

static void report(const struct queue *q, const struct ibv_wc *wc)
{
	const struct conn *c = conn_of_qp(wc->qp_num);

	line("wc cq=%s k=%d wr=%llu status=%d name=%s op=%d len=%u flags=%u imm=%u inv=%u vendor=%u",
	     q->name, c ? c->k : 0, (unsigned long long)wc->wr_id, wc->status,
	     ibv_wc_status_str(wc->status), wc->opcode, wc->byte_len, wc->wc_flags,
	     wc->wc_flags & IBV_WC_WITH_IMM ? ntohl(wc->imm_data) : 0,
	     wc->wc_flags & IBV_WC_WITH_INV ? wc->invalidated_rkey : 0, wc->vendor_err);
}

static int drain(struct queue *q, int most)
{
	struct ibv_wc wc;
	int seen = 0;

	while (seen < most && ibv_poll_cq(q->cq, 1, &wc) > 0) {
		report(q, &wc);
		seen++;
	}
	return seen;
}

int poll_queues(void)
{
	int seen = 0;

	for (int i = 0; i < MAX_OBJECTS; i++)
		if (queues[i].cq && !queues[i].manual)
			seen += drain(&queues[i], 1 << 20);
	return seen;
}

/* poll name= [most=] */
COMMAND(poll, a)
{
	struct queue *q = queue_of(a, "name");

	ok("seen=%d", drain(q, (int)arg_num(a, "most", 1 << 20)));
}

/* arm name= [solicited=1] */
COMMAND(arm, a)
{
	struct queue *q = queue_of(a, "name");

	answer(ibv_req_notify_cq(q->cq, (int)arg_num(a, "solicited", 0)), "arm");
}

void queue_event(struct queue *q)
{
	struct ibv_cq *cq;
	void *context;

	while (!ibv_get_cq_event(q->channel, &cq, &context)) {
		line("cqevent cq=%s", q->name);
		ibv_ack_cq_events(cq, 1);
	}
}

/* "mr:off:len,..." or "@addr:len:lkey,..." for what no region covers */
static int parse_sges(const char *text, struct ibv_sge *sge)
{
	char copy[1024], *save, *word;
	int n = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	for (word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		char name[32];
		unsigned long long first, second, third;
		struct region *r;

		if (n == MAX_SGE)
			return -1;
		if (sscanf(word, "@%lli:%lli:%lli", (long long *)&first, (long long *)&second,
			   (long long *)&third) == 3) {
			sge[n++] = (struct ibv_sge){ first, (uint32_t)second, (uint32_t)third };
			continue;
		}
		if (sscanf(word, "%31[^:]:%lli:%lli", name, (long long *)&first,
			   (long long *)&second) != 3)
			return -1;
		r = find_region(name);
		if (!r || !r->mr)
			return -1;
		sge[n++] = (struct ibv_sge){ r->iova + first, (uint32_t)second, r->mr->lkey };
	}
	return n;
}

static int post_recv(struct conn *c, const struct args *a, struct ibv_sge *sge, int num_sge)
{
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = num_sge }, *bad;
	uint64_t count = arg_num(a, "count", 1);
	int ret = 0;

	wr.wr_id = arg_num(a, "wr", 0);
	for (; count && !ret; count--, wr.wr_id++)
		ret = ibv_post_recv(c->qp, &wr, &bad);
	return ret;
}

static unsigned int parse_flags(const char *letters)
{
	unsigned int flags = 0;

	for (; *letters; letters++) {
		switch (*letters) {
		case 's':
			flags |= IBV_SEND_SIGNALED;
			break;
		case 'S':
			flags |= IBV_SEND_SOLICITED;
			break;
		case 'f':
			flags |= IBV_SEND_FENCE;
			break;
		case 'i':
			flags |= IBV_SEND_INLINE;
			break;
		default:
			break;
		}
	}
	return flags;
}

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
} opcodes[] = {
	{ "send", IBV_WR_SEND },
	{ "sendimm", IBV_WR_SEND_WITH_IMM },
	{ "sendinv", IBV_WR_SEND_WITH_INV },
	{ "write", IBV_WR_RDMA_WRITE },
	{ "writeimm", IBV_WR_RDMA_WRITE_WITH_IMM },
	{ "read", IBV_WR_RDMA_READ },
	{ "fadd", IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ "cas", IBV_WR_ATOMIC_CMP_AND_SWP },
	{ "inv", IBV_WR_LOCAL_INV },
	{ "bind", IBV_WR_BIND_MW },
};

static int fill_bind(const struct args *a, struct ibv_send_wr *wr)
{
	struct region *r = find_region(arg_str(a, "mr", "mr"));

	wr->bind_mw.mw = find_window(arg_str(a, "mw", "mw"));
	if (!wr->bind_mw.mw || !r)
		return -1;
	wr->bind_mw.rkey = (uint32_t)arg_num(a, "rkey", ibv_inc_rkey(wr->bind_mw.mw->rkey));
	wr->bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = r->mr,
		.addr = r->iova + arg_num(a, "off", 0),
		.length = arg_num(a, "len", r->len),
		.mw_access_flags = (unsigned int)parse_access(arg_str(a, "access", "w")),
	};
	return 0;
}

static int fill_send(const struct args *a, struct ibv_send_wr *wr)
{
	wr->send_flags = parse_flags(arg_str(a, "flags", "s"));
	switch (wr->opcode) {
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		wr->wr.atomic.remote_addr = arg_num(a, "raddr", 0);
		wr->wr.atomic.rkey = (uint32_t)arg_num(a, "rkey", 0);
		wr->wr.atomic.compare_add = arg_num(a, "compare", arg_num(a, "add", 0));
		wr->wr.atomic.swap = arg_num(a, "swap", 0);
		return 0;
	case IBV_WR_BIND_MW:
		return fill_bind(a, wr);
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		wr->invalidate_rkey = (uint32_t)arg_num(a, "inv", 0);
		return 0;
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		wr->imm_data = htonl((uint32_t)arg_num(a, "imm", 0));
		break;
	default:
		break;
	}
	wr->wr.rdma.remote_addr = arg_num(a, "raddr", 0);
	wr->wr.rdma.rkey = (uint32_t)arg_num(a, "rkey", 0);
	return 0;
}

static int post_send(struct conn *c, const struct args *a, struct ibv_sge *sge, int num_sge)
{
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = num_sge }, *bad;
	const char *op = arg_str(a, "op", "send");
	uint64_t count = arg_num(a, "count", 1);
	bool known = false;
	int ret = 0;

	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		if (strcmp(opcodes[i].name, op))
			continue;
		wr.opcode = opcodes[i].opcode;
		known = true;
	}
	wr.wr_id = arg_num(a, "wr", 0);
	if (!known || fill_send(a, &wr))
		return EINVAL;
	for (; count && !ret; count--, wr.wr_id++)
		ret = ibv_post_send(c->qp, &wr, &bad);
	return ret;
}

static int post_bind1(struct conn *c, const struct args *a)
{
	struct region *r = find_region(arg_str(a, "mr", "mr"));
	struct ibv_mw *mw = find_window(arg_str(a, "mw", "mw"));
	struct ibv_mw_bind bind = {
		.wr_id = arg_num(a, "wr", 0),
		.send_flags = parse_flags(arg_str(a, "flags", "s")),
	};

	if (!r || !mw)
		return ENOENT;
	bind.bind_info = (struct ibv_mw_bind_info){
		.mr = r->mr,
		.addr = r->iova + arg_num(a, "off", 0),
		.length = arg_num(a, "len", r->len),
		.mw_access_flags = (unsigned int)parse_access(arg_str(a, "access", "w")),
	};
	return ibv_bind_mw(c->qp, mw, &bind);
}

/*
 * post k= op=recv|send|... wr= [sge=] [count=] [flags=letters of sSfi]
 * [raddr= rkey=] [imm=] [inv=] [add=] [compare= swap=]
 * [mw= mr= off= len= access=]: bind (type 2), bind1 (type 1)
 */
COMMAND(post, a)
{
	struct conn *c = conn_of(a);
	const char *op = arg_str(a, "op", "send");
	struct ibv_sge sge[MAX_SGE];
	int num_sge = parse_sges(arg_str(a, "sge", ""), sge), ret;

	if (!c->qp || num_sge < 0)
		err(EINVAL, "post");
	if (!strcmp(op, "recv"))
		ret = post_recv(c, a, sge, num_sge);
	else if (!strcmp(op, "bind1"))
		ret = post_bind1(c, a);
	else
		ret = post_send(c, a, sge, num_sge);
	if (ret)
		err(ret, "post");
	if (!strncmp(op, "bind", 4) && find_window(arg_str(a, "mw", "mw")))
		ok("rkey=%u", find_window(arg_str(a, "mw", "mw"))->rkey);
	else
		ok("post");
}

/* --- one shared receive queue, for the QPs that use it      -------------------- */

struct ibv_srq *srq;

/* srq pd= depth= */
COMMAND(srq, a)
{
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = (uint32_t)arg_num(a, "depth", 16), .max_sge = 1 },
	};

	srq = ibv_create_srq(find_pd(arg_str(a, "pd", "pd")), &attr);
	if (!srq)
		err(errno, "ibv_create_srq");
	ok("wr=%u", attr.attr.max_wr);
}

/* dropsrq */
COMMAND(dropsrq, a)
{
	int ret = srq ? ibv_destroy_srq(srq) : ENOENT;

	(void)a;
	if (ret)
		err(ret, "ibv_destroy_srq");
	srq = NULL;
	ok("dropsrq");
}

/* postsrq count= sge= */
COMMAND(postsrq, a)
{
	struct ibv_sge sge[MAX_SGE];
	struct ibv_recv_wr wr = { .sg_list = sge }, *bad;
	uint64_t count = arg_num(a, "count", 1);
	int ret = srq ? 0 : ENOENT;

	wr.num_sge = parse_sges(arg_str(a, "sge", ""), sge);
	for (; count && !ret; count--)
		ret = ibv_post_srq_recv(srq, &wr, &bad);
	answer(ret, "postsrq");
}

/* srqarm limit= */
COMMAND(srqarm, a)
{
	struct ibv_srq_attr attr = { .srq_limit = (uint32_t)arg_num(a, "limit", 0) };

	answer(srq ? ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) : ENOENT, "srqarm");
}
