// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A call that comes from outside of TCP's callbacks: it finds the owner of a socket as they do, or
 * is refused. The socket is a real one.
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

void weft_tcp_check_window(struct sock *sk)
{
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

static struct kunit_case cases[] = {
	KUNIT_CASE(a_lock_that_is_taken_refuses_the_call),
	{},
};

static struct kunit_suite suite = {
	.name = "weft_sock_call",
	.test_cases = cases,
};

kunit_test_suite(suite);
