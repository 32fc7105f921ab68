// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What a change of a QP's state does to what is posted. */
#define _GNU_SOURCE
#include "odp.h"

#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define OLD 4
#define SLOT 64

static struct end s2, c2;
static struct ibv_srq *srq;

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1 };
	int mask = IBV_QP_STATE;

	if (state == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	CHECK(!ibv_modify_qp(qp, &attr, mask));
}

static void reset(struct end *e)
{
	to_state(e->id->qp, IBV_QPS_RESET);
	to_state(e->id->qp, IBV_QPS_INIT);
}

/* Receive @id is for slot @id of the first server's private region. */
static void give(struct end *e, int id)
{
	CHECK(!recv_sge(e, id, sge(s.own, id * SLOT, SLOT)));
}

static void give_some_and_reset(struct end *e)
{
	make_qp(e);
	for (int id = 0; id < OLD; id++)
		give(e, id);
	reset(e);
	give(e, OLD);
}

static void send_some_and_reset(struct end *e)
{
	fill(e, 3);
	for (int id = 0; id < OLD; id++)
		CHECK(!send_sge(e, id, sge(e->own, id * SLOT, SLOT), 0));
	reset(e);
	CHECK(!send_sge(e, OLD, sge(e->own, OLD * SLOT, SLOT), 0));
}

static void end_pair(void)
{
	release(&c2);
	release(&s2);
}

CASE("states", reset_empties_the_receive_queue)
{
	connect_pair(&c2, &s2, give_some_and_reset);
	fill(&c2, 3);
	fill(&s, 9);
	fill(&c, 9);
	CHECK(!send_sge(&c2, 1, sge(c2.own, 0, SLOT), 0));
	expect(c2.id->send_cq, 1, IBV_WC_SUCCESS);
	expect(s2.id->recv_cq, OLD, IBV_WC_SUCCESS);
	CHECK(!memcmp(s.buf + BYTES + OLD * SLOT, c2.own->addr, SLOT));
	CHECK(!memcmp(s.own->addr, c.own->addr, OLD * SLOT));
	nothing(s2.id->recv_cq);
	end_pair();
}

static void with_receives(struct end *e)
{
	make_qp(e);
	for (int id = 0; id <= OLD; id++)
		give(e, id);
}

CASE("states", reset_empties_the_send_queue)
{
	before_connecting = send_some_and_reset;
	connect_pair(&c2, &s2, with_receives);
	expect(s2.id->recv_cq, 0, IBV_WC_SUCCESS);
	CHECK(!memcmp(s.own->addr, c2.buf + BYTES + OLD * SLOT, SLOT));
	expect(c2.id->send_cq, OLD, IBV_WC_SUCCESS);
	nothing(s2.id->recv_cq);
	nothing(c2.id->send_cq);
	end_pair();
}

static void fill_queues_and_reset(struct end *e)
{
	for (int i = 0; i < 3; i++) {
		for (int k = 0; k < WRS; k++) {
			CHECK(!send_sge(e, 100 + k, sge(e->own, 0, 0), 0));
			CHECK(!recv_sge(e, 100 + k, sge(e->own, 0, 8)));
		}
		CHECK(send_sge(e, 0, sge(e->own, 0, 0), 0) == ENOMEM);
		CHECK(recv_sge(e, 0, sge(e->own, 0, 0)) == ENOMEM);
		reset(e);
	}
}

/* All of a queue can be posted again, and the QP works as if it were new. */
CASE("states", reset_frees_all_entries)
{
	before_connecting = fill_queues_and_reset;
	connect_pair(&c2, &s2, NULL);
	works(&c2, &s2);
	end_pair();
}

static void with_srq_and_reset(struct end *e)
{
	struct ibv_qp_init_attr attr = { .cap = { WRS, WRS, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC,
					 .srq = srq };

	CHECK(!rdma_create_qp(e->id, NULL, &attr));
	reset(e);
}

/* Its receives belong to the QPs that still use it. */
CASE("states", reset_leaves_the_srq_alone)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = WRS, .max_sge = 1 } };
	struct ibv_sge sg = sge(s.own, 0, SLOT);
	struct ibv_recv_wr *bad, wr = { .wr_id = 5, .sg_list = &sg, .num_sge = 1 };

	srq = ibv_create_srq(s.id->pd, &attr);
	CHECK(srq && !ibv_post_srq_recv(srq, &wr, &bad));
	connect_pair(&c2, &s2, with_srq_and_reset);
	CHECK(!send_sge(&c2, 1, sge(c2.own, 0, SLOT), 0));
	expect(s2.id->recv_cq, 5, IBV_WC_SUCCESS);
	end_pair();
	CHECK(!ibv_destroy_srq(srq));
}

/* --- a second life --------------------------------------------------------------------- */

static enum ibv_qp_state state_of(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(e->id->qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

static void comes_to(struct end *e, enum ibv_qp_state state)
{
	double end = now() + SECONDS;

	while (state_of(e) != state)
		CHECK(now() < end && !usleep(1000));
}

/* INIT is that of rdma_create_qp(): it names no P_Key and no right. */
static void reset_for_a_life(struct end *e, void (*is_empty)(struct ibv_cq *cq))
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	to_state(e->id->qp, IBV_QPS_RESET);
	CHECK(state_of(e) == IBV_QPS_RESET);
	is_empty(e->id->send_cq);
	is_empty(e->id->recv_cq);
	CHECK(!ibv_modify_qp(e->id->qp, &init, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

static void begin_anew(struct end *e)
{
	reset_for_a_life(e, nothing);
}

static void no_event(struct end *e)
{
	struct pollfd p = { .fd = e->id->verbs->async_fd, .events = POLLIN };

	CHECK(poll(&p, 1, 100) == 0);
}

/* More than one, and each with all that a first one has: depths, windows of keys, events. */
CASE("states", lives_after_a_disconnect)
{
	uint32_t qpn;

	connect_pair(&c2, &s2, NULL);
	qpn = s2.id->qp->qp_num;
	for (int life = 0; life < 4; life++) {
		works(&c2, &s2);
		CHECK(!post(&c2, 1, IBV_WR_RDMA_READ, sge(c2.own, 0, 3000), (uintptr_t)s2.buf,
			    s2.open->rkey, IBV_SEND_SIGNALED));
		expect(c2.id->send_cq, 1, IBV_WC_SUCCESS);
		give(&s2, 50);
		CHECK(!rdma_disconnect(life % 2 ? s2.id : c2.id));
		comes_to(&s2, IBV_QPS_ERR);
		comes_to(&c2, IBV_QPS_ERR);
		expect(s2.id->recv_cq, 50, IBV_WC_WR_FLUSH_ERR);
		give(&s2, 51); /* flushed, and forgotten by the reset */
		begin_anew(&s2);
		begin_anew(&c2);
		reconnect_pair(&c2, &s2);
		CHECK(s2.id->qp->qp_num == qpn && state_of(&s2) == IBV_QPS_RTS);
	}
	works(&c2, &s2);
	no_event(&s2);
	end_pair();
	works(&c, &s);
}

#define PAGES (4 * PAGE)

/* From memory that nothing has touched yet to such memory, both paged on demand. */
static void sends_paged_memory(void)
{
	char *from = map_at(NULL, PAGES, -1), *to = map_at(NULL, PAGES, -1);
	struct ibv_mr *source = reg_odp(&c2, from, PAGES, 0);
	struct ibv_mr *sink = reg_odp(&s2, to, PAGES, IBV_ACCESS_LOCAL_WRITE);

	CHECK(!recv_sge(&s2, 1, at(sink, to, PAGES)));
	CHECK(!send_sge(&c2, 2, at(source, from, PAGES), 0));
	expect(c2.id->send_cq, 2, IBV_WC_SUCCESS);
	CHECK(expect(s2.id->recv_cq, 1, IBV_WC_SUCCESS).byte_len == PAGES);
	CHECK(!ibv_dereg_mr(source) && !ibv_dereg_mr(sink));
	CHECK(!munmap(from, PAGES) && !munmap(to, PAGES));
}

/* The first life ends with nothing more to wait for; in the next one both ends wait again. */
CASE("states", paged_memory_in_a_later_life)
{
	connect_pair(&c2, &s2, NULL);
	for (int life = 0; life < 3; life++) {
		sends_paged_memory();
		CHECK(!rdma_disconnect(c2.id));
		comes_to(&s2, IBV_QPS_ERR);
		comes_to(&c2, IBV_QPS_ERR);
		begin_anew(&s2);
		begin_anew(&c2);
		reconnect_pair(&c2, &s2);
	}
	sends_paged_memory();
	end_pair();
	works(&c, &s);
}

/* s2 refuses a Read, or a Send that is too long. Return: what its owner is told. */
static enum ibv_event_type refused(int life)
{
	if (life % 2) {
		CHECK(!recv_sge(&s2, 3, sge(s2.own, 0, 8)));
		CHECK(!send_sge(&c2, 2, sge(c2.own, 0, 9), 0));
		CHECK(next(c2.id->send_cq).wr_id == 2); /* perhaps TCP had it before it failed */
		expect(s2.id->recv_cq, 3, IBV_WC_LOC_LEN_ERR);
		return IBV_EVENT_QP_REQ_ERR;
	}
	CHECK(!post(&c2, 2, IBV_WR_RDMA_READ, sge(c2.own, 0, 8), (uintptr_t)s2.own->addr,
		    s2.own->rkey, IBV_SEND_SIGNALED));
	expect(c2.id->send_cq, 2, IBV_WC_REM_ACCESS_ERR);
	return IBV_EVENT_QP_ACCESS_ERR;
}

/* A Terminate, its event and what was flushed are of the first life; so is the next event. */
CASE("states", a_life_after_an_error)
{
	struct ibv_async_event event;
	enum ibv_event_type told;
	struct ibv_wc wc;

	connect_pair(&c2, &s2, NULL);
	for (int life = 0; life < 3; life++) {
		works(&c2, &s2);
		told = refused(life);
		for (int i = 0; i < 2; i++) {
			CHECK(!ibv_get_async_event(c.id->verbs, &event));
			CHECK(event.event_type ==
			      (event.element.qp == s2.id->qp ? told : IBV_EVENT_QP_FATAL));
			ibv_ack_async_event(&event);
		}
		no_event(&s2);
		flushes(&c2);
		flushes(&s2);
		begin_anew(&s2);
		begin_anew(&c2);
		CHECK(ibv_poll_cq(s2.id->recv_cq, 1, &wc) == 0);
		reconnect_pair(&c2, &s2);
	}
	works(&c2, &s2);
	end_pair();
}

/* Without a word to its owner, and with the end of its connection to the peer. */
CASE("states", a_connected_qp_is_reset)
{
	connect_pair(&c2, &s2, NULL);
	works(&c2, &s2);
	for (int id = 0; id < OLD; id++) {
		give(&s2, id);
		CHECK(!post(&s2, id, IBV_WR_RDMA_READ, sge(s2.own, 0, BYTES), (uintptr_t)c2.buf,
			    c2.open->rkey, IBV_SEND_SIGNALED));
	}
	begin_anew(&s2);
	comes_to(&c2, IBV_QPS_ERR);
	begin_anew(&c2);
	no_event(&s2);
	reconnect_pair(&c2, &s2);
	works(&c2, &s2);
	nothing(s2.id->recv_cq);
	end_pair();
}

/* Receives of the SRQ stay, and LAST_WQE_REACHED is for a QP in error. */
CASE("states", a_connected_qp_with_an_srq_is_reset)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = WRS, .max_sge = 1 } };
	struct ibv_sge sg = sge(s.own, 0, SLOT);
	struct ibv_recv_wr *bad, wr = { .wr_id = 5, .sg_list = &sg, .num_sge = 1 };

	srq = ibv_create_srq(s.id->pd, &attr);
	CHECK(srq && !ibv_post_srq_recv(srq, &wr, &bad));
	connect_pair(&c2, &s2, with_srq_and_reset);
	for (int life = 0; life < 3; life++) {
		CHECK(!send_sge(&c2, 1, sge(c2.own, 0, SLOT), 0));
		expect(c2.id->send_cq, 1, IBV_WC_SUCCESS);
		expect(s2.id->recv_cq, 5, IBV_WC_SUCCESS);
		CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
		begin_anew(&s2);
		no_event(&s2);
		comes_to(&c2, IBV_QPS_ERR);
		begin_anew(&c2);
		reconnect_pair(&c2, &s2);
	}
	end_pair();
	CHECK(!ibv_destroy_srq(srq));
}

/*
 * A receive, and a Read that is not answered, since the message in front of it finds no receive.
 * Both queues are to tell of what comes next.
 */
static void has_requests(struct end *e, struct end *peer)
{
	CHECK(!send_sge(e, 1, sge(e->own, 0, SLOT), 0));
	expect(e->id->send_cq, 1, IBV_WC_SUCCESS);
	CHECK(!post(e, 2, IBV_WR_RDMA_READ, sge(e->own, 0, SLOT), (uintptr_t)peer->buf,
		    peer->open->rkey, IBV_SEND_SIGNALED));
	give(e, 3);
	CHECK(!ibv_req_notify_cq(e->id->send_cq, 0) && !ibv_req_notify_cq(e->id->recv_cq, 0));
}

static void raises_nothing(struct end *e)
{
	CHECK(!event_within(e->id->send_cq_channel, 100));
	CHECK(!event_within(e->id->recv_cq_channel, 0));
	nothing(e->id->send_cq);
	nothing(e->id->recv_cq);
}

/* Another thread that waits for events, or polls, must not learn of a QP that its owner ends. */
CASE("states", requests_of_a_qp_that_is_reset_raise_no_event)
{
	connect_pair(&c2, &s2, NULL);
	has_requests(&s2, &c2);
	to_state(s2.id->qp, IBV_QPS_RESET);
	raises_nothing(&s2);
	end_pair();
}

CASE("states", requests_of_a_qp_that_is_destroyed_raise_no_event)
{
	connect_pair(&c2, &s2, NULL);
	has_requests(&s2, &c2);
	CHECK(!ibv_destroy_qp(s2.id->qp));
	s2.id->qp = NULL;
	raises_nothing(&s2);
	CHECK(!ibv_destroy_cq(s2.id->send_cq) && !ibv_destroy_cq(s2.id->recv_cq));
	CHECK(!ibv_destroy_comp_channel(s2.id->send_cq_channel));
	CHECK(!ibv_destroy_comp_channel(s2.id->recv_cq_channel));
	end_pair();
}

/* A window of type 2 that was bound in one life opens nothing in the next. */
CASE("states", a_window_ends_with_the_life_it_was_bound_in)
{
	struct ibv_mr *region =
		ibv_reg_mr(s.id->pd, s.buf, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(s.id->pd, IBV_MW_TYPE_2);
	struct ibv_send_wr *bad,
		wr = { .wr_id = 3, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED };

	CHECK(region && mw);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){ region, (uintptr_t)s.buf, BYTES,
							  IBV_ACCESS_REMOTE_READ };
	connect_pair(&c2, &s2, NULL);
	works(&c2, &s2);
	CHECK(!ibv_post_send(s2.id->qp, &wr, &bad));
	expect(s2.id->send_cq, 3, IBV_WC_SUCCESS);
	CHECK(!post(&c2, 4, IBV_WR_RDMA_READ, sge(c2.own, 0, 8), (uintptr_t)s.buf, wr.bind_mw.rkey,
		    IBV_SEND_SIGNALED));
	expect(c2.id->send_cq, 4, IBV_WC_SUCCESS);
	begin_anew(&s2);
	comes_to(&c2, IBV_QPS_ERR);
	begin_anew(&c2);
	CHECK(!ibv_dereg_mr(region)); /* nothing is bound to it any more */
	region = ibv_reg_mr(s.id->pd, s.buf, BYTES, IBV_ACCESS_LOCAL_WRITE);
	CHECK(region);
	reconnect_pair(&c2, &s2);
	works(&c2, &s2);
	CHECK(!post(&c2, 4, IBV_WR_RDMA_READ, sge(c2.own, 0, 8), (uintptr_t)s.buf, wr.bind_mw.rkey,
		    IBV_SEND_SIGNALED));
	expect(c2.id->send_cq, 4, IBV_WC_REM_ACCESS_ERR);
	end_pair();
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(region));
}

static struct end *churned;
static volatile int churning;

static void *post_all_the_time(void *unused)
{
	struct ibv_wc wc;

	while (churning) {
		recv_sge(churned, 1, sge(churned->own, 0, 8));
		send_sge(churned, 2, sge(churned->own, 0, 8), 0);
		ibv_poll_cq(churned->id->send_cq, 1, &wc);
		ibv_poll_cq(churned->id->recv_cq, 1, &wc);
	}
	return unused;
}

static void nothing_now(struct ibv_cq *cq)
{
	CHECK(ibv_poll_cq(cq, 1, &(struct ibv_wc){}) == 0);
}

/*
 * Another thread posts and polls at whatever state the QP is in. Its Sends find no receive, and
 * the other end learns of the reset when it has waited for one.
 */
CASE_WITH("states", lives_amid_posts, "rnr_timeout_ms=50")
{
	pthread_t thread;

	connect_pair(&c2, &s2, NULL);
	for (int life = 0; life < 30; life++) {
		churned = life % 2 ? &c2 : &s2;
		churning = 1;
		CHECK(!pthread_create(&thread, NULL, post_all_the_time, NULL));
		usleep(life * 500);
		if (life % 3 == 0)
			to_state(c2.id->qp, IBV_QPS_ERR);
		to_state(churned->id->qp, IBV_QPS_RESET);
		churning = 0;
		pthread_join(thread, NULL);
		comes_to(life % 2 ? &s2 : &c2, IBV_QPS_ERR);
		reset_for_a_life(&s2, nothing_now);
		reset_for_a_life(&c2, nothing_now);
		reconnect_pair(&c2, &s2);
		works(&c2, &s2);
	}
	end_pair();
}

/* --- posts while it goes down -------------------------------------------------------------- */

#define MANY 8192 /* receives: to flush them takes a while */
#define LIVES 40 /* on a busy machine few posts come amid a flush */

static void *fail(void *qp)
{
	to_state(qp, IBV_QPS_ERR);
	return NULL;
}

static void post_nothing(struct ibv_qp *qp, uint64_t id)
{
	struct ibv_send_wr *bad,
		wr = { .wr_id = id, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };

	CHECK(!ibv_post_send(qp, &wr, &bad));
}

static void give_nothing(struct ibv_qp *qp)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = 1 };

	CHECK(!ibv_post_recv(qp, &wr, &bad));
}

static void take_flushed(struct ibv_cq *cq, int count)
{
	double end = now() + SECONDS;
	struct ibv_wc wc;

	while (count) {
		CHECK(now() < end);
		if (ibv_poll_cq(cq, 1, &wc)) {
			CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
			count--;
		}
	}
}

/* Sends are flushed first. One that comes while receives are is not forgotten, nor a later one. */
CASE("states", a_post_amid_a_flush)
{
	struct ibv_cq *sends = ibv_create_cq(c.id->verbs, WRS, NULL, NULL, 0);
	struct ibv_cq *receives = ibv_create_cq(c.id->verbs, MANY, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = { .cap = { WRS, MANY, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC,
					 .send_cq = sends,
					 .recv_cq = receives };
	struct ibv_qp *qp;
	pthread_t thread;

	CHECK(sends && receives);
	qp = ibv_create_qp(c.id->pd, &attr);
	CHECK(qp);
	for (int life = 0; life < LIVES; life++) {
		to_state(qp, IBV_QPS_INIT);
		for (int i = 0; i < MANY; i++)
			give_nothing(qp);
		CHECK(!pthread_create(&thread, NULL, fail, qp));
		take_flushed(receives, 1);
		post_nothing(qp, 1);
		take_flushed(receives, MANY - 1);
		expect(sends, 1, IBV_WC_WR_FLUSH_ERR);
		pthread_join(thread, NULL);
		post_nothing(qp, 2);
		expect(sends, 2, IBV_WC_WR_FLUSH_ERR);
		give_nothing(qp);
		take_flushed(receives, 1);
		to_state(qp, IBV_QPS_RESET);
	}
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(sends) && !ibv_destroy_cq(receives));
}
