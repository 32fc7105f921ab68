// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * How the two ends of a connection on this host find each other, and how one leaves. What TCP
 * knows of a connection is played.
 */
/* For other suites these are played. */
#define weft_loopback_join real_loopback_join
#define weft_loopback_leave real_loopback_leave
#define weft_loopback_lock real_loopback_lock
#define weft_loopback_may_find real_loopback_may_find
#define weft_loopback_put real_loopback_put
#define weft_loopback_unlock real_loopback_unlock
/* For other suites these are real. */
#define weft_sock_local played_local
#define weft_sock_peer played_peer
#include "net/loopback.c"

#include <linux/completion.h>
#include <linux/in.h>
#include <linux/kthread.h>
#include <linux/tcp.h>
#include <net/net_namespace.h>

#include "suite.h"

/* One end, which weft_loopback_put() frees, and its socket. */
struct half {
	struct weft_sock s;
	struct tcp_sock tcp;
	struct sockaddr_storage local;
	struct sockaddr_storage remote;
	struct weft_loopback_end *end;
};

int weft_sock_local(const struct weft_sock *s, struct sockaddr_storage *out)
{
	*out = container_of(s, struct half, s)->local;
	return 0;
}

int weft_sock_peer(const struct weft_sock *s, struct sockaddr_storage *out)
{
	*out = container_of(s, struct half, s)->remote;
	return 0;
}

static void set_addr(struct sockaddr_storage *addr, u8 host, u16 port)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)addr;

	sin->sin_family = AF_INET;
	sin->sin_addr.s_addr = htonl(0x0a4d0000 | host); /* 10.77.0.0 */
	sin->sin_port = htons(port);
}

/* Of a connection between hosts 1 and 2; the one has written as far as the other has read. */
static struct half *make_half(struct kunit *test, bool first)
{
	struct half *half = kunit_kzalloc(test, sizeof(*half), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, half);
	half->end = kzalloc(sizeof(*half->end), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, half->end);
	half->s.sk = (struct sock *)&half->tcp;
	sock_net_set(half->s.sk, &init_net);
	set_addr(&half->local, first ? 1 : 2, first ? 1000 : 2000);
	set_addr(&half->remote, first ? 2 : 1, first ? 2000 : 1000);
	half->tcp.write_seq = first ? 500 : 700;
	half->tcp.copied_seq = first ? 700 : 500;
	return half;
}

static void join(struct half *half)
{
	weft_loopback_join(half->end, &half->s, half);
}

static bool stands_in_the_table(const struct half *half)
{
	return !hlist_unhashed(&half->end->node);
}

static void leave_table(struct kunit *test, struct half *half)
{
	weft_loopback_leave(half->end);
	KUNIT_EXPECT_FALSE(test, stands_in_the_table(half));
	hash_del(&half->end->node); /* it is freed in any case */
}

enum difference {
	NOTHING,
	NAMESPACE,
	SEQUENCE,	/* the sum of both numbers is the same */
	LOCAL_HOST,
	LOCAL_PORT,
	REMOTE_HOST,
	REMOTE_PORT,
};

static const struct join_row {
	const char *name;
	enum difference what;
	bool found;
	u8 mode;
} join_rows[] = {
	{ "one connection", NOTHING, true, WEFT_LOOPBACK_NETNS },
	{ "one connection of two namespaces", NAMESPACE, true, WEFT_LOOPBACK_HOST },
	{ "other numbers", SEQUENCE, false },
	{ "at another address", LOCAL_HOST, false },
	{ "at another port", LOCAL_PORT, false },
	{ "to another address", REMOTE_HOST, false },
	{ "to another port", REMOTE_PORT, false },
};

WEFT_ROWS(join_rows);

static void make_different(struct half *half, enum difference what)
{
	switch (what) {
	case NAMESPACE:
		sock_net_set(half->s.sk, (struct net *)half); /* only compared */
		break;
	case SEQUENCE:
		half->tcp.write_seq++;
		half->tcp.copied_seq--;
		break;
	case LOCAL_HOST:
		set_addr(&half->local, 3, 2000);
		break;
	case LOCAL_PORT:
		set_addr(&half->local, 2, 2001);
		break;
	case REMOTE_HOST:
		set_addr(&half->remote, 3, 1000);
		break;
	case REMOTE_PORT:
		set_addr(&half->remote, 1, 1001);
		break;
	case NOTHING:
		break;
	}
}

static void an_end_finds_its_other_end(struct kunit *test)
{
	const struct join_row *row = test->param_value;
	struct half *a = make_half(test, true), *b = make_half(test, false);
	u32 refs = row->found ? 2 : 1;

	make_different(b, row->what);
	join(a);
	KUNIT_EXPECT_TRUE(test, stands_in_the_table(a));
	KUNIT_EXPECT_NULL(test, weft_loopback_peer(a->end));
	join(b);
	KUNIT_EXPECT_PTR_EQ(test, weft_loopback_peer(a->end), row->found ? b->end : NULL);
	KUNIT_EXPECT_PTR_EQ(test, weft_loopback_peer(b->end), row->found ? a->end : NULL);
	KUNIT_EXPECT_EQ(test, stands_in_the_table(a), !row->found);
	KUNIT_EXPECT_EQ(test, stands_in_the_table(b), !row->found);
	KUNIT_EXPECT_EQ(test, a->end->mode, row->mode);
	KUNIT_EXPECT_EQ(test, b->end->mode, row->mode);
	KUNIT_EXPECT_PTR_EQ(test, b->end->owner, (void *)b);
	leave_table(test, a);
	leave_table(test, b);
	KUNIT_EXPECT_EQ(test, refcount_read(&a->end->refs), refs);
	KUNIT_EXPECT_EQ(test, refcount_read(&b->end->refs), refs);
	while (refs--) {
		weft_loopback_put(a->end);
		weft_loopback_put(b->end);
	}
}

/* Neither one that has found its peer is found again, nor one that has left. */
static void an_end_is_found_once(struct kunit *test)
{
	struct half *a = make_half(test, true), *b = make_half(test, false);
	struct half *again = make_half(test, false), *late = make_half(test, true);

	join(a);
	join(b);
	join(again);
	KUNIT_EXPECT_NULL(test, weft_loopback_peer(again->end));
	KUNIT_EXPECT_PTR_EQ(test, weft_loopback_peer(a->end), b->end);
	leave_table(test, again);
	join(late);
	KUNIT_EXPECT_NULL(test, weft_loopback_peer(late->end));
	leave_table(test, late);
	leave_table(test, a);
	leave_table(test, b);
	kfree(a->end);
	kfree(b->end);
	kfree(again->end);
	kfree(late->end);
}

struct leaver {
	struct weft_loopback_end *end;
	struct completion gone;
};

static int leave(void *arg)
{
	struct leaver *leaver = arg;

	weft_loopback_leave(leaver->end);
	complete(&leaver->gone);
	return 0;
}

/* Its owner may be freed then. */
static void an_end_leaves_when_its_peer_is_through(struct kunit *test)
{
	struct half *a = make_half(test, true);
	struct leaver leaver = { .end = a->end };
	struct task_struct *task;
	bool gone;

	init_completion(&leaver.gone);
	join(a);
	KUNIT_ASSERT_TRUE(test, weft_loopback_enter(a->end));
	task = kthread_run(leave, &leaver, "weft_kunit_leaver");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	gone = wait_for_completion_timeout(&leaver.gone, HZ / 10);
	KUNIT_EXPECT_FALSE(test, gone);
	weft_loopback_exit(a->end);
	if (!gone)
		wait_for_completion(&leaver.gone);
	KUNIT_EXPECT_FALSE(test, weft_loopback_enter(a->end));
	KUNIT_EXPECT_FALSE(test, stands_in_the_table(a));
	hash_del(&a->end->node);
	weft_loopback_put(a->end);
}

static const struct find_row {
	const char *name;
	u8 mode;
	bool routed;
	u32 flags;	/* of the device that the route leaves by */
	u32 priv_flags;
	bool may;
} find_rows[] = {
	{ "never", WEFT_LOOPBACK_NEVER, true, IFF_LOOPBACK, 0, false },
	{ "this namespace and lo", WEFT_LOOPBACK_NETNS, true, IFF_LOOPBACK, 0, true },
	{ "this namespace and a VRF", WEFT_LOOPBACK_NETNS, true, 0, IFF_L3MDEV_MASTER, true },
	{ "this namespace and another device", WEFT_LOOPBACK_NETNS, true, 0, 0, false },
	{ "this namespace and no route", WEFT_LOOPBACK_NETNS, false, 0, 0, true },
	{ "the host and another device", WEFT_LOOPBACK_HOST, true, 0, 0, true },
};

WEFT_ROWS(find_rows);

static void a_route_tells_whether_to_look(struct kunit *test)
{
	const struct find_row *row = test->param_value;
	struct net_device *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	struct dst_entry *dst = kunit_kzalloc(test, sizeof(*dst), GFP_KERNEL);
	struct half *a = make_half(test, true);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_ASSERT_NOT_NULL(test, dst);
	dev->flags = row->flags;
	dev->priv_flags = row->priv_flags;
	dst->dev = dev;
	RCU_INIT_POINTER(a->s.sk->sk_dst_cache, row->routed ? dst : NULL);
	KUNIT_EXPECT_EQ(test, weft_loopback_may_find(&a->s, row->mode), row->may);
	kfree(a->end);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(an_end_finds_its_other_end, join_rows_gen_params),
	KUNIT_CASE(an_end_is_found_once),
	KUNIT_CASE(an_end_leaves_when_its_peer_is_through),
	KUNIT_CASE_PARAM(a_route_tells_whether_to_look, find_rows_gen_params),
	{},
};

static struct kunit_suite suite = {
	.name = "weft_join",
	.test_cases = cases,
};

kunit_test_suite(suite);
