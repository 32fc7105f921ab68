/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What all suites share: tables whose rows begin with a name, exact copies of
 * input, names of constants, and numbers that look random and never change.
 */
#ifndef WEFT_KUNIT_SUITE_H
#define WEFT_KUNIT_SUITE_H

#include <kunit/test.h>

/* Lets KUNIT_CASE_PARAM(f, TABLE_gen_params) walk TABLE; a failure names its row. */
#define WEFT_ROWS(table)                                           \
	static void table##_desc(typeof(&(table)[0]) row, char *desc) \
	{                                                          \
		strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);   \
	}                                                          \
	KUNIT_ARRAY_PARAM(table, table, table##_desc)

/* A copy with nothing behind it, so that the sanitizers see a read too far. */
static inline u8 *weft_exact_copy(struct kunit *test, const void *data, size_t len)
{
	u8 *copy = kunit_kzalloc(test, len ?: 1, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, copy);
	memcpy(copy, data, len);
	return copy;
}

/* Is @name what logs call the constant @id? In small letters, hyphens for underscores. */
static inline bool weft_is_name_of(const char *name, const char *id)
{
	for (; *name && *id; name++, id++) {
		char due = *id >= 'A' && *id <= 'Z' ? *id - 'A' + 'a' : *id;

		if (*name != (due == '_' ? '-' : due))
			return false;
	}
	return !*name && !*id;
}

/* @name_of(i) is the name of the constant ids[i], for each of them. */
#define WEFT_EXPECT_NAMES(test, name_of, ids)                                                      \
	do {                                                                                       \
		for (u32 _i = 0; _i < ARRAY_SIZE(ids); _i++)                                       \
			KUNIT_EXPECT_TRUE_MSG(test, weft_is_name_of(name_of(_i), (ids)[_i]), "%s", \
					      (ids)[_i]);                                          \
	} while (0)

/* xorshift64: the same numbers in every run. @state: any number but 0. */
static inline u64 weft_next_random(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

#endif
