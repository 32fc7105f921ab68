// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A stream is made and found, gets a connection once, and goes. Its workers and queues are real.
 */
/* For other suites these are real. */
#define weft_sock_attach played_attach
#define weft_sock_set_memalloc played_set_memalloc
/* The suites have one of that name. */
#define free_stream free_made_stream
#include "engine/life/stream.c"
#undef free_stream

#include "engine/ops/complete.h"
#include "engine/state/claim.h"
#include "stream_world.h"
#include "suite.h"

static u32 memallocs;
static void *attached;

void weft_sock_attach(struct weft_sock *s, const struct weft_sock_events *events, void *owner)
{
	attached = owner;
}

void weft_sock_set_memalloc(struct weft_sock *s)
{
	memallocs++;
}

void weft_mpa_tx_init(struct weft_mpa_tx *tx, struct weft_sock *s, bool crc, bool markers,
		      struct weft_counters *counters)
{
	memset(tx, 0, sizeof(*tx));
	tx->crc = crc;
	tx->markers = markers;
}

void weft_mpa_tx_module_exit(void)
{
}

void weft_mem_reserve_module_exit(void)
{
}

static int make_life(struct kunit *test)
{
	int err = make_stream(test);
	struct stream_world *w = test->priv;

	if (err)
		return err;
	memallocs = 0;
	attached = NULL;
	mutex_init(&w->st.lifecycle);
	w->st.state = WEFT_QP_IDLE;
	w->st.readq_mem = NULL; /* the suite's */
	return 0;
}

/* --- numbers --- */

static struct weft_stream *make_numbered(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_stream_config cfg = w->st.cfg;
	struct weft_stream *st;

	cfg.owner = w;
	st = weft_stream_create(&w->index, &cfg);
	KUNIT_ASSERT_FALSE(test, IS_ERR(st));
	return st;
}

/*
 * There are 24 bits of it, and 0 and 1 are QPs that no consumer makes. One that has ended is not
 * found.
 */
static void weft_life_is_found_by_its_number(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_stream *a, *b;

	KUNIT_ASSERT_EQ(test, weft_stream_module_init(), 0);
	weft_stream_index_init(&w->index);
	w->index.next = 0xffffff;
	a = make_numbered(test);
	b = make_numbered(test);
	KUNIT_EXPECT_EQ(test, weft_stream_qpn(a), 0xffffffU);
	KUNIT_EXPECT_EQ(test, weft_stream_qpn(b), 2U);
	KUNIT_EXPECT_PTR_EQ(test, weft_stream_find(&w->index, 0xffffff), a);
	weft_stream_put(a);
	KUNIT_EXPECT_PTR_EQ(test, weft_stream_find_owner(&w->index, 0xffffff), (void *)w);
	KUNIT_EXPECT_NULL(test, weft_stream_find(&w->index, 3));
	weft_stream_end(a);
	KUNIT_EXPECT_NULL(test, weft_stream_find(&w->index, 0xffffff));
	KUNIT_EXPECT_NULL(test, weft_stream_find_owner(&w->index, 0xffffff));
	KUNIT_EXPECT_PTR_EQ(test, weft_stream_find(&w->index, 2), b);
	KUNIT_EXPECT_EQ(test, kref_read(&a->ref), 1U);
	KUNIT_EXPECT_EQ(test, kref_read(&b->ref), 2U);
	weft_stream_put(b);
	weft_stream_end(b);
	weft_stream_put(a);
	weft_stream_put(b);
	weft_stream_index_destroy(&w->index);
	weft_stream_module_exit();
}

/* --- the start --- */

static const struct depth_row {
	const char *name;
	u32 agreed_ord, agreed_ird;
	u8 rtr;
	bool initiator;
	u32 ord, ird;
} depth_rows[] = {
	{ "as_agreed", 4, 3, 0, true, 4, 3 },
	{ "none", 0, 0, 0, true, 0, 0 },
	{ "a_first_read_to_send", 0, 0, WEFT_RTR_READ, true, 1, 0 },
	{ "a_first_read_to_answer", 0, 0, WEFT_RTR_READ, false, 0, 1 },
	{ "a_first_read_and_more", 5, 6, WEFT_RTR_READ, true, 5, 6 },
	{ "a_first_write", 0, 0, WEFT_RTR_WRITE, true, 0, 0 },
	{ "too_many", WEFT_MAX_ORD + 1, WEFT_MAX_IRD + 1, 0, true, WEFT_MAX_ORD, WEFT_MAX_IRD },
};

WEFT_ROWS(depth_rows);

static void weft_life_has_places_for_reads(struct kunit *test)
{
	const struct depth_row *row = test->param_value;
	const struct weft_mpa_result mpa = {
		.ord = row->agreed_ord,
		.ird = row->agreed_ird,
		.rtr = row->rtr,
	};
	struct stream_world *w = test->priv;
	struct weft_stream *st = &w->st;

	KUNIT_ASSERT_EQ(test, init_readq(st, &mpa, row->initiator), 0);
	KUNIT_EXPECT_EQ(test, st->ord, row->ord);
	KUNIT_EXPECT_EQ(test, st->ird, row->ird);
	KUNIT_EXPECT_EQ(test, st->readq.ord, row->ord);
	KUNIT_EXPECT_EQ(test, st->readq.ird, row->ird);
	kvfree(st->readq_mem);
}

static const struct side_row {
	const char *name;
	bool kernel;
	bool initiator;
	u32 memallocs;
} side_rows[] = {
	{ "a_process_connects", false, true, 0 },
	{ "a_process_accepts", false, false, 0 },
	{ "the_kernel_connects", true, true, 1 },
	{ "the_kernel_accepts", true, false, 0 },
};

WEFT_ROWS(side_rows);

/*
 * An initiator sends first, and what both agreed on. Only the host's own disk may be at the other
 * end of one: peers of a server do not live on its reserves.
 */
static void weft_life_begins_at_its_side(struct kunit *test)
{
	const struct weft_mpa_result mpa = { .crc = true,
					     .markers_tx = true,
					     .rtr = WEFT_RTR_WRITE };
	const struct side_row *row = test->param_value;
	struct stream_world *w = test->priv;
	struct weft_stream *st = &w->st;

	st->cfg.kernel = row->kernel;
	w->index.atomics = true;
	st->tx.paging.muted = true;
	st->rx.paging.muted = true;
	init_directions(st, &w->sock, &mpa, row->initiator);
	KUNIT_EXPECT_EQ(test, memallocs, row->memallocs);
	KUNIT_EXPECT_EQ(test, st->initiator, row->initiator);
	KUNIT_EXPECT_EQ(test, st->gate_open, row->initiator);
	KUNIT_EXPECT_EQ(test, st->rx.first_seen, row->initiator);
	KUNIT_EXPECT_EQ(test, st->tx.rtr, row->initiator ? WEFT_RTR_WRITE : 0);
	KUNIT_EXPECT_EQ(test, st->rx.rtr_kinds, row->initiator ? 0 : WEFT_RTR_WRITE);
	KUNIT_EXPECT_TRUE(test, st->rx.atomics && st->tx.sock.crc && st->rx.sock.crc);
	KUNIT_EXPECT_TRUE(test, st->tx.sock.markers);
	KUNIT_EXPECT_FALSE(test, st->rx.sock.markers);
	KUNIT_EXPECT_FALSE(test, st->tx.paging.muted || st->rx.paging.muted);
	st->sock = NULL;
}

static const struct start_row {
	const char *name;
	enum weft_qp_state state;
	bool connected;
	bool reserved;
	int reserves;	/* for a connection */
	int starts;
} start_rows[] = {
	{ "idle", WEFT_QP_IDLE, false, false, 0, 0 },
	{ "being_connected", WEFT_QP_IDLE, false, true, -EINVAL, 0 },
	{ "just_connected", WEFT_QP_IDLE, true, false, -EINVAL, -EINVAL },
	{ "connected", WEFT_QP_RTS, true, false, -EINVAL, -EINVAL },
	{ "failed", WEFT_QP_ERROR, false, false, -EINVAL, -EINVAL },
	{ "failed_while_it_was_being_connected", WEFT_QP_ERROR, false, true, -EINVAL, -EINVAL },
};

WEFT_ROWS(start_rows);

/* One connection at a time is set up for it, and it has only one. */
static void weft_life_is_connected_once(struct kunit *test)
{
	static const struct weft_stream_cm_events cm_events;
	const struct weft_mpa_result mpa = {};
	const struct start_row *row = test->param_value;
	struct stream_world *w = test->priv;
	struct weft_stream *st = &w->st;
	struct weft_sock another = {};

	st->state = row->state;
	st->reserved = row->reserved;
	st->sock = row->connected ? &w->sock : NULL;
	KUNIT_EXPECT_EQ(test, weft_stream_reserve(st), row->reserves);
	KUNIT_EXPECT_EQ(test, weft_stream_is_reserved(st), row->reserved || !row->reserves);
	mutex_lock(&st->lifecycle);
	KUNIT_EXPECT_EQ(test, take_socket(st, &another, &mpa, true, &cm_events, w), row->starts);
	mutex_unlock(&st->lifecycle);
	if (row->starts) {
		KUNIT_EXPECT_PTR_EQ(test, st->sock, row->connected ? &w->sock : NULL);
		KUNIT_EXPECT_NULL(test, st->readq_mem);
		KUNIT_EXPECT_NULL(test, st->cm_events);
	} else {
		KUNIT_EXPECT_PTR_EQ(test, st->sock, &another);
		KUNIT_EXPECT_PTR_EQ(test, st->cm_events, &cm_events);
		KUNIT_EXPECT_PTR_EQ(test, st->cm, (void *)w);
		KUNIT_EXPECT_FALSE(test, weft_stream_is_reserved(st));
		kvfree(st->readq_mem);
	}
	weft_stream_unreserve(st);
	KUNIT_EXPECT_FALSE(test, weft_stream_is_reserved(st));
	st->sock = NULL;
}

static u32 reads;

static void note_read(struct work_struct *work)
{
	reads++;
}

static const struct first_row {
	const char *name;
	enum weft_fault fault;	/* of the peer's reply */
	enum weft_qp_state state;
	bool sends;
} first_rows[] = {
	{ "starts", WEFT_FAULT_NONE, WEFT_QP_RTS, true },
	{ "refuses", WEFT_FAULT_MPA_IRD, WEFT_QP_TERMINATE, false },
};

WEFT_ROWS(first_rows);

/* A stream that refuses its peer sends nothing but a Terminate. Either reads what is there. */
static void weft_life_starts_or_refuses(struct kunit *test)
{
	static const struct weft_stream_cm_events cm_events;
	const struct weft_mpa_result mpa = {};
	const struct first_row *row = test->param_value;
	struct stream_world *w = test->priv;
	struct weft_stream *st = &w->st;
	int err;

	reads = 0;
	st->wq = system_wq;
	INIT_WORK(&st->rx_work, note_read);
	KUNIT_ASSERT_TRUE(test, weft_tx_try_claim(&st->tx.claim));
	if (row->fault == WEFT_FAULT_NONE)
		err = weft_stream_start(st, &w->sock, &mpa, true, &cm_events, w);
	else
		err = weft_stream_refuse(st, &w->sock, &mpa, row->fault, &cm_events, w);
	KUNIT_EXPECT_EQ(test, err, 0);
	KUNIT_EXPECT_EQ(test, st->state, row->state);
	KUNIT_EXPECT_EQ(test, st->gate_open, row->sends);
	KUNIT_EXPECT_EQ(test, st->fault.fault, row->fault);
	KUNIT_EXPECT_PTR_EQ(test, attached, (void *)st);
	flush_work(&st->rx_work);
	KUNIT_EXPECT_EQ(test, reads, 1U);
	kvfree(st->readq_mem);
	st->sock = NULL;
}

/* --- what is asked of it --- */

static const struct limit_row {
	const char *name;
	bool connected;
	bool initiator;
	u8 rtr;
	u32 limit;
	u32 ord;
} limit_rows[] = {
	{ "fewer", true, true, 0, 3, 3 },
	{ "more", true, true, 0, 7, 5 },
	{ "none", true, true, 0, 0, 0 },
	{ "none_but_the_first_read", true, true, WEFT_RTR_READ, 0, 1 },
	{ "none_and_a_first_write", true, true, WEFT_RTR_WRITE, 0, 0 },
	{ "none_and_the_peer_reads_first", true, false, WEFT_RTR_READ, 0, 0 },
	{ "without_a_connection", false, true, 0, 3, 5 },
};

WEFT_ROWS(limit_rows);

static void weft_life_limits_its_reads(struct kunit *test)
{
	const struct limit_row *row = test->param_value;
	struct stream_world *w = test->priv;
	struct weft_stream *st = &w->st;

	st->readq_mem = row->connected ? w : NULL;
	st->initiator = row->initiator;
	st->mpa.rtr = row->rtr;
	st->ord = 5;
	st->readq.ord = 5;
	weft_stream_limit_ord(st, row->limit);
	KUNIT_EXPECT_EQ(test, st->ord, row->ord);
	KUNIT_EXPECT_EQ(test, st->readq.ord, row->ord);
	KUNIT_EXPECT_EQ(test, st->tx.claim, 0UL);
	st->readq_mem = NULL;
}

/* Also of a Read that came before, and is answered afterwards. */
static void weft_life_withholds_rights_both_ways(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_mem_user all = {};

	weft_mem_set_access(&all, 0);
	KUNIT_EXPECT_NE(test, all.withheld, 0);
	weft_stream_set_access(&w->st, 0);
	KUNIT_EXPECT_EQ(test, w->st.rx.mem.withheld, all.withheld);
	KUNIT_EXPECT_EQ(test, w->st.tx.mem.withheld, all.withheld);
	weft_stream_set_access(&w->st, ~0U);
	KUNIT_EXPECT_EQ(test, w->st.rx.mem.withheld, 0);
	KUNIT_EXPECT_EQ(test, w->st.tx.mem.withheld, 0);
}

static const struct gate_row {
	const char *name;
	enum weft_qp_state state;
	bool opens;
} gate_rows[] = {
	{ "waits_for_the_first_message", WEFT_QP_RTS, true },
	{ "closing", WEFT_QP_CLOSING, true },
	{ "failed", WEFT_QP_ERROR, false },
};

WEFT_ROWS(gate_rows);

/* tx has an owner here, which is told. */
static void weft_life_opens_its_gate(struct kunit *test)
{
	const struct gate_row *row = test->param_value;
	struct stream_world *w = test->priv;
	struct weft_stream *st = &w->st;

	st->state = row->state;
	st->gate_open = false;
	KUNIT_ASSERT_TRUE(test, weft_tx_try_claim(&st->tx.claim));
	weft_stream_enable_tx(st);
	KUNIT_EXPECT_EQ(test, st->gate_open, row->opens);
	KUNIT_EXPECT_EQ(test, weft_tx_unclaim(&st->tx.claim), row->opens);
}

/* As long as a request has no outcome; the oldest one says in the end that there is no peer. */
static void weft_life_waits_for_a_peer(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_stream *st = &w->st;
	struct weft_swr *swr;

	st->state = WEFT_QP_RTS;
	KUNIT_EXPECT_FALSE(test, weft_stream_waits(st));
	post_send(w, WEFT_WR_SEND, 0);
	KUNIT_EXPECT_TRUE(test, weft_stream_waits(st));
	swr = stage_send(test, w, 0);
	KUNIT_EXPECT_TRUE(test, weft_stream_waits(st));
	weft_complete_done(st, swr, WEFT_FAULT_NONE, NULL);
	KUNIT_EXPECT_FALSE(test, weft_stream_waits(st));
	weft_stream_unreachable(st);
	KUNIT_EXPECT_EQ(test, st->state, WEFT_QP_ERROR);
	KUNIT_EXPECT_EQ(test, st->oldest_fault, WEFT_FAULT_UNREACHABLE);
}

static struct kunit_case life_cases[] = {
	KUNIT_CASE(weft_life_is_found_by_its_number),
	KUNIT_CASE_PARAM(weft_life_has_places_for_reads, depth_rows_gen_params),
	KUNIT_CASE_PARAM(weft_life_begins_at_its_side, side_rows_gen_params),
	KUNIT_CASE_PARAM(weft_life_is_connected_once, start_rows_gen_params),
	KUNIT_CASE_PARAM(weft_life_starts_or_refuses, first_rows_gen_params),
	KUNIT_CASE_PARAM(weft_life_limits_its_reads, limit_rows_gen_params),
	KUNIT_CASE(weft_life_withholds_rights_both_ways),
	KUNIT_CASE_PARAM(weft_life_opens_its_gate, gate_rows_gen_params),
	KUNIT_CASE(weft_life_waits_for_a_peer),
	{},
};

static struct kunit_suite life_suite = {
	.name = "weft_life",
	.init = make_life,
	.exit = free_stream,
	.test_cases = life_cases,
};

kunit_test_suite(life_suite);
