// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What an operator sees of a stream, and what is counted of its connection. TCP is played.
 */
/* For other suites this one is played, and the others are real. */
#define weft_stream_count_tcp real_count_tcp
#define weft_sock_local told_local
#define weft_sock_peer told_peer
#include "engine/life/introspect.c"

#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/xarray.h>

#include "stream_world.h"
#include "suite.h"

static struct weft_tcp_info tcp;
static bool unconnected;

void weft_tcp_get_info(struct weft_sock *s, struct weft_tcp_info *out)
{
	*out = tcp;
}

int weft_sock_local(const struct weft_sock *s, struct sockaddr_storage *out)
{
	out->ss_family = 1;
	return 0;
}

int weft_sock_peer(const struct weft_sock *s, struct sockaddr_storage *out)
{
	out->ss_family = 2;
	return unconnected ? -ENOTCONN : 0;
}

static int make_seen(struct kunit *test)
{
	int err = make_stream(test);
	struct stream_world *w = test->priv;

	if (err)
		return err;
	memset(&tcp, 0, sizeof(tcp));
	unconnected = false;
	mutex_init(&w->st.lifecycle);
	w->st.sock = &w->sock;
	return 0;
}

/* --- counters --- */

static const struct count_row {
	const char *name;
	enum weft_counter which;
	size_t at;	/* of a count of TCP's */
} count_rows[] = {
	{ "retransmissions", WEFT_CTR_TCP_RETRANS, offsetof(struct weft_tcp_stats, retrans) },
	{ "duplicates", WEFT_CTR_TCP_DSACKS, offsetof(struct weft_tcp_stats, dsacks) },
	{ "reordered", WEFT_CTR_TCP_REORDERED, offsetof(struct weft_tcp_stats, reordered) },
	{ "out_of_order", WEFT_CTR_TCP_OUT_OF_ORDER,
	  offsetof(struct weft_tcp_stats, out_of_order) },
	{ "ecn_marks", WEFT_CTR_TCP_ECN_MARKS, offsetof(struct weft_tcp_stats, ecn_marks) },
};

WEFT_ROWS(count_rows);

static void count_tcp(struct weft_stream *st)
{
	mutex_lock(&st->lifecycle);
	weft_stream_count_tcp(st);
	mutex_unlock(&st->lifecycle);
}

/* What is new is counted, also when TCP's count wraps; and nothing else moves. */
static void weft_introspect_counts_what_is_new(struct kunit *test)
{
	const struct count_row *row = test->param_value;
	u32 *count = (u32 *)((u8 *)&tcp.counts + row->at);
	struct stream_world *w = test->priv;
	u32 i;

	*count = 5;
	count_tcp(&w->st);
	count_tcp(&w->st);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&w->counters, row->which), 5ULL);
	weft_stream_life(&w->st)->tcp_counted = tcp.counts;
	*(u32 *)((u8 *)&weft_stream_life(&w->st)->tcp_counted + row->at) = U32_MAX;
	*count = 2;
	count_tcp(&w->st);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&w->counters, row->which), 8ULL);
	for (i = 0; i < ARRAY_SIZE(count_rows); i++)
		if (count_rows[i].which != row->which)
			KUNIT_EXPECT_EQ(test, weft_counters_read(&w->counters, count_rows[i].which),
					0ULL);
	w->st.sock = NULL;
	*count = 3;
	count_tcp(&w->st);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&w->counters, row->which), 8ULL);
}

static u64 bytes_again(const struct weft_counters *c)
{
	return weft_counters_read(c, WEFT_CTR_TCP_RETRANS_BYTES);
}

/* What was before stays where it was counted. */
static void weft_introspect_counts_in_another_block(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_counters other;

	KUNIT_ASSERT_EQ(test, weft_counters_init(&other), 0);
	tcp.counts.retrans_bytes = 1000;
	weft_stream_count_in(&w->st, &other);
	KUNIT_EXPECT_EQ(test, bytes_again(&w->counters), 1000ULL);
	tcp.counts.retrans_bytes = 1300;
	count_tcp(&w->st);
	KUNIT_EXPECT_EQ(test, bytes_again(&w->counters), 1000ULL);
	KUNIT_EXPECT_EQ(test, bytes_again(&other), 300ULL);
	weft_counters_redirect(&w->st.counters, &w->counters);
	weft_counters_free(&other);
}

/*
 * To ask again and again costs no more than to ask now and then. A stream that starts or ends
 * counts by itself, and no look keeps one.
 */
static void weft_introspect_counts_all_now_and_then(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_stream *st = &w->st;

	xa_init_flags(&w->index.xa, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
	KUNIT_ASSERT_FALSE(test, xa_is_err(xa_store_irq(&w->index.xa, 7, st, GFP_KERNEL)));
	tcp.counts.retrans_bytes = 10;
	w->index.tcp_counted = jiffies;
	weft_stream_count_tcp_all(&w->index, 1000 * HZ);
	KUNIT_EXPECT_EQ(test, bytes_again(&w->counters), 0ULL);
	w->index.tcp_counted = jiffies - 1000 * HZ;
	weft_stream_count_tcp_all(&w->index, 1000 * HZ);
	KUNIT_EXPECT_EQ(test, bytes_again(&w->counters), 10ULL);
	tcp.counts.retrans_bytes = 20;
	weft_stream_count_tcp_all(&w->index, 1000 * HZ);
	KUNIT_EXPECT_EQ(test, bytes_again(&w->counters), 10ULL);
	mutex_lock(&st->lifecycle);
	weft_stream_count_tcp_all(&w->index, 0);
	mutex_unlock(&st->lifecycle);
	KUNIT_EXPECT_EQ(test, bytes_again(&w->counters), 10ULL);
	weft_stream_count_tcp_all(&w->index, 0);
	KUNIT_EXPECT_EQ(test, bytes_again(&w->counters), 20ULL);
	KUNIT_EXPECT_EQ(test, kref_read(&st->ref), 1U);
	xa_erase_irq(&w->index.xa, 7);
	xa_destroy(&w->index.xa);
}

/* --- the stream --- */

static const struct weft_stream_cm_events cm_events;

/* Each value is another one. */
static void give_values(struct weft_stream *st)
{
	u32 i;

	st->cm_events = &cm_events;
	st->initiator = true;
	st->gate_open = false;
	st->rnr_waits = true;
	st->mpa.rnr_ms = 11;
	for (i = 0; i < WEFT_STREAM_QUEUES; i++) {
		st->tx.ddp.msn[i] = 20 + i;
		st->rx.ddp.msn[i] = 30 + i;
	}
	st->readq.sent_tail = 5;
	st->readq.sent_head = 3;
	st->readq.owed_tail = 9;
	st->readq.owed_head = 8;
	st->tx.sock.pos = 70;
	st->tx.sock.pushed = 60;
	st->tx.sock.mulpdu = 1400;
	st->tx.drained = true;
	st->ord = 16;
	st->ird = 17;
	st->fault.fault = WEFT_FAULT_MPA_CRC;
	st->peer_terminated = true;
	st->peer_fault = WEFT_FAULT_RDMAP_STAG;
	tcp.mss = 1448;
}

static void expect_details(struct kunit *test, const struct weft_stream_details *d)
{
	u32 i;

	KUNIT_EXPECT_TRUE(test, d->started && d->initiator && d->rnr_waits);
	KUNIT_EXPECT_FALSE(test, d->gate_open);
	KUNIT_EXPECT_EQ(test, d->mpa.rnr_ms, 11U);
	for (i = 0; i < WEFT_STREAM_QUEUES; i++) {
		KUNIT_EXPECT_EQ(test, d->tx_msn[i], 20 + i);
		KUNIT_EXPECT_EQ(test, d->rx_msn[i], 30 + i);
	}
	KUNIT_EXPECT_EQ(test, d->ord_used, 2U);
	KUNIT_EXPECT_EQ(test, d->ird_used, 1U);
	KUNIT_EXPECT_EQ(test, d->staged, 70ULL);
	KUNIT_EXPECT_EQ(test, d->pushed, 60ULL);
}

static void expect_end(struct kunit *test, const struct weft_stream_end *end)
{
	KUNIT_EXPECT_EQ(test, end->fault, WEFT_FAULT_MPA_CRC);
	KUNIT_EXPECT_TRUE(test, end->peer_terminated);
	KUNIT_EXPECT_EQ(test, end->peer_fault, WEFT_FAULT_RDMAP_STAG);
}

static const struct inspect_row {
	const char *name;
	bool sock;
	bool busy;	/* it starts or ends */
	bool unconnected;
	bool tcp;	/* is told of */
} inspect_rows[] = {
	{ "connected", true, false, false, true },
	{ "no_connection_any_more", false, false, false, false },
	{ "a_stream_that_starts_or_ends", true, true, false, false },
	{ "a_connection_that_was_reset", true, false, true, true },
};

WEFT_ROWS(inspect_rows);

static void weft_introspect_tells_all(struct kunit *test)
{
	const struct inspect_row *row = test->param_value;
	struct stream_world *w = test->priv;
	struct weft_stream_details *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);
	struct weft_stream *st = &w->st;

	KUNIT_ASSERT_NOT_NULL(test, d);
	give_values(st);
	unconnected = row->unconnected;
	st->sock = row->sock ? &w->sock : NULL;
	if (row->busy)
		mutex_lock(&st->lifecycle);
	memset(d, 0xff, sizeof(*d));
	weft_stream_inspect(st, d);
	if (row->busy)
		mutex_unlock(&st->lifecycle);
	else
		KUNIT_EXPECT_FALSE(test, mutex_is_locked(&st->lifecycle));
	expect_details(test, d);
	expect_end(test, &d->end);
	KUNIT_EXPECT_EQ(test, d->connected, row->tcp && !row->unconnected);
	KUNIT_EXPECT_EQ(test, d->tcp.mss, row->tcp ? 1448U : 0U);
	KUNIT_EXPECT_EQ(test, d->local.ss_family, row->tcp ? 1 : 0);
	KUNIT_EXPECT_EQ(test, d->peer.ss_family, row->tcp ? 2 : 0);
	st->rnr_waits = false;
}

/* What a QP reports that was never connected is 0 but for why it failed. */
static void weft_introspect_tells_of_no_connection(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_stream_details *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);
	struct weft_stream_info info;

	KUNIT_ASSERT_NOT_NULL(test, d);
	give_values(&w->st);
	weft_stream_query(&w->st, &info);
	KUNIT_EXPECT_EQ(test, info.state, WEFT_QP_RTS);
	KUNIT_EXPECT_TRUE(test, info.started && info.sq_drained);
	KUNIT_EXPECT_EQ(test, info.ord, 16U);
	KUNIT_EXPECT_EQ(test, info.ird, 17U);
	KUNIT_EXPECT_EQ(test, info.mulpdu, 1400U);
	w->st.cm_events = NULL;
	weft_stream_query(&w->st, &info);
	KUNIT_EXPECT_FALSE(test, info.started);
	memset(d, 0xff, sizeof(*d));
	weft_stream_inspect(&w->st, d);
	expect_end(test, &d->end);
	memset(&d->end, 0, sizeof(d->end));
	KUNIT_EXPECT_NULL(test, memchr_inv(d, 0, sizeof(*d)));
	w->st.rnr_waits = false;
}

static struct kunit_case introspect_cases[] = {
	KUNIT_CASE_PARAM(weft_introspect_counts_what_is_new, count_rows_gen_params),
	KUNIT_CASE(weft_introspect_counts_in_another_block),
	KUNIT_CASE(weft_introspect_counts_all_now_and_then),
	KUNIT_CASE_PARAM(weft_introspect_tells_all, inspect_rows_gen_params),
	KUNIT_CASE(weft_introspect_tells_of_no_connection),
	{},
};

static struct kunit_suite introspect_suite = {
	.name = "weft_introspect",
	.init = make_seen,
	.exit = free_stream,
	.test_cases = introspect_cases,
};

kunit_test_suite(introspect_suite);
