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

struct conn *conn_of(const struct args *a)
{
	int k = (int)arg_num(a, "k", 0);

	for (int i = 0; k && i < MAX_OBJECTS; i++)
		if (conns[i].k == k)
			return &conns[i];
	err(ENOENT, "conn");
}

static struct ibv_qp *qp_of(const struct args *a)
{
	return conn_of(a)->qp ?: (err(ENOENT, "qp"), NULL);
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

static int set_afonly(const struct args *a, struct rdma_cm_id *id)
{
	int afonly = (int)arg_num(a, "afonly", 0);

	if (!arg_str(a, "afonly", NULL))
		return 0;
	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &afonly, sizeof(afonly));
}

/* The id goes as well. */
static void err_without(struct rdma_cm_id *id, const char *what)
{
	int number = errno;

	rdma_destroy_id(id);
	err(number, "%s", what);
}

/* listen addr= port= [backlog=] [tos=] [afonly=] */
COMMAND(listen, a)
{
	struct sockaddr_storage addr = { 0 };
	struct rdma_cm_id *id;

	if (address(a, "addr", &addr))
		err(EINVAL, "address");
	if (rdma_create_id(cm_channel, &id, NULL, RDMA_PS_TCP))
		err(errno, "rdma_create_id");
	if (set_afonly(a, id) || rdma_bind_addr(id, (struct sockaddr *)&addr) || set_tos(a, id) ||
	    rdma_listen(id, (int)arg_num(a, "backlog", 16)))
		err_without(id, "rdma_listen");
	ok("k=%d", new_conn(id)->k);
}

/* resolve addr= port= [src= [sport=]]: waits until address and route are known */
COMMAND(resolve, a)
{
	struct sockaddr_storage addr = { 0 }, src = { 0 };
	bool bound = !address(a, "src", &src);
	struct rdma_cm_id *id;

	if (address(a, "addr", &addr) || rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		err(errno, "rdma_create_id");
	if (rdma_resolve_addr(id, bound ? (struct sockaddr *)&src : NULL, (struct sockaddr *)&addr,
			      RESOLVE_MS) ||
	    rdma_resolve_route(id, RESOLVE_MS) || rdma_migrate_id(id, cm_channel))
		err_without(id, "rdma_resolve");
	ok("k=%d", new_conn(id)->k);
}

/* qp k= pd= cq= [rcq=] [sq=] [rq=] [sge=] [inline=] [sigall=1] [srq=1] */
COMMAND(qp, a)
{
	struct conn *c = conn_of(a);
	struct queue *scq = queue_of(a, "cq");
	struct queue *rcq = arg_str(a, "rcq", NULL) ? queue_of(a, "rcq") : scq;
	struct ibv_qp_init_attr attr = {
		.send_cq = scq->cq,
		.recv_cq = rcq->cq,
		.srq = arg_num(a, "srq", 0) ? srq : NULL,
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

	if (rdma_create_qp(c->id, find_pd(arg_str(a, "pd", "pd")), &attr))
		err(errno, "rdma_create_qp");
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

/* connect k= [ird=] [ord=] [pdata=hex] [qpn=, if the id has no QP] */
COMMAND(connect, a)
{
	struct conn *c = conn_of(a);
	struct rdma_conn_param param;
	uint8_t pd[256];

	parameters(a, &param, pd);
	answer(rdma_connect(c->id, &param), "connect");
}

/* accept k= [ird=] [ord=] [pdata=hex] [qpn=, if the id has no QP] */
COMMAND(accept, a)
{
	struct conn *c = conn_of(a);
	struct rdma_conn_param param;
	uint8_t pd[256];

	parameters(a, &param, pd);
	answer(rdma_accept(c->id, &param), "accept");
}

/* reject k= [pdata=hex] */
COMMAND(reject, a)
{
	struct conn *c = conn_of(a);
	struct rdma_conn_param param;
	uint8_t pd[256];

	parameters(a, &param, pd);
	answer(rdma_reject(c->id, param.private_data, param.private_data_len), "reject");
}

/* disconnect k= */
COMMAND(disconnect, a)
{
	struct conn *c = conn_of(a);

	answer(rdma_disconnect(c->id), "disconnect");
}

/* letgo k=: destroy the id, and keep the QP */
COMMAND(letgo, a)
{
	struct conn *c = conn_of(a);

	if (rdma_destroy_id(c->id))
		err(errno, "rdma_destroy_id");
	c->id = NULL;
	ok("letgo");
}

/* destroy k=: the QP and the id */
COMMAND(destroy, a)
{
	struct conn *c = conn_of(a);

	if (c->qp && c->id)
		rdma_destroy_qp(c->id);
	else if (c->qp && ibv_destroy_qp(c->qp))
		err(errno, "ibv_destroy_qp");
	if (c->id && rdma_destroy_id(c->id))
		err(errno, "rdma_destroy_id");
	memset(c, 0, sizeof(*c));
	ok("destroy");
}

/* query k= */
COMMAND(query, a)
{
	struct ibv_qp *qp = qp_of(a);
	struct ibv_qp_init_attr init;
	int mask = IBV_QP_STATE | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC |
		   IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MTU,
	    ret;
	struct ibv_qp_attr attr;

	ret = ibv_query_qp(qp, &attr, mask, &init);
	if (ret)
		err(ret, "query");
	ok("state=%d draining=%d ord=%d ird=%d access=%d mtu=%d qpn=%u", attr.qp_state,
	   attr.sq_draining, attr.max_rd_atomic, attr.max_dest_rd_atomic, attr.qp_access_flags,
	   attr.path_mtu, qp->qp_num);
}

/* modify k= [state=reset|init|rts|sqd|err] [access=letters] */
COMMAND(modify, a)
{
	static const struct {
		const char *name;
		enum ibv_qp_state state;
	} states[] = {
		{ "reset", IBV_QPS_RESET }, { "init", IBV_QPS_INIT }, { "rtr", IBV_QPS_RTR },
		{ "rts", IBV_QPS_RTS }, { "sqd", IBV_QPS_SQD }, { "err", IBV_QPS_ERR },
	};
	struct ibv_qp *qp = qp_of(a);
	struct ibv_qp_attr attr = { 0 };
	int mask = 0;

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
	answer(ibv_modify_qp(qp, &attr, mask), "modify");
}

/* tos k= tos=: before it connects */
COMMAND(tos, a)
{
	struct conn *c = conn_of(a);

	answer(set_tos(a, c->id), "tos");
}

/* ports k=: of both ends, as the program sees them */
COMMAND(ports, a)
{
	struct conn *c = conn_of(a);

	ok("src=%u dst=%u", ntohs(rdma_get_src_port(c->id)), ntohs(rdma_get_dst_port(c->id)));
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
