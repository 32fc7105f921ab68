/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * As much of KUnit as the suites use, for a hosted build. What a case allocates
 * comes from malloc one piece at a time, so the sanitizer sees every edge.
 */
#ifndef WEFT_HOST_KUNIT_TEST_H
#define WEFT_HOST_KUNIT_TEST_H

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/env.h"

#define KUNIT_PARAM_DESC_SIZE	128
#define GFP_KERNEL		0
#define strscpy(to, from, size)	snprintf((to), (size), "%s", (from))

struct kunit_block {
	struct kunit_block *next;
	void *mem;
};

struct kunit {
	const void *param_value;
	bool failed;
	jmp_buf leave;
	struct kunit_block *blocks;
};

struct kunit_case {
	void (*run_case)(struct kunit *test);
	const char *name;
	const void *(*generate_params)(const void *prev, char *desc);
};

struct kunit_suite {
	const char *name;
	struct kunit_case *test_cases;
	struct kunit_suite *next;
};

void *kunit_kzalloc(struct kunit *test, size_t size, int gfp);
void kunit_register(struct kunit_suite *suite);

struct kunit_place {
	const char *file;
	int line;
	const char *what;	/* should have held */
	bool leave;		/* an assertion leaves the case, an expectation goes on */
};

#define KUNIT_HERE(what, leave) ((struct kunit_place){ __FILE__, __LINE__, what, leave })

void kunit_check(struct kunit *test, bool ok, struct kunit_place place, const char *fmt, ...)
	__printf(4, 5);
void kunit_values(bool ok, long long left, long long right);

#define KUNIT_CASE(f)                     \
	{                                 \
		.run_case = f, .name = #f \
	}

#define KUNIT_CASE_PARAM(f, gen)                                  \
	{                                                         \
		.run_case = f, .name = #f, .generate_params = gen \
	}

#define KUNIT_ARRAY_PARAM(name, array, get_desc)                           \
	static const void *name##_gen_params(const void *prev, char *desc) \
	{                                                                  \
		typeof(&(array)[0]) next = (array);                        \
		if (prev)                                                  \
			next = (typeof(next))prev + 1;                     \
		if ((size_t)(next - (array)) >= ARRAY_SIZE(array))         \
			return NULL;                                       \
		get_desc(next, desc);                                      \
		return next;                                               \
	}

#define kunit_test_suite(suite)                                        \
	static void __attribute__((constructor)) suite##_register(void) \
	{                                                              \
		kunit_register(&(suite));                              \
	}

#define KUNIT_SAY(test, ok, leave, what, ...) \
	kunit_check(test, ok, KUNIT_HERE(what, leave), "  " __VA_ARGS__)

#define KUNIT_COMPARE(test, left, op, right, leave, ...)                                       \
	do {                                                                                   \
		typeof(left) kunit_l = (left);                                                 \
		typeof(right) kunit_r = (right);                                               \
		bool kunit_ok = kunit_l op kunit_r;                                            \
		kunit_values(kunit_ok, (long long)kunit_l, (long long)kunit_r);                \
		KUNIT_SAY(test, kunit_ok, leave, #left " " #op " " #right, __VA_ARGS__);       \
	} while (0)

#define KUNIT_FAIL(t, ...)		KUNIT_SAY(t, false, false, "failed", __VA_ARGS__)

#define KUNIT_EXPECT_TRUE(t, c)		KUNIT_SAY(t, (c), false, #c)
#define KUNIT_EXPECT_FALSE(t, c)	KUNIT_SAY(t, !(c), false, "!(" #c ")")
#define KUNIT_EXPECT_EQ(t, l, r)	KUNIT_COMPARE(t, l, ==, r, false)
#define KUNIT_EXPECT_NE(t, l, r)	KUNIT_COMPARE(t, l, !=, r, false)
#define KUNIT_EXPECT_LT(t, l, r)	KUNIT_COMPARE(t, l, <, r, false)
#define KUNIT_EXPECT_LE(t, l, r)	KUNIT_COMPARE(t, l, <=, r, false)
#define KUNIT_EXPECT_GT(t, l, r)	KUNIT_COMPARE(t, l, >, r, false)
#define KUNIT_EXPECT_GE(t, l, r)	KUNIT_COMPARE(t, l, >=, r, false)
#define KUNIT_EXPECT_PTR_EQ(t, l, r)	KUNIT_SAY(t, (l) == (r), false, #l " == " #r)
#define KUNIT_EXPECT_PTR_NE(t, l, r)	KUNIT_SAY(t, (l) != (r), false, #l " != " #r)
#define KUNIT_EXPECT_NULL(t, p)		KUNIT_SAY(t, !(p), false, #p " is NULL")
#define KUNIT_EXPECT_NOT_NULL(t, p)	KUNIT_SAY(t, (p) != NULL, false, #p " is not NULL")
#define KUNIT_EXPECT_STREQ(t, l, r)	KUNIT_SAY(t, !strcmp((l), (r)), false, #l " is " #r)
#define KUNIT_EXPECT_STRNEQ(t, l, r)	KUNIT_SAY(t, strcmp((l), (r)), false, #l " is not " #r)

#define KUNIT_EXPECT_TRUE_MSG(t, c, ...)	KUNIT_SAY(t, (c), false, #c, __VA_ARGS__)
#define KUNIT_EXPECT_FALSE_MSG(t, c, ...)	KUNIT_SAY(t, !(c), false, "!(" #c ")", __VA_ARGS__)
#define KUNIT_EXPECT_EQ_MSG(t, l, r, ...)	KUNIT_COMPARE(t, l, ==, r, false, __VA_ARGS__)
#define KUNIT_EXPECT_NE_MSG(t, l, r, ...)	KUNIT_COMPARE(t, l, !=, r, false, __VA_ARGS__)
#define KUNIT_EXPECT_LE_MSG(t, l, r, ...)	KUNIT_COMPARE(t, l, <=, r, false, __VA_ARGS__)

#define KUNIT_ASSERT_TRUE(t, c)		KUNIT_SAY(t, (c), true, #c)
#define KUNIT_ASSERT_FALSE(t, c)	KUNIT_SAY(t, !(c), true, "!(" #c ")")
#define KUNIT_ASSERT_EQ(t, l, r)	KUNIT_COMPARE(t, l, ==, r, true)
#define KUNIT_ASSERT_NE(t, l, r)	KUNIT_COMPARE(t, l, !=, r, true)
#define KUNIT_ASSERT_LT(t, l, r)	KUNIT_COMPARE(t, l, <, r, true)
#define KUNIT_ASSERT_LE(t, l, r)	KUNIT_COMPARE(t, l, <=, r, true)
#define KUNIT_ASSERT_GE(t, l, r)	KUNIT_COMPARE(t, l, >=, r, true)
#define KUNIT_ASSERT_NOT_NULL(t, p)	KUNIT_SAY(t, (p) != NULL, true, #p " is not NULL")
#define KUNIT_ASSERT_EQ_MSG(t, l, r, ...)	KUNIT_COMPARE(t, l, ==, r, true, __VA_ARGS__)
#define KUNIT_ASSERT_LE_MSG(t, l, r, ...)	KUNIT_COMPARE(t, l, <=, r, true, __VA_ARGS__)

#endif
