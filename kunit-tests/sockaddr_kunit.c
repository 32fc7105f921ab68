// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Questions about socket addresses: the two families, and IPv4 in the clothes of IPv6.
 */
#include <linux/in6.h>
#include <linux/inet.h>
#include <linux/string.h>

#include "net/sockaddr.h"
#include "suite.h"

#define PORT 7174

static struct sockaddr_storage make(struct kunit *test, const char *text)
{
	struct sockaddr_storage addr = {};
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&addr;
	struct sockaddr_in *sin = (struct sockaddr_in *)&addr;

	if (strchr(text, ':')) {
		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htons(PORT);
		KUNIT_ASSERT_EQ(test, in6_pton(text, -1, sin6->sin6_addr.s6_addr, -1, NULL), 1);
	} else {
		sin->sin_family = AF_INET;
		sin->sin_port = htons(PORT);
		KUNIT_ASSERT_EQ(test, in4_pton(text, -1, (u8 *)&sin->sin_addr, -1, NULL), 1);
	}
	return addr;
}

static const struct address {
	const char *name;
	const char *plain;	/* as everybody above knows it */
	bool any;
	bool unicast;
	bool loopback;
} addresses[] = {
	{ "10.77.0.1", "10.77.0.1", .unicast = true },
	{ "0.0.0.0", "0.0.0.0", .any = true },
	{ "127.0.0.1", "127.0.0.1", .unicast = true, .loopback = true },
	{ "224.0.0.1", "224.0.0.1" },
	{ "255.255.255.255", "255.255.255.255" },
	{ "fd77::1", "fd77::1", .unicast = true },
	{ "fe80::1", "fe80::1", .unicast = true },
	{ "::", "::", .any = true },
	{ "::1", "::1", .unicast = true, .loopback = true },
	{ "ff02::1", "ff02::1" },
	{ "::10.77.0.1", "::10.77.0.1", .unicast = true },
	{ "::ffff:10.77.0.1", "10.77.0.1", .unicast = true },
	{ "::ffff:127.0.0.1", "127.0.0.1", .unicast = true, .loopback = true },
	{ "::ffff:0.0.0.0", "0.0.0.0", .any = true },
	{ "::ffff:224.0.0.1", "224.0.0.1" },
};

WEFT_ROWS(addresses)

static void an_address_in_its_own_family(struct kunit *test)
{
	const struct address *row = test->param_value;
	struct sockaddr_storage addr = make(test, row->name);
	struct sockaddr_storage plain = make(test, row->plain);

	weft_addr_unmap(&addr);
	KUNIT_EXPECT_EQ(test, memcmp(&addr, &plain, sizeof(addr)), 0);
	KUNIT_EXPECT_TRUE(test, weft_addr_equal(&addr, &plain));
	KUNIT_EXPECT_EQ(test, weft_addr_port(&addr), htons(PORT));
	KUNIT_EXPECT_EQ(test, weft_addr_is_any(&addr), row->any);
	KUNIT_EXPECT_EQ(test, weft_addr_is_unicast(&addr), row->unicast);
	KUNIT_EXPECT_EQ(test, weft_addr_is_loopback(&addr), row->loopback);
}

static const struct couple {
	const char *name;
	const char *a, *b;
	bool equal;
} couples[] = {
	{ "the same", "10.77.0.1", "10.77.0.1", true },
	{ "another", "10.77.0.1", "10.77.0.2", false },
	{ "the same, v6", "fd77::1", "fd77::1", true },
	{ "another, v6", "fd77::1", "fd77::2", false },
	{ "another family", "0.0.0.0", "::", false },
};

WEFT_ROWS(couples)

static void two_addresses(struct kunit *test)
{
	const struct couple *row = test->param_value;
	struct sockaddr_storage a = make(test, row->a), b = make(test, row->b);

	((struct sockaddr_in *)&b)->sin_port = 0;
	KUNIT_EXPECT_EQ(test, weft_addr_equal(&a, &b), row->equal);
}

static void only_link_local_has_a_scope(struct kunit *test)
{
	struct sockaddr_storage local = make(test, "fe80::1"), other = make(test, "fd77::1");
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&local;

	weft_addr_set_scope(&local, 3);
	KUNIT_EXPECT_EQ(test, sin6->sin6_scope_id, 3U);
	weft_addr_set_scope(&local, 4);
	KUNIT_EXPECT_EQ(test, sin6->sin6_scope_id, 3U);
	weft_addr_set_scope(&other, 3);
	KUNIT_EXPECT_EQ(test, ((struct sockaddr_in6 *)&other)->sin6_scope_id, 0U);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(an_address_in_its_own_family, addresses_gen_params),
	KUNIT_CASE_PARAM(two_addresses, couples_gen_params),
	KUNIT_CASE(only_link_local_has_a_scope),
	{},
};

static struct kunit_suite suite = {
	.name = "weft_sockaddr",
	.test_cases = cases,
};

kunit_test_suite(suite);
