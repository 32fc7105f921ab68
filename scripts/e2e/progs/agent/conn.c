// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Connections: rdma_cm ids, their QPs, their events.
 */
#include "agent.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#define RESOLVE_MS	3000

static struct conn conns[MAX_OBJECTS];
static int last_k;

struct conn *find_conn(uint64_t k)
{
	for (int i = 0; k && i < MAX_OBJECTS; i++)
		if (conns[i].k == (int)k)
			return &conns[i];
	return NULL;
}

struct conn *conn_of_qp(uint32_t qp_num)
{
	for (int i = 0; i < MAX_OBJECTS; i++)
		if (conns[i].k && conns[i].qp && conns[i].qp->qp_num == qp_num)
			return &conns[i];
	return NULL;
}

static struct conn *new_conn(struct rdma_cm_id *id)
{
	for (int i = 0; i < MAX_OBJECTS; i++) {
		if (conns[i].k)
			continue;
		conns[i] = (struct conn){ .k = ++last_k, .id = id };
		id->context = &conns[i];
		return &conns[i];
	}
	return NULL;
}

static int address(const struct args *a, const char *key, struct sockaddr_storage *out)
{
	const char *text = arg_str(a, key, NULL);
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST }, *info;
	char port[16];

	if (!text)
		return -1;
	snprintf(port, sizeof(port), "%u",
		 (unsigned int)arg_num(a, strcmp(key, "src") ? "port" : "sport", 0));
	if (getaddrinfo(text, port, &hints, &info))
		return -1;
	memcpy(out, info->ai_addr, info->ai_addrlen);
	freeaddrinfo(info);
	return 0;
}

/* As the line says, if it does. */
static int set_tos(const struct args *a, struct rdma_cm_id *id)
{
	uint8_t tos = (uint8_t)arg_num(a, "tos", 0);

	if (!arg_str(a, "tos", NULL))
		return 0;
	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos));
}

/* listen addr= port= [backlog=] [tos=] */
void cmd_listen(const struct args *a)
{
	struct sockaddr_storage addr = { 0 };
	struct rdma_cm_id *id;

	if (address(a, "addr", &addr)) {
		err(EINVAL, "address");
		return;
	}
	if (rdma_create_id(cm_channel, &id, NULL, RDMA_PS_TCP)) {
		err(errno, "rdma_create_id");
		return;
	}
	if (rdma_bind_addr(id, (struct sockaddr *)&addr) || set_tos(a, id) ||
	    rdma_listen(id, (int)arg_num(a, "backlog", 16))) {
		err(errno, "rdma_listen");
		rdma_destroy_id(id);
		return;
	}
	ok("k=%d", new_conn(id)->k);
}

/* resolve addr= port= [src= [sport=]]: waits until address and route are known */
void cmd_resolve(const struct args *a)
{
	struct sockaddr_storage addr = { 0 }, src = { 0 };
	bool bound = !address(a, "src", &src);
	struct rdma_cm_id *id;

	if (address(a, "addr", &addr) || rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP)) {
		err(errno, "rdma_create_id");
		return;
	}
	if (rdma_resolve_addr(id, bound ? (struct sockaddr *)&src : NULL, (struct sockaddr *)&addr,
			      RESOLVE_MS) ||
	    rdma_resolve_route(id, RESOLVE_MS) || rdma_migrate_id(id, cm_channel)) {
		err(errno, "rdma_resolve");
		rdma_destroy_id(id);
		return;
	}
	ok("k=%d", new_conn(id)->k);
}

/* qp k= pd= cq= [rcq=] [sq=] [rq=] [sge=] [inline=] [sigall=1] [srq=1] */
void cmd_qp(const struct args *a)
{
	struct conn *c = find_conn(arg_num(a, "k", 0));
	struct queue *scq = find_queue(arg_str(a, "cq", "cq"));
	struct queue *rcq = find_queue(arg_str(a, "rcq", arg_str(a, "cq", "cq")));
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = (int)arg_num(a, "sigall", 0),
		.cap = {
			.max_send_wr = (uint32_t)arg_num(a, "sq", 64),
			.max_recv_wr = (uint32_t)arg_num(a, "rq", 64),
			.max_send_sge = (uint32_t)arg_num(a, "sge", 4),
			.max_recv_sge = (uint32_t)arg_num(a, "sge", 4),
			.max_inline_data = (uint32_t)arg_num(a, "inline", 0),
		},
	};

	if (!c || !scq || !rcq) {
		err(ENOENT, "qp");
		return;
	}
	attr.send_cq = scq->cq;
	attr.recv_cq = rcq->cq;
	attr.srq = arg_num(a, "srq", 0) ? srq : NULL;
	if (rdma_create_qp(c->id, find_pd(arg_str(a, "pd", "pd")), &attr)) {
		err(errno, "rdma_create_qp");
		return;
	}
	c->qp = c->id->qp;
	ok("qpn=%u sq=%u rq=%u", c->qp->qp_num, attr.cap.max_send_wr, attr.cap.max_recv_wr);
}

static void parameters(const struct args *a, struct rdma_conn_param *param, uint8_t *pd)
{
	int len = from_hex(arg_str(a, "pdata", ""), pd, 256);

	*param = (struct rdma_conn_param){
		.responder_resources = (uint8_t)arg_num(a, "ird", 4),
		.initiator_depth = (uint8_t)arg_num(a, "ord", 4),
		.private_data = len > 0 ? pd : NULL,
		.private_data_len = len > 0 ? (uint8_t)len : 0,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.qp_num = (uint32_t)arg_num(a, "qpn", 0),
	};
}

static void answer(int failed, const char *what)
{
	if (failed)
		err(errno, "%s", what);
	else
		ok("%s", what);
}

/* connect k= [ird=] [ord=] [pdata=hex] [qpn=, if the id has no QP] */
void cmd_connect(const struct args *a)
{
	struct conn *c = find_conn(arg_num(a, "k", 0));
	struct rdma_conn_param param;
	uint8_t pd[256];

	parameters(a, &param, pd);
	if (c)
		answer(rdma_connect(c->id, &param), "connect");
	else
		err(ENOENT, "conn");
}

/* accept k= [ird=] [ord=] [pdata=hex] [qpn=, if the id has no QP] */
void cmd_accept(const struct args *a)
{
	struct conn *c = find_conn(arg_num(a, "k", 0));
	struct rdma_conn_param param;
	uint8_t pd[256];

	parameters(a, &param, pd);
	if (c)
		answer(rdma_accept(c->id, &param), "accept");
	else
		err(ENOENT, "conn");
}

/* reject k= [pdata=hex] */
void cmd_reject(const struct args *a)
{
	struct conn *c = find_conn(arg_num(a, "k", 0));
	struct rdma_conn_param param;
	uint8_t pd[256];

	parameters(a, &param, pd);
	if (c)
		answer(rdma_reject(c->id, param.private_data, param.private_data_len), "reject");
	else
		err(ENOENT, "conn");
}

/* disconnect k= */
void cmd_disconnect(const struct args *a)
{
	struct conn *c = find_conn(arg_num(a, "k", 0));

	if (c)
		answer(rdma_disconnect(c->id), "disconnect");
	else
		err(ENOENT, "conn");
}

/* destroy k=: the QP and the id */
void cmd_destroy(const struct args *a)
{
	struct conn *c = find_conn(arg_num(a, "k", 0));

	if (!c) {
		err(ENOENT, "conn");
		return;
	}
	if (c->qp)
		rdma_destroy_qp(c->id);
	if (rdma_destroy_id(c->id)) {
		err(errno, "rdma_destroy_id");
		return;
	}
	memset(c, 0, sizeof(*c));
	ok("destroy");
}

/* query k= */
void cmd_query(const struct args *a)
{
	struct conn *c = find_conn(arg_num(a, "k", 0));
	struct ibv_qp_init_attr init;
	int mask = IBV_QP_STATE | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC |
		   IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MTU,
	    ret;
	struct ibv_qp_attr attr;

	if (!c || !c->qp) {
		err(ENOENT, "qp");
		return;
	}
	ret = ibv_query_qp(c->qp, &attr, mask, &init);
	if (ret) {
		err(ret, "query");
		return;
	}
	ok("state=%d ord=%d ird=%d access=%d mtu=%d qpn=%u", attr.qp_state, attr.max_rd_atomic,
	   attr.max_dest_rd_atomic, attr.qp_access_flags, attr.path_mtu, c->qp->qp_num);
}

/* modify k= [state=reset|init|rts|sqd|err] [access=letters] */
void cmd_modify(const struct args *a)
{
	static const struct {
		const char *name;
		enum ibv_qp_state state;
	} states[] = {
		{ "reset", IBV_QPS_RESET }, { "init", IBV_QPS_INIT }, { "rtr", IBV_QPS_RTR },
		{ "rts", IBV_QPS_RTS }, { "sqd", IBV_QPS_SQD }, { "err", IBV_QPS_ERR },
	};
	struct conn *c = find_conn(arg_num(a, "k", 0));
	struct ibv_qp_attr attr = { 0 };
	int mask = 0, ret;

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (strcmp(states[i].name, arg_str(a, "state", "")))
			continue;
		attr.qp_state = states[i].state;
		mask |= IBV_QP_STATE;
	}
	if (arg_str(a, "access", NULL)) {
		attr.qp_access_flags = parse_access(arg_str(a, "access", ""));
		mask |= IBV_QP_ACCESS_FLAGS;
	}
	if (!c || !c->qp) {
		err(ENOENT, "qp");
		return;
	}
	ret = ibv_modify_qp(c->qp, &attr, mask);
	if (ret)
		err(ret, "modify");
	else
		ok("modify");
}

/* tos k= tos=: before it connects */
void cmd_tos(const struct args *a)
{
	struct conn *c = find_conn(arg_num(a, "k", 0));

	if (c)
		answer(set_tos(a, c->id), "tos");
	else
		err(ENOENT, "conn");
}

/* ports k=: of both ends, as the program is told */
void cmd_ports(const struct args *a)
{
	struct conn *c = find_conn(arg_num(a, "k", 0));

	if (c)
		ok("src=%u dst=%u", ntohs(rdma_get_src_port(c->id)),
		   ntohs(rdma_get_dst_port(c->id)));
	else
		err(ENOENT, "conn");
}

static const char *event_name(enum rdma_cm_event_type type)
{
	const char *name = rdma_event_str(type);

	return strncmp(name, "RDMA_CM_EVENT_", 14) ? name : name + 14;
}

static void one_event(const struct rdma_cm_event *e)
{
	struct conn *c = e->id->context, *listener = NULL;

	if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		listener = e->listen_id->context;
		c = new_conn(e->id);
	}
	printf("event type=%s k=%d listener=%d status=%d ird=%u ord=%u pdlen=%u pdata=",
	       event_name(e->event), c ? c->k : 0, listener ? listener->k : 0, e->status,
	       e->param.conn.responder_resources, e->param.conn.initiator_depth,
	       e->param.conn.private_data_len);
	if (e->param.conn.private_data)
		print_hex(e->param.conn.private_data, e->param.conn.private_data_len);
	putchar('\n');
}

void conn_event(void)
{
	struct rdma_cm_event *e;

	while (!rdma_get_cm_event(cm_channel, &e)) {
		one_event(e);
		rdma_ack_cm_event(e);
	}
}
