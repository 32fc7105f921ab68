// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What is handed to TCP, and how its socket is left. The socket is a real one, which was never
 * connected, so that it takes nothing.
 */
/* For other suites these are played. */
#define weft_mpa_tx_is_accepted real_mpa_tx_is_accepted
#define weft_mpa_tx_push real_mpa_tx_push
#include "net/mpa_tx_push.c"

#include <linux/gfp.h>
#include <linux/in.h>
#include <linux/net.h>
#include <linux/page_ref.h>
#include <linux/sched.h>
#include <linux/tcp.h>
#include <net/net_namespace.h>

#include "suite.h"

#define RUN	100U
#define RUNS	3U

struct pushing {
	struct socket *sock;
	struct sock *sk;
	struct weft_mpa_tx tx;
	struct weft_counters counters;
	struct page *page;
};

/* A batch of some runs of one page, to each of which it has a reference. */
static int make_pushing(struct kunit *test)
{
	struct pushing *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, p);
	KUNIT_ASSERT_EQ(test, weft_counters_init(&p->counters), 0);
	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, AF_INET, SOCK_STREAM, 0, &p->sock), 0);
	p->page = alloc_page(GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, p->page);
	p->sk = p->sock->sk;
	p->sk->sk_allocation = GFP_NOIO;
	p->tx = (struct weft_mpa_tx){
		.sk = p->sk,
		.counters = &p->counters,
		.mss = 1448,
		.buffers = 1,
		.pos = RUNS * RUN,
		.count = RUNS,
		.vecs = WEFT_FEW_VECS,
	};
	p->tx.vec = p->tx.few;
	for (i = 0; i < RUNS; i++) {
		get_page(p->page);
		p->tx.few[i] = (struct bio_vec){
			.bv_page = p->page,
			.bv_offset = i * RUN,
			.bv_len = RUN,
		};
	}
	test->priv = p;
	return 0;
}

static void free_pushing(struct kunit *test)
{
	struct pushing *p = test->priv;

	if (!p)
		return;
	while (p->tx.count > p->tx.head)
		put_page(p->tx.vec[--p->tx.count].bv_page);
	KUNIT_EXPECT_EQ(test, page_ref_count(p->page), 1);
	put_page(p->page);
	sock_release(p->sock);
	weft_counters_free(&p->counters);
}

static int push(struct pushing *p, bool more)
{
	int ret;

	if (p->tx.atomic)
		lock_sock(p->sk);
	ret = weft_mpa_tx_push(&p->tx, more);
	if (p->tx.atomic)
		release_sock(p->sk);
	return ret;
}

static const struct context_row {
	const char *name;
	bool atomic;
	u32 buffers;
	bool reserves;	/* a disk may be at the other end */
} context_rows[] = {
	{ "a process", false, 1, false },
	{ "a process with much", false, 4, false },
	{ "a callback", true, 1, false },
	{ "a process on reserves", false, 1, true },
	{ "a callback on reserves", true, 1, true },
};

WEFT_ROWS(context_rows);

/* Nothing may sleep in a callback, and a task may not reclaim. Afterwards both may as before. */
static void a_push_leaves_the_socket_as_it_was(struct kunit *test)
{
	const struct context_row *row = test->param_value;
	struct pushing *p = test->priv;

	p->tx.atomic = row->atomic;
	p->tx.buffers = row->buffers;
	p->tx.corked = true;
	sock_valbool_flag(p->sk, SOCK_MEMALLOC, row->reserves);
	KUNIT_EXPECT_EQ(test, push(p, false), -EPIPE);
	sock_reset_flag(p->sk, SOCK_MEMALLOC);
	KUNIT_EXPECT_FALSE(test, !!(current->flags & PF_MEMALLOC));
	KUNIT_EXPECT_TRUE(test, p->sk->sk_allocation == GFP_NOIO);
	KUNIT_EXPECT_FALSE(test, sock_owned_by_user_nocheck(p->sk));
	KUNIT_EXPECT_FALSE(test, p->tx.corked);
	KUNIT_EXPECT_FALSE(test, weft_mpa_tx_is_torn(&p->tx));
	KUNIT_EXPECT_EQ(test, p->tx.buffers, 1U);
	KUNIT_EXPECT_EQ(test, p->tx.pushed, 0ULL);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&p->counters, WEFT_CTR_TX_SOCKET_SENDS), 1ULL);
}

static const struct cork_row {
	const char *name;
	bool corked;
	bool atomic;
	bool more;
	int ret;
	bool pushes;
} cork_rows[] = {
	{ "the last one in a process", true, false, false, 0, true },
	{ "more follows", true, false, true, 0, false },
	{ "a callback leaves it to a process", true, true, false, -ENOBUFS, false },
	{ "nothing waits", false, false, false, 0, false },
	{ "nothing waits in a callback", false, true, false, 0, false },
};

WEFT_ROWS(cork_rows);

/* A segment that TCP holds back for more goes when there is no more. */
static void what_tcp_holds_back_goes_in_the_end(struct kunit *test)
{
	const struct cork_row *row = test->param_value;
	struct pushing *p = test->priv;

	while (p->tx.count)
		put_page(p->tx.vec[--p->tx.count].bv_page);
	p->tx.corked = row->corked;
	p->tx.atomic = row->atomic;
	KUNIT_EXPECT_EQ(test, push(p, row->more), row->ret);
	KUNIT_EXPECT_EQ(test, !!(tcp_sk(p->sk)->nonagle & TCP_NAGLE_PUSH), row->pushes);
	KUNIT_EXPECT_EQ(test, p->tx.corked, row->corked && !row->pushes);
}

static const struct accepted_row {
	const char *name;
	u64 pos;
	u64 pushed;
	u32 written;	/* by TCP's number, since the stream began */
	bool accepted;
} accepted_rows[] = {
	{ "pushed", 100, 100, 100, true },
	{ "a push is under way", 100, 0, 100, true },
	{ "a push is under way and goes on", 101, 0, 100, false },
	{ "TCP's number is a moment old", 100, 100, 0, true },
	{ "not staged", U64_MAX, 100, 100, false },
	{ "behind 4 GiB", (1ULL << 32) + 50, 1ULL << 32, 60, true },
	{ "behind 4 GiB and not yet", (1ULL << 32) + 50, 1ULL << 32, 40, false },
};

WEFT_ROWS(accepted_rows);

static void tcp_has_what_its_number_says(struct kunit *test)
{
	const struct accepted_row *row = test->param_value;
	struct pushing *p = test->priv;
	u32 was = tcp_sk(p->sk)->write_seq;

	p->tx.base = U32_MAX - 10;
	p->tx.pushed = row->pushed;
	WRITE_ONCE(tcp_sk(p->sk)->write_seq, p->tx.base + row->written);
	KUNIT_EXPECT_EQ(test, weft_mpa_tx_is_accepted(&p->tx, row->pos), row->accepted);
	WRITE_ONCE(tcp_sk(p->sk)->write_seq, was);
}

static const struct cut_row {
	const char *name;
	u32 head;
	u64 eor;
	u32 runs;
} cut_rows[] = {
	{ "no cut", 0, 0, RUNS },
	{ "behind the first", 0, BIT_ULL(0), 1 },
	{ "behind the second", 0, BIT_ULL(1), 2 },
	{ "behind the last", 0, BIT_ULL(2), RUNS },
	{ "one that was made", 1, BIT_ULL(0), 2 },
	{ "the first of two", 1, BIT_ULL(1) | BIT_ULL(2), 1 },
};

WEFT_ROWS(cut_rows);

static void runs_go_up_to_a_cut(struct kunit *test)
{
	const struct cut_row *row = test->param_value;
	struct pushing *p = test->priv;
	u32 bytes;

	p->tx.eor = row->eor;
	p->tx.head = row->head;
	KUNIT_EXPECT_EQ(test, runs_to_cut(&p->tx, &bytes), row->runs);
	KUNIT_EXPECT_EQ(test, bytes, row->runs * RUN);
	p->tx.head = 0;
}

/* TCP may take a part of a run. A page is let go of with its last byte. */
static void what_was_taken_is_gone(struct kunit *test)
{
	struct pushing *p = test->priv;

	drop_pushed(&p->tx, p->sk, RUN + 30);
	KUNIT_EXPECT_EQ(test, p->tx.pushed, RUN + 30ULL);
	KUNIT_EXPECT_EQ(test, p->tx.head, 1U);
	KUNIT_EXPECT_EQ(test, p->tx.vec[1].bv_offset, RUN + 30);
	KUNIT_EXPECT_EQ(test, p->tx.vec[1].bv_len, RUN - 30);
	KUNIT_EXPECT_EQ(test, page_ref_count(p->page), (int)RUNS);
	drop_pushed(&p->tx, p->sk, RUN - 30);
	KUNIT_EXPECT_EQ(test, p->tx.head, 2U);
	KUNIT_EXPECT_EQ(test, page_ref_count(p->page), (int)RUNS - 1);
	drop_pushed(&p->tx, p->sk, RUN);
	KUNIT_EXPECT_TRUE(test, weft_mpa_tx_empty(&p->tx));
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(a_push_leaves_the_socket_as_it_was, context_rows_gen_params),
	KUNIT_CASE_PARAM(what_tcp_holds_back_goes_in_the_end, cork_rows_gen_params),
	KUNIT_CASE_PARAM(tcp_has_what_its_number_says, accepted_rows_gen_params),
	KUNIT_CASE_PARAM(runs_go_up_to_a_cut, cut_rows_gen_params),
	KUNIT_CASE(what_was_taken_is_gone),
	{},
};

static struct kunit_suite suite = {
	.name = "weft_push",
	.init = make_pushing,
	.exit = free_pushing,
	.test_cases = cases,
};

kunit_test_suite(suite);
