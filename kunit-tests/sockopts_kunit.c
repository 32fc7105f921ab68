// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What the operator of a device has chosen for its sockets, which are real ones here.
 */
#include "net/tcp_sockopts.c"

#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/sched/user.h>
#include <net/inet_connection_sock.h>
#include <net/net_namespace.h>
#include <net/tcp.h>

#include "suite.h"

#define TIMES 100

static u32 references_of_root(void)
{
	rcu_barrier(); /* credentials go after a grace period */
	return refcount_read(&init_task.cred->user->__count);
}

/* The rights that it takes are not those of the process afterwards, nor are they kept. */
static void rights_are_given_back(struct kunit *test)
{
	const struct weft_sock_opts opts = { .congestion = "reno", .sndbuf = 100000 };
	const struct cred *own = current_cred();
	u32 before = references_of_root();
	struct weft_sock *s;
	u32 i;

	KUNIT_ASSERT_EQ(test, weft_sock_create(&init_net, AF_INET, &s), 0);
	for (i = 0; i < TIMES; i++)
		weft_sock_apply_opts(s, &opts);
	KUNIT_EXPECT_PTR_EQ(test, current_cred(), own);
	KUNIT_EXPECT_LT(test, references_of_root(), before + TIMES / 2);
	KUNIT_EXPECT_STREQ(test, inet_csk(s->sk)->icsk_ca_ops->name, "reno");
	KUNIT_EXPECT_EQ(test, s->sk->sk_sndbuf, 200000);
	sock_release(s->sock);
	kfree(s);
}

/* What is 0 is left to the host. */
static void nothing_chosen_changes_nothing(struct kunit *test)
{
	const struct weft_sock_opts opts = {};
	struct weft_sock *s, *other;

	KUNIT_ASSERT_EQ(test, weft_sock_create(&init_net, AF_INET, &s), 0);
	KUNIT_ASSERT_EQ(test, weft_sock_create(&init_net, AF_INET, &other), 0);
	weft_sock_apply_opts(s, &opts);
	KUNIT_EXPECT_FALSE(test, sock_flag(s->sk, SOCK_KEEPOPEN));
	KUNIT_EXPECT_EQ(test, s->sk->sk_userlocks, other->sk->sk_userlocks);
	KUNIT_EXPECT_EQ(test, s->sk->sk_sndbuf, other->sk->sk_sndbuf);
	KUNIT_EXPECT_EQ(test, s->sk->sk_rcvbuf, other->sk->sk_rcvbuf);
	KUNIT_EXPECT_EQ(test, tcp_sk(s->sk)->keepalive_time, tcp_sk(other->sk)->keepalive_time);
	KUNIT_EXPECT_EQ(test, inet_csk(s->sk)->icsk_user_timeout, 0U);
	sock_release(s->sock);
	sock_release(other->sock);
	kfree(s);
	kfree(other);
}

/* Seconds and milliseconds, as TCP counts them. */
static void each_choice_has_its_place(struct kunit *test)
{
	const struct weft_sock_opts opts = {
		.keepalive_idle = 5,
		.keepalive_interval = 3,
		.keepalive_probes = 7,
		.user_timeout = 1234,
		.rcvbuf = 70000,
		.tos = 0x20,
	};
	struct weft_sock *s;

	KUNIT_ASSERT_EQ(test, weft_sock_create(&init_net, AF_INET, &s), 0);
	weft_sock_apply_opts(s, &opts);
	KUNIT_EXPECT_TRUE(test, sock_flag(s->sk, SOCK_KEEPOPEN));
	KUNIT_EXPECT_EQ(test, tcp_sk(s->sk)->keepalive_time, 5U * HZ);
	KUNIT_EXPECT_EQ(test, tcp_sk(s->sk)->keepalive_intvl, 3U * HZ);
	KUNIT_EXPECT_EQ(test, tcp_sk(s->sk)->keepalive_probes, 7);
	KUNIT_EXPECT_EQ(test, inet_csk(s->sk)->icsk_user_timeout, 1234U);
	KUNIT_EXPECT_EQ(test, s->sk->sk_rcvbuf, 140000);
	KUNIT_EXPECT_EQ(test, inet_sk(s->sk)->tos, 0x20);
	sock_release(s->sock);
	kfree(s);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(rights_are_given_back),
	KUNIT_CASE(nothing_chosen_changes_nothing),
	KUNIT_CASE(each_choice_has_its_place),
	{},
};

static struct kunit_suite suite = {
	.name = "weft_sockopts",
	.test_cases = cases,
};

kunit_test_suite(suite);
