// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Sockets, which are real ones: which owner they call, what they tell, and what they leave. A
 * call that comes from outside of TCP's callbacks finds the owner as they do, or is refused.
 */
/* For other suites these are played. */
#define weft_sock_call real_sock_call
#define weft_sock_detach real_sock_detach
#define weft_sock_error real_sock_error
#define weft_sock_half_close real_sock_half_close
#define weft_sock_lock real_sock_lock
#define weft_sock_release real_sock_release
#define weft_sock_reset real_sock_reset
#define weft_sock_state real_sock_state
#define weft_sock_unlock real_sock_unlock
#include "net/tcp_socket.c"

#include "suite.h"

void weft_mem_reserve_check(struct sock *sk)
{
}

void weft_mem_reserve_end(struct weft_mem_reserve *reserve, struct sock *sk)
{
}

static u32 looks_at_window;

void weft_tcp_check_window(struct sock *sk)
{
	looks_at_window++;
}

void weft_tcp_drop_fragment(struct sock *sk)
{
}

static u32 calls;

static void count(void *owner)
{
	calls++;
}

static const struct weft_sock_events events = {
	.readable = count,
	.writable = count,
	.changed = count,
};

static bool call(struct weft_sock *s)
{
	bool called;

	local_bh_disable();
	called = weft_sock_call(s, count);
	local_bh_enable();
	return called;
}

static void a_lock_that_is_taken_refuses_the_call(struct kunit *test)
{
	struct weft_sock *s;

	calls = 0;
	KUNIT_ASSERT_EQ(test, weft_sock_create(&init_net, AF_INET, &s), 0);
	KUNIT_EXPECT_TRUE(test, call(s)); /* without an owner yet */
	weft_sock_attach(s, &events, test);
	KUNIT_EXPECT_TRUE(test, call(s));
	KUNIT_EXPECT_EQ(test, calls, 1U);
	weft_sock_lock(s);
	KUNIT_EXPECT_FALSE(test, call(s));
	KUNIT_EXPECT_EQ(test, calls, 1U);
	weft_sock_unlock(s);
	KUNIT_EXPECT_TRUE(test, call(s));
	KUNIT_EXPECT_EQ(test, calls, 2U);
	weft_sock_detach(s);
	KUNIT_EXPECT_TRUE(test, call(s));
	KUNIT_EXPECT_EQ(test, calls, 2U);
	weft_sock_release(s);
}

/* What came meanwhile was received in there, and perhaps the peer knows of hardly any room. */
static void letting_go_looks_at_the_window(struct kunit *test)
{
	struct weft_sock *s;
	u32 before;

	KUNIT_ASSERT_EQ(test, weft_sock_create(&init_net, AF_INET, &s), 0);
	weft_sock_lock(s);
	before = looks_at_window;
	weft_sock_unlock(s);
	KUNIT_EXPECT_EQ(test, looks_at_window, before + 1);
	weft_sock_release(s);
}

static void note_change(void *owner)
{
	*(u32 *)owner += 1;
}

static const struct weft_sock_events next_events = {
	.changed = note_change,
};

/* A later owner is called instead of the first one; when it has left, TCP is as it was. */
static void the_last_owner_is_called(struct kunit *test)
{
	struct weft_sock tcp = {};	/* its callbacks */
	struct weft_sock *s;
	struct sock *sk;
	u32 changes = 0;

	KUNIT_ASSERT_EQ(test, weft_sock_create(&init_net, AF_INET, &s), 0);
	sk = s->sk;
	tcp.saved_data_ready = sk->sk_data_ready;
	tcp.saved_write_space = sk->sk_write_space;
	tcp.saved_state_change = sk->sk_state_change;
	calls = 0;
	weft_sock_attach(s, &events, test);
	weft_sock_attach(s, &next_events, &changes);
	weft_sock_lock(s);
	sk->sk_state_change(sk);
	weft_sock_unlock(s);
	KUNIT_EXPECT_EQ(test, calls, 0U);
	KUNIT_EXPECT_EQ(test, changes, 1U);
	weft_sock_detach(s);
	KUNIT_EXPECT_PTR_EQ(test, sk->sk_data_ready, tcp.saved_data_ready);
	KUNIT_EXPECT_PTR_EQ(test, sk->sk_write_space, tcp.saved_write_space);
	KUNIT_EXPECT_PTR_EQ(test, sk->sk_state_change, tcp.saved_state_change);
	weft_sock_detach(s); /* once more changes nothing */
	KUNIT_EXPECT_PTR_EQ(test, sk->sk_state_change, tcp.saved_state_change);
	weft_sock_release(s);
}

/* TCP counts the sockets that may use reserves, and looks at each packet while there are any. */
static void reserves_end_with_the_socket(struct kunit *test)
{
	bool others = sk_memalloc_socks();
	struct weft_sock *s;

	KUNIT_ASSERT_EQ(test, weft_sock_create(&init_net, AF_INET, &s), 0);
	KUNIT_EXPECT_FALSE(test, !!(weft_sock_allocation(s) & __GFP_MEMALLOC));
	weft_sock_set_memalloc(s);
	weft_sock_set_memalloc(s);
	KUNIT_EXPECT_TRUE(test, sock_flag(s->sk, SOCK_MEMALLOC));
	KUNIT_EXPECT_TRUE(test, !!(weft_sock_allocation(s) & __GFP_MEMALLOC));
	KUNIT_EXPECT_TRUE(test, !!sk_memalloc_socks());
	weft_sock_release(s);
	KUNIT_EXPECT_EQ(test, !!sk_memalloc_socks(), others);
}

static const struct state_row {
	const char *name;
	u8 tcp;
	enum weft_sock_state state;
} state_rows[] = {
	{ "SYN-SENT", TCP_SYN_SENT, WEFT_SOCK_CONNECTING },
	{ "SYN-RECEIVED", TCP_SYN_RECV, WEFT_SOCK_CONNECTING },
	{ "ESTABLISHED", TCP_ESTABLISHED, WEFT_SOCK_UP },
	{ "FIN-WAIT-1", TCP_FIN_WAIT1, WEFT_SOCK_UP },
	{ "FIN-WAIT-2", TCP_FIN_WAIT2, WEFT_SOCK_UP },
	{ "CLOSE-WAIT", TCP_CLOSE_WAIT, WEFT_SOCK_PEER_CLOSED },
	{ "CLOSING", TCP_CLOSING, WEFT_SOCK_LOST },
	{ "LAST-ACK", TCP_LAST_ACK, WEFT_SOCK_LOST },
	{ "TIME-WAIT", TCP_TIME_WAIT, WEFT_SOCK_LOST },
	{ "CLOSED", TCP_CLOSE, WEFT_SOCK_LOST },
};

WEFT_ROWS(state_rows);

static void a_connection_stands_as_tcp_says(struct kunit *test)
{
	const struct state_row *row = test->param_value;
	struct weft_sock *s;

	KUNIT_ASSERT_EQ(test, weft_sock_create(&init_net, AF_INET, &s), 0);
	WRITE_ONCE(s->sk->sk_state, row->tcp);
	KUNIT_EXPECT_EQ(test, weft_sock_state(s), row->state);
	WRITE_ONCE(s->sk->sk_state, TCP_CLOSE);
	weft_sock_release(s);
}

static const struct error_row {
	const char *name;
	int err;
	bool unreachable;
} error_rows[] = {
	{ "EHOSTUNREACH", EHOSTUNREACH, true }, { "EHOSTDOWN", EHOSTDOWN, true },
	{ "ENETUNREACH", ENETUNREACH, true },	{ "ENETDOWN", ENETDOWN, true },
	{ "ETIMEDOUT", ETIMEDOUT, false },	{ "ECONNRESET", ECONNRESET, false },
	{ "ECONNREFUSED", ECONNREFUSED, false }, { "none", 0, false },
};

WEFT_ROWS(error_rows);

/* It is told as often as it is asked for. */
static void an_error_tells_what_is_unreachable(struct kunit *test)
{
	const struct error_row *row = test->param_value;
	struct weft_sock *s;

	KUNIT_ASSERT_EQ(test, weft_sock_create(&init_net, AF_INET, &s), 0);
	WRITE_ONCE(s->sk->sk_err, row->err);
	KUNIT_EXPECT_EQ(test, weft_sock_error(s), -row->err);
	KUNIT_EXPECT_EQ(test, weft_sock_is_unreachable(weft_sock_error(s)), row->unreachable);
	weft_sock_release(s);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(a_lock_that_is_taken_refuses_the_call),
	KUNIT_CASE(letting_go_looks_at_the_window),
	KUNIT_CASE(the_last_owner_is_called),
	KUNIT_CASE(reserves_end_with_the_socket),
	KUNIT_CASE_PARAM(a_connection_stands_as_tcp_says, state_rows_gen_params),
	KUNIT_CASE_PARAM(an_error_tells_what_is_unreachable, error_rows_gen_params),
	{},
};

static struct kunit_suite suite = {
	.name = "weft_sock_call",
	.test_cases = cases,
};

kunit_test_suite(suite);
