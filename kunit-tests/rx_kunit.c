// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What rx keeps back until a region is no longer read, and what it places before it frees a
 * credit. RFC 5040, 5.3.
 */
#include <linux/bottom_half.h>
#include <linux/interrupt.h>
#include <linux/net.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include "engine/ops/op.h"
#include "engine/ops/rnr.h"
#include "engine/path/rx.h"
#include "engine/run/doorbell.h"
#include "engine/run/rx_entry.h"
#include "engine/state/loopback.h"
#include "mem/mr_ops.h"
#include "mem_world.h"
#include "proto/ddp.h"
#include "proto/rdmap.h"
#include "stream_world.h"
#include "suite.h"

static u32 receives(struct stream_world *w)
{
	struct weft_cqe cqe;

	return weft_cq_poll(&w->recv_cq, &cqe, 1);
}

/*
 * The worker waits for the region, and so does the way down: each with a reference of its own. The
 * completion is raised once, and not before the last reader has finished.
 */
static void weft_rx_settles_once(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct world *m = make_world(test);
	struct weft_mem_region *mr = make_valid(test, m);
	struct weft_mem_user reader = m->user;
	struct weft_mem_region *busy[2];
	struct weft_cq_batch batch = {};
	struct weft_rx *rx = &w->st.rx;
	enum weft_fault fault;

	begin_read(test, &reader, mr->grant.stag);
	fault = weft_mem_invalidate(&m->user, mr->grant.stag, true, &rx->held.busy);
	KUNIT_ASSERT_EQ(test, fault, WEFT_FAULT_NONE);
	KUNIT_ASSERT_PTR_EQ(test, rx->held.busy, mr);
	KUNIT_EXPECT_EQ(test, weft_rx_read(&w->st, &batch), -EAGAIN);

	busy[0] = weft_rx_settle(&w->st, &batch);
	busy[1] = weft_rx_settle(&w->st, &batch);
	KUNIT_EXPECT_PTR_EQ(test, busy[0], mr);
	KUNIT_EXPECT_PTR_EQ(test, busy[1], mr);
	KUNIT_EXPECT_EQ(test, kref_read(&mr->ref), 4U); /* its owner's, and what is held back */
	KUNIT_EXPECT_EQ(test, receives(w), 0U);

	weft_mem_release(&reader);
	weft_mem_quiesce(busy[0]);
	KUNIT_EXPECT_NULL(test, weft_rx_settle(&w->st, &batch));
	KUNIT_EXPECT_NULL(test, weft_rx_settle(&w->st, &batch));
	weft_mem_quiesce(busy[1]);
	KUNIT_EXPECT_EQ(test, receives(w), 1U);
	KUNIT_EXPECT_EQ(test, receives(w), 0U);
	KUNIT_EXPECT_EQ(test, kref_read(&mr->ref), 1U);
	drop(test, m, mr);
	leave(test, m);
}

/* One that was never connected, and what may be left to a worker. */
static void give_socket(struct kunit *test, struct stream_world *w, struct socket **sock)
{
	struct weft_stream *st = &w->st;

	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, AF_INET, SOCK_STREAM, 0, sock), 0);
	w->sock.sk = (*sock)->sk;
	st->sock = &w->sock;
	st->wq = alloc_workqueue("weft_kunit", WQ_UNBOUND, 0);
	KUNIT_ASSERT_NOT_NULL(test, st->wq);
	weft_rx_entry_init(st);
}

static void take_socket(struct stream_world *w, struct socket *sock)
{
	destroy_workqueue(w->st.wq);
	w->st.sock = NULL;
	sock_release(sock);
}

/* A Read with Invalidate as it stands when its response is here and @mr is still read. */
static void hold_read(struct kunit *test, struct stream_world *w, struct weft_mem_user *user,
		      struct weft_mem_region *mr)
{
	struct weft_rx *rx = &w->st.rx;
	enum weft_fault fault;

	post_send(w, WEFT_WR_READ, 0); /* a process may not post the other */
	rx->held.swr = stage_send(test, w, 0);
	rx->held.swr->wqe.opcode = WEFT_WR_READ_INV;
	rx->held.swr->state = WEFT_SWR_SENT;
	fault = weft_mem_invalidate(user, mr->grant.stag, false, &rx->held.busy);
	KUNIT_ASSERT_EQ(test, fault, WEFT_FAULT_NONE);
	KUNIT_ASSERT_PTR_EQ(test, rx->held.busy, mr);
	weft_mpa_rx_pause(&rx->sock);
}

/*
 * Neither a post nor a request of the peer comes behind it. So the worker that tells it also has
 * tx report that the send queue is drained; the FIN is due then.
 */
static void weft_rx_close_goes_on_behind_what_was_held(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct world *m = make_world(test);
	struct weft_mem_region *mr = make_valid(test, m);
	struct weft_mem_user reader = m->user;
	struct weft_stream *st = &w->st;
	struct socket *sock;

	give_socket(test, w, &sock);
	begin_read(test, &reader, mr->grant.stag);
	hold_read(test, w, &m->user, mr);
	weft_cq_arm(&w->send_cq, WEFT_ARM_NEXT);
	st->state = WEFT_QP_CLOSING;

	weft_sock_lock(st->sock);
	weft_rx_sock_events.readable(st); /* what comes now is left to the worker */
	weft_sock_unlock(st->sock);
	weft_tx_process(st);
	KUNIT_EXPECT_EQ(test, st->todo, 0U);
	weft_mem_release(&reader);
	flush_work(&st->rx_work); /* has waited for the region, and begins again */
	flush_work(&st->rx_work);
	expect_sends(test, w, 0, 1, WEFT_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&w->counters, WEFT_CTR_CQ_EVENTS), 1ULL);
	KUNIT_EXPECT_EQ(test, st->state, WEFT_QP_CLOSING);
	KUNIT_EXPECT_EQ(test, st->todo & WEFT_QPA_HALF_CLOSE, WEFT_QPA_HALF_CLOSE);
	KUNIT_EXPECT_EQ(test, w->seen.teardowns, 1U);

	weft_mpa_rx_free(&st->rx.sock, st->sock);
	take_socket(w, sock);
	drop(test, m, mr);
	leave(test, m);
}

static void expect_left_to_worker(struct kunit *test, struct stream_world *w, u64 times)
{
	flush_work(&w->st.rx_work);
	flush_work(&w->st.rx_work); /* which may have begun again */
	KUNIT_EXPECT_EQ(test, weft_counters_read(&w->counters, WEFT_CTR_RX_WORK_QUEUED), times);
	/* It did run: what waited was handed over. The next one finds something as well. */
	KUNIT_EXPECT_FALSE(test, w->st.rx.sock.reassembly.whole);
	w->st.rx.sock.reassembly.whole = true;
}

/* Taken when it is handed over again. */
static enum weft_fault not_ready_once(void *owner, const struct weft_ulpdu *u)
{
	bool *seen = owner;
	enum weft_fault fault = *seen ? WEFT_FAULT_NONE : WEFT_FAULT_NOT_READY;

	*seen = true;
	return fault;
}

/* By a callback of TCP, by a tasklet that finds the socket locked, and by the worker itself. */
static void weft_rx_counts_what_is_left_to_the_worker(struct kunit *test)
{
	static const struct weft_mpa_rx_events events = { .ulpdu = not_ready_once };
	struct stream_world *w = test->priv;
	struct weft_stream *st = &w->st;
	struct weft_rx *rx = &st->rx;
	struct socket *sock;
	bool seen = true;

	give_socket(test, w, &sock);
	rx->sock.events = &events;
	rx->sock.owner = &seen;
	expect_left_to_worker(test, w, 0);
	weft_sock_lock(st->sock);
	rx->held.busy = (void *)w;
	weft_rx_sock_events.changed(st);
	rx->held.busy = NULL;
	weft_sock_unlock(st->sock);
	expect_left_to_worker(test, w, 1);

	local_bh_disable();
	st->rx_burst.callback(&st->rx_burst);
	local_bh_enable();
	expect_left_to_worker(test, w, 2);

	seen = false;
	weft_rx_schedule(st);
	expect_left_to_worker(test, w, 3);
	KUNIT_EXPECT_TRUE(test, seen);

	weft_mpa_rx_free(&rx->sock, st->sock);
	take_socket(w, sock);
}

/* tx of a peer on this host may wait until what came by TCP is read, or dropped. */
static void weft_rx_reading_resumes_the_peer(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_stream *st = &w->st;
	struct weft_loopback left = {}, lb = { .end.peer = &left.end, .peer_waits = true };
	struct weft_cq_batch batch = {};
	struct socket *sock;

	give_socket(test, w, &sock);
	st->loopback = &lb;
	weft_sock_lock(st->sock);
	weft_rx_read(st, &batch);
	KUNIT_EXPECT_FALSE(test, lb.peer_waits);
	lb.peer_waits = true;
	weft_rx_discard(st);
	KUNIT_EXPECT_FALSE(test, lb.peer_waits);
	weft_sock_unlock(st->sock);
	st->loopback = NULL;
	weft_mpa_rx_free(&st->rx.sock, st->sock);
	take_socket(w, sock);
}

/* A message that waits for a receive does so no longer: the queue may outlive the stream. */
static void weft_rx_stop_ends_a_wait(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_stream *st = &w->st;
	struct socket *sock;

	give_socket(test, w, &sock);
	w->index.rnr_timeout = 60000;
	KUNIT_ASSERT_EQ(test, weft_rnr_wait(st), WEFT_FAULT_NOT_READY);
	weft_rx_stop(st);
	KUNIT_EXPECT_FALSE(test, st->rnr_waits);
	KUNIT_EXPECT_EQ(test, w->rq.ctl->state, (u32)WEFT_RQ_OPEN);
	weft_rnr_cancel(st);
	weft_rnr_end(st);
	take_socket(w, sock);
}

/* Memory is brought along each time, for what may lack some. kmemleak would tell of the rest. */
static void weft_rx_worker_keeps_one_table(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_stream *st = &w->st;
	struct socket *sock;
	u32 i;

	give_socket(test, w, &sock);
	for (i = 0; i < 16; i++) {
		weft_mpa_rx_pause(&st->rx.sock);
		weft_rx_schedule(st);
		flush_work(&st->rx_work);
	}
	KUNIT_EXPECT_NOT_NULL(test, st->rx.sock.reassembly.pages);
	KUNIT_EXPECT_EQ(test, st->rx.sock.reassembly.held, 0U);
	weft_mpa_rx_free(&st->rx.sock, st->sock);
	take_socket(w, sock);
}

/* What was held back is told on the way down, to an application that sleeps as well. */
static void weft_rx_stop_tells_what_was_held(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct world *m = make_world(test);
	struct weft_mem_region *mr = make_valid(test, m);
	struct weft_mem_user reader = m->user;
	struct socket *sock;
	enum weft_fault fault;

	give_socket(test, w, &sock);
	begin_read(test, &reader, mr->grant.stag);
	fault = weft_mem_invalidate(&m->user, mr->grant.stag, true, &w->st.rx.held.busy);
	KUNIT_ASSERT_EQ(test, fault, WEFT_FAULT_NONE);
	weft_mem_release(&reader);
	weft_cq_arm(&w->recv_cq, WEFT_ARM_NEXT);
	weft_rx_stop(&w->st);
	KUNIT_EXPECT_EQ(test, receives(w), 1U);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&w->counters, WEFT_CTR_CQ_EVENTS), 1ULL);
	KUNIT_EXPECT_EQ(test, kref_read(&mr->ref), 1U);

	take_socket(w, sock);
	drop(test, m, mr);
	leave(test, m);
}

/* An atomic as it stands once TCP has it, whose answer is to go to @lkey. */
static void await_atomic(struct kunit *test, struct stream_world *w, u32 lkey)
{
	struct weft_sge *sge;
	struct weft_swr *swr;

	post_send(w, WEFT_WR_ATOMIC_FADD, 0);
	swr = stage_send(test, w, 0);
	sge = swr->sge;
	*sge = (struct weft_sge){ .addr = IOVA, .length = 8, .lkey = lkey };
	swr->wqe.num_sge = 1;
	swr->state = WEFT_SWR_SENT;
	*weft_readq_sent_slot(&w->st.readq) = (struct weft_readq_sent){
		.wr_index = swr->index,
		.atomic = true,
		.msn = 1,
		.length = 8,
	};
	weft_readq_sent_push(&w->st.readq);
}

static enum weft_fault answer_atomic(struct stream_world *w, u64 value)
{
	const struct weft_atomic_resp resp = { .id = 1, .original = value };
	struct weft_cq_batch batch = {};
	u8 head[WEFT_ATOMIC_RESP_LEN];
	struct weft_rx_seg seg = { .head = head, .batch = &batch };
	enum weft_fault fault;

	weft_atomic_resp_build(&resp, head);
	fault = weft_atomic_response_place(&w->st, &seg);
	return fault == WEFT_FAULT_NONE ? weft_atomic_response_end(&w->st, &seg) : fault;
}

struct place_row {
	const char *name;
	u32 access;
	bool placed;
};

static const struct place_row place_rows[] = {
	{ "may_be_written", LW, true },
	{ "may_not_be_written", RR, false },
};

WEFT_ROWS(place_rows)

/*
 * Once its credit is free a fenced request goes out, perhaps from the memory that the answer is
 * for: so it is placed first. One that cannot be placed frees nothing.
 */
static void weft_rx_places_an_atomic_first(struct kunit *test)
{
	const struct place_row *row = test->param_value;
	struct stream_world *w = test->priv;
	struct world *m = make_world(test);
	struct weft_mem_region *mr = make_region(test, m, row->access);
	const u64 *sink = (u64 *)(m->page[0] + FIRST);
	enum weft_fault fault;

	w->st.rx.mem = m->user;
	await_atomic(test, w, mr->grant.stag);
	fault = answer_atomic(w, 0x123456789abcdef0ULL);
	weft_mem_release(&w->st.rx.mem);
	KUNIT_EXPECT_EQ(test, fault == WEFT_FAULT_NONE, row->placed);
	KUNIT_EXPECT_EQ(test, weft_readq_idle(&w->st.readq), row->placed);
	KUNIT_EXPECT_EQ(test, *sink, row->placed ? 0x123456789abcdef0ULL : 0ULL);
	drop(test, m, mr);
	leave(test, m);
}

struct state_row {
	const char *name;
	enum weft_qp_state state;
	bool taken;
};

static const struct state_row state_rows[] = {
	{ "rts", WEFT_QP_RTS, true },
	{ "closing", WEFT_QP_CLOSING, true },
	{ "terminate", WEFT_QP_TERMINATE, false },
	{ "error", WEFT_QP_ERROR, false },
};

WEFT_ROWS(state_rows)

static enum weft_fault take_empty_write(struct stream_world *w)
{
	const struct weft_ddp_hdr hdr = {
		.tagged = true,
		.last = true,
		.ulp = weft_rdmap_ulp(WEFT_OP_WRITE),
	};
	struct weft_cq_batch batch = {};
	struct weft_ulpdu u = {};

	u.len = weft_ddp_build(&hdr, u.head);
	u.head_len = u.len;
	u.linear = u.head;
	w->st.rx.first_seen = true;
	return weft_rx_take(&w->st, &u, &batch);
}

/* After a fault, or once a consumer has given the QP up, none is taken. */
static void weft_rx_stops_with_the_qp(struct kunit *test)
{
	const struct state_row *row = test->param_value;
	struct stream_world *w = test->priv;

	w->st.state = row->state;
	KUNIT_EXPECT_EQ(test, take_empty_write(w),
			row->taken ? WEFT_FAULT_NONE : WEFT_FAULT_STOPPED);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&w->counters, WEFT_CTR_RX_SEGS), (u64)row->taken);
	KUNIT_EXPECT_EQ(test, weft_mpa_rx_is_stopped(&w->st.rx.sock), !row->taken);
	KUNIT_EXPECT_EQ(test, w->st.state, row->state);
}

static void read_nothing(struct kunit *test, struct stream_world *w)
{
	struct weft_stream *st = &w->st;
	struct weft_cq_batch batch = {};
	struct socket *sock;

	give_socket(test, w, &sock);
	weft_sock_lock(st->sock);
	KUNIT_EXPECT_EQ(test, weft_rx_read(st, &batch), 0);
	weft_sock_unlock(st->sock);
	weft_mpa_rx_free(&st->rx.sock, st->sock);
	take_socket(w, sock);
}

struct way_row {
	const char *name;
	bool by_socket;
};

static const struct way_row way_rows[] = {
	{ "by_tcp", true },
	{ "from_this_host", false },
};

WEFT_ROWS(way_rows)

/* The owner of a region that stayed pinned would wait for the peer's next message. */
static void weft_rx_lets_go_of_memory(struct kunit *test)
{
	const struct way_row *row = test->param_value;
	struct stream_world *w = test->priv;
	struct world *m = make_world(test);
	struct weft_mem_region *mr = make_region(test, m, RR);
	struct weft_rx *rx = &w->st.rx;

	rx->mem = m->user;
	rx->rq_mem = m->user;
	begin_read(test, &rx->mem, mr->grant.stag);
	begin_read(test, &rx->rq_mem, mr->grant.stag);
	if (row->by_socket)
		read_nothing(test, w);
	else
		KUNIT_EXPECT_EQ(test, take_empty_write(w), WEFT_FAULT_NONE);
	KUNIT_EXPECT_NULL(test, rx->mem.held);
	KUNIT_EXPECT_NULL(test, rx->rq_mem.held);
	weft_mem_release(&rx->mem); /* drop() waits for it */
	weft_mem_release(&rx->rq_mem);
	drop(test, m, mr);
	leave(test, m);
}

/*
 * A peer that sends a part of an FPDU has pages for that long, and they count as those of the
 * socket. A connection at rest has none.
 */
static void weft_rx_gives_pages_back(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_mpa_rx_reassembly *g = &w->st.rx.sock.reassembly;
	struct weft_cq_batch batch = {};
	struct socket *sock;

	give_socket(test, w, &sock);
	weft_mpa_rx_pages_fill(&g->pages, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, g->pages);
	g->held = WEFT_RX_PAGES;
	g->open = true;
	weft_sock_lock(w->st.sock);
	KUNIT_EXPECT_EQ(test, weft_rx_read(&w->st, &batch), 0);
	KUNIT_EXPECT_EQ(test, g->held, (u32)WEFT_RX_PAGES);
	KUNIT_EXPECT_EQ(test, g->charged, (u32)(WEFT_RX_PAGES * PAGE_SIZE));
	g->open = false;
	KUNIT_EXPECT_EQ(test, weft_rx_read(&w->st, &batch), 0);
	weft_sock_unlock(w->st.sock);
	KUNIT_EXPECT_EQ(test, g->held, 0U);
	KUNIT_EXPECT_EQ(test, g->charged, 0U);
	KUNIT_EXPECT_NULL(test, g->pages->page[0]);
	weft_mpa_rx_free(&w->st.rx.sock, w->st.sock);
	take_socket(w, sock);
}

/* What is in front of it is read first: what waits for a receive, or for a region. */
static void weft_rx_fin_comes_last(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_rx *rx = &w->st.rx;

	w->st.sock = &w->sock;
	w->net.fin = true;
	rx->sock.paused = true;
	weft_rx_check_fin(&w->st);
	KUNIT_EXPECT_EQ(test, w->st.state, WEFT_QP_RTS);
	rx->sock.paused = false;
	rx->held.busy = (void *)w;
	weft_rx_check_fin(&w->st);
	KUNIT_EXPECT_EQ(test, w->st.state, WEFT_QP_RTS);
	rx->held.busy = NULL;
	weft_rx_check_fin(&w->st);
	KUNIT_EXPECT_EQ(test, w->st.state, WEFT_QP_ERROR);
}

/* No callback comes once more: the worker that goes on reading finds the FIN. */
static void weft_rx_worker_finds_the_fin(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_stream *st = &w->st;
	struct socket *sock;

	give_socket(test, w, &sock);
	w->net.fin = true;
	weft_sock_lock(st->sock);
	st->rx.held.busy = (void *)w;
	weft_rx_sock_events.changed(st);
	KUNIT_EXPECT_EQ(test, st->state, WEFT_QP_RTS);
	st->rx.held.busy = NULL;
	weft_sock_unlock(st->sock);
	flush_work(&st->rx_work);
	KUNIT_EXPECT_EQ(test, st->state, WEFT_QP_ERROR);
	take_socket(w, sock);
}

struct fin_row {
	const char *name;
	bool within;
	int error;
};

static const struct fin_row fin_rows[] = {
	{ "between_fpdus", false, 0 },
	{ "within_an_fpdu", true, -ECONNRESET },
};

WEFT_ROWS(fin_rows)

/* What is missing of an FPDU never comes. RFC 5044, 4.1. */
static void weft_rx_fin_within_an_fpdu(struct kunit *test)
{
	const struct fin_row *row = test->param_value;
	struct stream_world *w = test->priv;

	w->st.sock = &w->sock;
	w->net.fin = true;
	w->st.rx.sock.reassembly.open = row->within;
	weft_rx_check_fin(&w->st);
	KUNIT_EXPECT_EQ(test, w->st.state, WEFT_QP_ERROR);
	KUNIT_EXPECT_EQ(test, w->st.close_error, row->error);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&w->counters, WEFT_CTR_CONN_LOST),
			(u64)row->within);
}

static struct kunit_case rx_cases[] = {
	KUNIT_CASE(weft_rx_settles_once),
	KUNIT_CASE(weft_rx_close_goes_on_behind_what_was_held),
	KUNIT_CASE(weft_rx_counts_what_is_left_to_the_worker),
	KUNIT_CASE(weft_rx_reading_resumes_the_peer),
	KUNIT_CASE(weft_rx_stop_ends_a_wait),
	KUNIT_CASE(weft_rx_worker_keeps_one_table),
	KUNIT_CASE(weft_rx_stop_tells_what_was_held),
	KUNIT_CASE_PARAM(weft_rx_places_an_atomic_first, place_rows_gen_params),
	KUNIT_CASE_PARAM(weft_rx_stops_with_the_qp, state_rows_gen_params),
	KUNIT_CASE_PARAM(weft_rx_lets_go_of_memory, way_rows_gen_params),
	KUNIT_CASE(weft_rx_gives_pages_back),
	KUNIT_CASE(weft_rx_fin_comes_last),
	KUNIT_CASE(weft_rx_worker_finds_the_fin),
	KUNIT_CASE_PARAM(weft_rx_fin_within_an_fpdu, fin_rows_gen_params),
	{},
};

static struct kunit_suite rx_suite = {
	.name = "weft_rx",
	.init = make_stream,
	.exit = free_stream,
	.test_cases = rx_cases,
};

kunit_test_suite(rx_suite);
