// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Which way a segment takes between two ends on one host, and which end goes on when.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/gfp.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>

/* The suite looks into it. */
#include "engine/path/loopback.c"

#include "engine/ops/rnr.h"
#include "engine/path/tx.h"
#include "engine/run/doorbell.h"
#include "engine/state/claim.h"
#include "engine/state/loopback.h"
#include "mem/mr_ops.h"
#include "mem_world.h"
#include "stream_world.h"
#include "suite.h"

/* Played: net/, where the two ends are not found. */
bool weft_loopback_may_find(const struct weft_sock *sock, u8 mode)
{
	return false;
}

void weft_loopback_join(struct weft_loopback_end *end, struct weft_sock *sock, void *owner)
{
}

void weft_loopback_leave(struct weft_loopback_end *end)
{
}

void weft_loopback_put(struct weft_loopback_end *end)
{
}

bool weft_loopback_lock(struct weft_loopback_end *end)
{
	return false;
}

void weft_loopback_unlock(struct weft_loopback_end *end, bool slow)
{
}

struct pair {
	struct stream_world *a;
	struct stream_world *b;
	struct weft_loopback at_a;
	struct weft_loopback at_b;
};

static int make_pair(struct kunit *test)
{
	struct pair *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	int err;

	KUNIT_ASSERT_NOT_NULL(test, p);
	err = make_stream(test);
	p->a = test->priv;
	err = err ?: make_stream(test);
	p->b = test->priv;
	test->priv = p;
	if (err)
		return err;
	join_loopback(p->a, &p->at_a, &p->at_b);
	join_loopback(p->b, &p->at_b, &p->at_a);
	return 0;
}

static void free_pair(struct kunit *test)
{
	struct pair *p = test->priv;

	if (!p)
		return;
	test->priv = p->a;
	free_stream(test);
	test->priv = p->b;
	free_stream(test);
}

static u32 users(const struct weft_loopback *lb)
{
	return atomic_read(&lb->end.users);
}

/* --- the way --- */

static const struct route_row {
	const char *name;
	u8 mode;	/* that the connection needs */
	u8 here;	/* what the attribute says */
	u8 there;
	bool alone;
	bool left;
	bool staged;
	bool atomic;
	enum weft_route route;
} route_rows[] = {
	{ "both allow it", 1, 1, 1, .route = WEFT_ROUTE_LOOPBACK },
	{ "more than is needed", 1, 2, 2, .route = WEFT_ROUTE_LOOPBACK },
	{ "never here", 1, 0, 1, .route = WEFT_ROUTE_TCP },
	{ "never there", 1, 1, 0, .route = WEFT_ROUTE_TCP },
	{ "across namespaces", 2, 2, 2, .route = WEFT_ROUTE_LOOPBACK },
	{ "across namespaces, not here", 2, 1, 2, .route = WEFT_ROUTE_TCP },
	{ "across namespaces, not there", 2, 2, 1, .route = WEFT_ROUTE_TCP },
	{ "no peer", 1, 1, 1, .alone = true, .route = WEFT_ROUTE_TCP },
	{ "the peer has left", 1, 1, 1, .left = true, .route = WEFT_ROUTE_TCP },
	{ "behind what is staged", 1, 1, 1, .staged = true, .route = WEFT_ROUTE_TCP },
	{ "may not sleep", 1, 1, 1, .atomic = true, .route = WEFT_ROUTE_LATER },
	{ "may not sleep, never there", 1, 1, 0, .atomic = true, .route = WEFT_ROUTE_TCP },
};

WEFT_ROWS(route_rows);

static void weft_loopback_takes_a_way(struct kunit *test)
{
	const struct route_row *row = test->param_value;
	struct pair *p = test->priv;
	bool enters = row->route == WEFT_ROUTE_LOOPBACK;
	u32 before;

	p->at_a.end.mode = row->mode;
	p->at_b.end.mode = row->mode;
	p->a->index.loopback = row->here;
	p->b->index.loopback = row->there;
	if (row->alone)
		p->at_a.end.peer = NULL;
	if (row->left)
		atomic_set(&p->at_b.end.users, 0);
	p->a->st.tx.sock.count = row->staged;
	p->a->st.tx.sock.atomic = row->atomic;
	before = users(&p->at_b);
	KUNIT_EXPECT_EQ(test, weft_loopback_route(&p->a->st), row->route);
	KUNIT_EXPECT_EQ(test, p->at_a.entered, enters);
	KUNIT_EXPECT_EQ(test, users(&p->at_b), before + enters);
	p->a->st.tx.sock.count = 0;
}

/* A second segment of the batch needs no second look, and enters once. */
static void weft_loopback_enters_once(struct kunit *test)
{
	struct pair *p = test->priv;

	KUNIT_EXPECT_EQ(test, weft_loopback_route(&p->a->st), WEFT_ROUTE_LOOPBACK);
	KUNIT_EXPECT_EQ(test, weft_loopback_route(&p->a->st), WEFT_ROUTE_LOOPBACK);
	KUNIT_EXPECT_EQ(test, users(&p->at_b), 2U);
	KUNIT_EXPECT_NULL(test, weft_loopback_batch_end(&p->a->st, NULL));
	KUNIT_EXPECT_EQ(test, users(&p->at_b), 1U);
}

/* --- what the peer takes --- */

static const struct take_row {
	const char *name;
	u32 behind;	/* bytes that came by TCP and were not read yet */
	bool stopped;
	bool within;	/* an FPDU */
	bool held;
	enum weft_qp_state state;
	enum weft_handed handed;
} take_rows[] = {
	{ "all is read", .state = WEFT_QP_RTS, .handed = WEFT_HANDED_TAKEN },
	{ "closing", .state = WEFT_QP_CLOSING, .handed = WEFT_HANDED_TAKEN },
	{ "some is not read", 8, .state = WEFT_QP_RTS, .handed = WEFT_HANDED_WAITS },
	{ "stopped", .stopped = true, .state = WEFT_QP_RTS, .handed = WEFT_HANDED_WAITS },
	{ "within an FPDU", .within = true, .state = WEFT_QP_RTS, .handed = WEFT_HANDED_WAITS },
	{ "held back", .held = true, .state = WEFT_QP_RTS, .handed = WEFT_HANDED_WAITS },
	{ "in error", .state = WEFT_QP_ERROR, .handed = WEFT_HANDED_WAITS },
};

WEFT_ROWS(take_rows);

/* A Write of no bytes does not overtake what went by TCP before. */
static void weft_loopback_takes_in_order(struct kunit *test)
{
	const struct take_row *row = test->param_value;
	const struct weft_ddp_hdr hdr = {
		.tagged = true,
		.last = true,
		.ulp = weft_rdmap_ulp(WEFT_OP_WRITE),
	};
	struct pair *p = test->priv;
	struct weft_rx *rx = &p->b->st.rx;
	struct weft_loopback_seg seg = { .st = &p->a->st };
	bool waits = row->handed == WEFT_HANDED_WAITS;
	enum weft_handed handed;

	p->a->st.tx.sock.pos = 100;
	rx->sock.pos = 100 - row->behind;
	rx->sock.reassembly.open = row->within;
	rx->held.busy = row->held ? (void *)p : NULL;
	if (row->stopped)
		weft_mpa_rx_stop(&rx->sock);
	rx->first_seen = true;
	p->b->st.state = row->state;
	non_block_start();	/* as the batch is staged */
	handed = weft_loopback_hand(&seg, weft_ddp_build(&hdr, seg.u.head));
	non_block_end();
	KUNIT_EXPECT_EQ(test, handed, row->handed);
	KUNIT_EXPECT_EQ(test, p->at_b.peer_waits, waits);
	KUNIT_EXPECT_EQ(test, weft_loopback_progress(&p->a->st, false), waits ? 0 : (u64)seg.u.len);
	KUNIT_EXPECT_EQ(test, weft_loopback_progress(&p->b->st, true), waits ? 0 : (u64)seg.u.len);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&p->b->counters, WEFT_CTR_RX_MSGS), (u64)!waits);
	/* Segments that were taken; of bytes, payload only. */
	KUNIT_EXPECT_EQ(test, weft_counters_read(&p->a->counters, WEFT_CTR_LOOPBACK_TX_SEGS),
			(u64)!waits);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&p->a->counters, WEFT_CTR_LOOPBACK_TX_BYTES),
			0ULL);
	/* One without a payload takes time as well. */
	KUNIT_EXPECT_EQ(test, p->at_a.batch, waits ? 0U : (u32)WEFT_LOOPBACK_SEGMENT_COST);
	rx->held.busy = NULL;
}

static const struct refusal_row {
	const char *name;
	bool answered;
	enum weft_handed handed;
} refusal_rows[] = {
	{ "a request that completes when it is taken", false, WEFT_HANDED_WAITS },
	{ "a request that is to be answered", true, WEFT_HANDED_TAKEN },
};

WEFT_ROWS(refusal_rows);

/*
 * What the receiver refuses is not complete. A Terminate may name a request that is to be
 * answered: only one that is sent.
 */
static void weft_loopback_refuses_a_segment(struct kunit *test)
{
	const struct refusal_row *row = test->param_value;
	const struct weft_ddp_hdr hdr = {
		.tagged = true,
		.last = true,
		.ulp = weft_rdmap_ulp(WEFT_OP_READ_RESP), /* there was no request */
	};
	struct pair *p = test->priv;
	struct weft_loopback_seg seg = { .st = &p->a->st, .answered = row->answered };
	enum weft_handed handed;

	p->b->st.rx.first_seen = true;
	non_block_start();
	handed = weft_loopback_hand(&seg, weft_ddp_build(&hdr, seg.u.head));
	non_block_end();
	KUNIT_EXPECT_EQ(test, handed, row->handed);
	KUNIT_EXPECT_EQ(test, p->b->st.state, WEFT_QP_TERMINATE);
	KUNIT_EXPECT_EQ(test, p->b->st.fault.fault, WEFT_FAULT_RDMAP_OPCODE);
	KUNIT_EXPECT_TRUE(test, weft_mpa_rx_is_stopped(&p->b->st.rx.sock));
}

/* A worker goes on when the region that the message invalidates is no longer read. */
static void weft_loopback_holds_a_message_back(struct kunit *test)
{
	struct pair *p = test->priv;
	struct weft_stream *there = &p->b->st;
	struct world *m = make_world(test);
	struct weft_mem_region *mr = make_valid(test, m);
	const struct weft_ddp_hdr hdr = {
		.last = true,
		.ulp = weft_rdmap_ulp(WEFT_OP_SEND_INV),
		.stag = mr->grant.stag,
		.qn = WEFT_QN_SEND,
		.msn = 1,
	};
	struct weft_loopback_seg seg = { .st = &p->a->st };
	struct weft_mem_user reader = m->user;
	struct weft_cq_batch batch = {};
	enum weft_handed handed;
	struct weft_cqe cqe;

	there->rx.mem = m->user;
	there->rx.first_seen = true;
	weft_ddp_rx_init(&there->rx.ddp);
	post_receive(p->b);
	begin_read(test, &reader, mr->grant.stag);
	non_block_start();
	handed = weft_loopback_hand(&seg, weft_ddp_build(&hdr, seg.u.head));
	non_block_end();
	KUNIT_EXPECT_EQ(test, handed, WEFT_HANDED_TAKEN);
	KUNIT_EXPECT_PTR_EQ(test, there->rx.held.busy, mr);
	KUNIT_EXPECT_EQ(test, weft_cq_poll(&p->b->recv_cq, &cqe, 1), 0U);
	KUNIT_EXPECT_EQ(test, p->b->seen.want_rx, 1U);
	weft_mem_release(&reader);
	KUNIT_EXPECT_NULL(test, weft_rx_settle(there, &batch));
	KUNIT_EXPECT_EQ(test, weft_cq_poll(&p->b->recv_cq, &cqe, 1), 1U);
	drop(test, m, mr);
	leave(test, m);
}

/* Of a list of many small elements a segment takes as many as it has room for. */
static void weft_loopback_takes_so_many_elements(struct kunit *test)
{
	struct {
		struct weft_loopback_seg seg;
		struct weft_ulpdu_piece behind;
	} *mem = kunit_kzalloc(test, sizeof(*mem), GFP_KERNEL);
	u8 bytes[8];
	const struct weft_mem_ref ref = { .len = sizeof(bytes), .flat = bytes };
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, mem);
	for (i = 0; i < WEFT_LOOPBACK_PIECES + 2; i++)
		KUNIT_EXPECT_EQ(test, weft_loopback_add(&mem->seg, 0, &ref), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, mem->seg.count, WEFT_LOOPBACK_PIECES);
	KUNIT_EXPECT_EQ(test, mem->seg.payload, WEFT_LOOPBACK_PIECES * 8);
	KUNIT_EXPECT_NULL(test, mem->behind.at);
}

/* --- which end continues --- */

static void ready(void *owner)
{
}

static const struct weft_stream_cm_events cm_events = {
	.ready = ready,
};

static const struct sending_row {
	const char *name;
	bool here;	/* a kernel consumer */
	bool there;
	bool worker;
} sending_rows[] = {
	{ "processes" },
	{ "a_process_hands_to_the_kernel", .there = true },
	{ "the_kernel_hands_to_a_process", .here = true, .worker = true },
	{ "the_kernel", .here = true, .there = true },
};

WEFT_ROWS(sending_rows);

/*
 * The peer may send, now that it has got the first message. This end runs it when the batch ends;
 * but a kernel consumer, which may be reclaiming memory, runs no process's.
 */
static void weft_loopback_has_the_peer_send(struct kunit *test)
{
	const struct sending_row *row = test->param_value;
	const struct weft_ddp_hdr hdr = {
		.tagged = true,
		.last = true,
		.ulp = weft_rdmap_ulp(WEFT_OP_WRITE),
	};
	struct pair *p = test->priv;
	struct weft_loopback_seg seg = { .st = &p->a->st };
	enum weft_handed handed;

	p->a->st.cfg.kernel = row->here;
	p->b->st.cfg.kernel = row->there;
	p->b->st.cm_events = &cm_events;
	p->b->st.gate_open = false;
	non_block_start();
	handed = weft_loopback_hand(&seg, weft_ddp_build(&hdr, seg.u.head));
	non_block_end();
	KUNIT_EXPECT_EQ(test, handed, WEFT_HANDED_TAKEN);
	KUNIT_EXPECT_TRUE(test, p->b->st.gate_open);
	KUNIT_EXPECT_EQ(test, p->at_a.peer_runs, !row->worker);
	KUNIT_EXPECT_EQ(test, p->b->seen.want_tx, (u32)row->worker);
}

static void weft_loopback_runs_the_peer_afterwards(struct kunit *test)
{
	struct pair *p = test->priv;

	weft_loopback_route(&p->a->st);
	p->at_a.peer_runs = true;
	KUNIT_EXPECT_PTR_EQ(test, weft_loopback_batch_end(&p->a->st, NULL), &p->b->st);
	KUNIT_EXPECT_FALSE(test, p->at_a.peer_runs);
	KUNIT_EXPECT_EQ(test, users(&p->at_b), 2U);
	KUNIT_EXPECT_EQ(test, p->b->seen.want_tx, 0U);
	weft_loopback_peer_done(&p->b->st);
	KUNIT_EXPECT_EQ(test, users(&p->at_b), 1U);
}

/* --- the doorbell of this end, and tx of the other --- */

static void ring(struct pair *p)
{
	struct weft_stream *st = &p->a->st;

	st->wq = system_wq;
	weft_doorbell_init(st);
	weft_loopback_route(st);
	p->at_a.peer_runs = true;
	weft_doorbell(st);
	p->a->net.marks_until = 0;
	weft_tx_claim_wait(st);
	weft_doorbell_end(st);
}

static const struct doorbell_row {
	const char *name;
	bool time; /* is left when this end is done */
} doorbell_rows[] = {
	{ "with_time_for_the_peer", true },
	{ "without_time_for_the_peer", false },
};

WEFT_ROWS(doorbell_rows);

/* Else a worker does. A peer that is not let go of could not be destroyed. */
static void weft_loopback_doorbell_runs_the_peer(struct kunit *test)
{
	const struct doorbell_row *row = test->param_value;
	struct pair *p = test->priv;

	if (!row->time)
		p->a->net.marks_until = jiffies + HZ;
	ring(p);
	KUNIT_EXPECT_EQ(test, p->b->net.pushes > 0, row->time);
	KUNIT_EXPECT_EQ(test, p->b->seen.want_tx, row->time ? 0U : 1U);
	KUNIT_EXPECT_EQ(test, users(&p->at_b), 1U);
}

/* This end is about to be destroyed, and sends what is posted. */
static void weft_loopback_end_leaves_the_peer_to_a_worker(struct kunit *test)
{
	struct pair *p = test->priv;

	post_send(p->a, WEFT_WR_SEND, 0);
	p->a->net.segments = 1;
	p->a->net.segment_bytes = 1;
	p->a->net.fetch = true;
	weft_loopback_route(&p->a->st);
	p->at_a.peer_runs = true;
	weft_tx_settle(&p->a->st);
	KUNIT_EXPECT_EQ(test, p->a->net.pushes, 1U);
	KUNIT_EXPECT_EQ(test, p->b->seen.want_tx, 1U);
	KUNIT_EXPECT_EQ(test, users(&p->at_b), 1U);
}

/* This end goes on, so a worker runs the other one. */
static void weft_loopback_does_not_keep_the_peer_waiting(struct kunit *test)
{
	struct pair *p = test->priv;
	struct weft_stream *earlier;

	weft_loopback_route(&p->a->st);
	p->at_a.peer_runs = true;
	earlier = weft_loopback_batch_end(&p->a->st, NULL);
	weft_loopback_route(&p->a->st);
	KUNIT_EXPECT_NULL(test, weft_loopback_batch_end(&p->a->st, earlier));
	KUNIT_EXPECT_EQ(test, p->b->seen.want_tx, 1U);
	KUNIT_EXPECT_EQ(test, users(&p->at_b), 1U);
}

/* A batch that handed nothing over forgets nothing. */
static void weft_loopback_keeps_what_is_to_run(struct kunit *test)
{
	struct pair *p = test->priv;

	weft_loopback_route(&p->a->st);
	p->at_a.peer_runs = true;
	KUNIT_EXPECT_PTR_EQ(test, weft_loopback_batch_end(&p->a->st, NULL), &p->b->st);
	KUNIT_EXPECT_PTR_EQ(test, weft_loopback_batch_end(&p->a->st, &p->b->st), &p->b->st);
	KUNIT_EXPECT_EQ(test, users(&p->at_b), 2U);
}

static void weft_loopback_resumes_once(struct kunit *test)
{
	struct pair *p = test->priv;

	weft_loopback_resume(&p->a->st);
	KUNIT_EXPECT_EQ(test, p->b->seen.want_tx, 0U);
	p->at_a.peer_waits = true;
	weft_loopback_resume(&p->a->st);
	weft_loopback_resume(&p->a->st);
	KUNIT_EXPECT_EQ(test, p->b->seen.want_tx, 1U);
	KUNIT_EXPECT_EQ(test, users(&p->at_b), 1U);
}

static void weft_loopback_resumes_none_that_left(struct kunit *test)
{
	struct pair *p = test->priv;

	p->at_a.peer_waits = true;
	atomic_set(&p->at_b.end.users, 0);
	weft_loopback_resume(&p->a->st);
	KUNIT_EXPECT_EQ(test, p->b->seen.want_tx, 0U);
	KUNIT_EXPECT_EQ(test, users(&p->at_b), 0U);
}

static void weft_loopback_batches_have_an_end(struct kunit *test)
{
	struct pair *p = test->priv;

	KUNIT_EXPECT_FALSE(test, weft_loopback_is_full(&p->a->st));
	p->at_a.batch = WEFT_LOOPBACK_BATCH;
	KUNIT_EXPECT_TRUE(test, weft_loopback_is_full(&p->a->st));
	weft_loopback_batch_end(&p->a->st, NULL);
	KUNIT_EXPECT_FALSE(test, weft_loopback_is_full(&p->a->st));
}

/* What is left is another batch: memory is let go of, and what is done is told, in between. */
static void weft_loopback_batch_ends_when_full(struct kunit *test)
{
	struct pair *p = test->priv;
	struct weft_tx_run run;

	p->a->net.segments = 3;
	p->at_a.batch = WEFT_LOOPBACK_BATCH;
	KUNIT_ASSERT_TRUE(test, weft_tx_try_claim(&p->a->st.tx.claim));
	weft_tx_run_process(&run);
	run.end += 60 * HZ;	/* the machine may be slow */
	KUNIT_EXPECT_EQ(test, weft_tx_turn(&p->a->st, &run), WEFT_TX_DONE);
	KUNIT_EXPECT_EQ(test, p->a->net.segments, 0U);
	KUNIT_EXPECT_EQ(test, p->a->net.pushes, 2U);
}

/* --- an end that leaves --- */

static void end_loopback(struct weft_stream *st)
{
	mutex_init(&st->lifecycle);
	mutex_lock(&st->lifecycle);
	weft_loopback_end(st);
	mutex_unlock(&st->lifecycle);
	mutex_destroy(&st->lifecycle);
}

static void weft_loopback_end_frees_its_page(struct kunit *test)
{
	struct pair *p = test->priv;
	struct page *page = alloc_page(GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, page);
	get_page(page);
	p->at_a.bounce = page;
	end_loopback(&p->a->st);
	KUNIT_EXPECT_EQ(test, page_ref_count(page), 1);
	put_page(page);
}

static const struct withdrawal_row {
	const char *name;
	u32 behind;	/* bytes that came by TCP and were not read yet */
	bool within;	/* an FPDU */
	bool ends;	/* the wait of the other end */
} withdrawal_rows[] = {
	{ "of a message that has not gone by TCP", .ends = true },
	{ "of one that waits in the socket", 8 },
	{ "of one that is there in part", .within = true },
};

WEFT_ROWS(withdrawal_rows);

/* A message that the other end has asked for a receive for never comes. */
static void weft_loopback_end_takes_a_message_back(struct kunit *test)
{
	const struct withdrawal_row *row = test->param_value;
	struct pair *p = test->priv;
	struct weft_stream *there = &p->b->st;

	p->b->index.rnr_timeout = 60000;
	KUNIT_ASSERT_EQ(test, weft_rnr_wait(there), WEFT_FAULT_NOT_READY);
	p->a->st.tx.sock.pushed = 100;
	there->rx.sock.pos = 100 - row->behind;
	there->rx.sock.reassembly.open = row->within;
	p->at_b.peer_waits = true;
	end_loopback(&p->a->st);
	KUNIT_EXPECT_NULL(test, p->a->st.loopback);
	KUNIT_EXPECT_FALSE(test, p->at_b.peer_waits);
	KUNIT_EXPECT_EQ(test, there->rnr_waits, !row->ends);
	KUNIT_EXPECT_EQ(test, p->b->seen.want_rx, (u32)row->ends);
	KUNIT_EXPECT_EQ(test, users(&p->at_b), 1U);
	weft_rnr_cancel(there);
	weft_rnr_end(there);
}

struct leaver {
	struct weft_loopback_end *end;
	struct completion gone;
};

/* As weft_loopback_leave() does, which is played here. */
static int leave_end(void *arg)
{
	struct leaver *leaver = arg;

	weft_loopback_exit(leaver->end);
	wait_var_event(&leaver->end->users, !atomic_read_acquire(&leaver->end->users));
	complete(&leaver->gone);
	return 0;
}

/* It sleeps as long as the peer is at work there, and the last to exit wakes it. */
static void weft_loopback_last_exit_wakes(struct kunit *test)
{
	struct pair *p = test->priv;
	struct leaver leaver = { .end = &p->at_b.end };
	struct task_struct *task;
	bool gone;
	int i;

	init_completion(&leaver.gone);
	KUNIT_ASSERT_TRUE(test, weft_loopback_enter(leaver.end));
	KUNIT_ASSERT_TRUE(test, weft_loopback_enter(leaver.end));
	task = kthread_run(leave_end, &leaver, "weft_kunit_leaver");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	for (i = 0; i < 1000 && users(&p->at_b) > 2; i++)
		msleep(20);
	msleep(50); /* it sleeps by then, as a rule */
	weft_loopback_exit(leaver.end);
	KUNIT_EXPECT_FALSE(test, wait_for_completion_timeout(&leaver.gone, HZ / 20));
	weft_loopback_exit(leaver.end);
	gone = wait_for_completion_timeout(&leaver.gone, 5 * HZ);
	KUNIT_EXPECT_TRUE(test, gone);
	if (!gone) {
		wake_up_var(&leaver.end->users);
		wait_for_completion(&leaver.gone);
	}
}

static struct kunit_case loopback_cases[] = {
	KUNIT_CASE_PARAM(weft_loopback_takes_a_way, route_rows_gen_params),
	KUNIT_CASE(weft_loopback_enters_once),
	KUNIT_CASE_PARAM(weft_loopback_takes_in_order, take_rows_gen_params),
	KUNIT_CASE_PARAM(weft_loopback_refuses_a_segment, refusal_rows_gen_params),
	KUNIT_CASE(weft_loopback_holds_a_message_back),
	KUNIT_CASE(weft_loopback_takes_so_many_elements),
	KUNIT_CASE_PARAM(weft_loopback_has_the_peer_send, sending_rows_gen_params),
	KUNIT_CASE(weft_loopback_runs_the_peer_afterwards),
	KUNIT_CASE_PARAM(weft_loopback_doorbell_runs_the_peer, doorbell_rows_gen_params),
	KUNIT_CASE(weft_loopback_end_leaves_the_peer_to_a_worker),
	KUNIT_CASE(weft_loopback_does_not_keep_the_peer_waiting),
	KUNIT_CASE(weft_loopback_keeps_what_is_to_run),
	KUNIT_CASE(weft_loopback_resumes_once),
	KUNIT_CASE(weft_loopback_resumes_none_that_left),
	KUNIT_CASE(weft_loopback_batches_have_an_end),
	KUNIT_CASE(weft_loopback_batch_ends_when_full),
	KUNIT_CASE(weft_loopback_end_frees_its_page),
	KUNIT_CASE_PARAM(weft_loopback_end_takes_a_message_back, withdrawal_rows_gen_params),
	KUNIT_CASE(weft_loopback_last_exit_wakes),
	{}
};

static struct kunit_suite loopback_suite = {
	.name = "weft_loopback",
	.init = make_pair,
	.exit = free_pair,
	.test_cases = loopback_cases,
};

kunit_test_suite(loopback_suite);
