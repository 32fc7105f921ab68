// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What masked atomics store: RFC 7306, 5.1.1 (FetchAdd) and 5.1.2 (CmpSwap).
 */
#include "proto/atomic.h"
#include "proto/rdmap.h"
#include "suite.h"
#include "vectors.h"

WEFT_ROWS(weft_vec_fetch_add)
WEFT_ROWS(weft_vec_cmp_swap)

static u64 fetch_add(u64 original, u64 add, u64 mask)
{
	struct weft_atomic_op op = {
		.code = WEFT_ATOMIC_FADD,
		.data = add,
		.mask = mask,
		.compare_mask = ~0ULL,
	};

	return weft_atomic_apply(&op, original);
}

static void apply_fetch_add_vector(struct kunit *test)
{
	const struct weft_vec_fetch_add *row = test->param_value;

	KUNIT_EXPECT_EQ(test, fetch_add(row->original, row->add, row->mask), row->result);
}

static void apply_cmp_swap_vector(struct kunit *test)
{
	const struct weft_vec_cmp_swap *row = test->param_value;
	struct weft_atomic_op op = {
		.code = WEFT_ATOMIC_CSWAP,
		.data = row->swap,
		.mask = row->swap_mask,
		.compare = row->compare,
		.compare_mask = row->compare_mask,
	};

	KUNIT_EXPECT_EQ(test, weft_atomic_apply(&op, row->original), row->result);
}

/* Bit by bit, the carry dropped behind each marked one. */
static u64 ripple_add(u64 original, u64 add, u64 mask)
{
	u64 result = 0, sum, carry = 0;
	u32 bit;

	for (bit = 0; bit < 64; bit++) {
		sum = (original >> bit & 1) + (add >> bit & 1) + carry;
		result |= (sum & 1) << bit;
		carry = mask >> bit & 1 ? 0 : sum >> 1;
	}
	return result;
}

static void apply_fetch_add_any_fields(struct kunit *test)
{
	u64 seed = 0x7306, original, add, mask;
	u32 i;

	for (i = 0; i < 5000; i++) {
		original = weft_next_random(&seed);
		add = weft_next_random(&seed);
		/* from dense marks to single ones */
		mask = weft_next_random(&seed) & weft_next_random(&seed);
		mask &= i % 2 ? weft_next_random(&seed) & weft_next_random(&seed) : ~0ULL;
		KUNIT_EXPECT_EQ_MSG(test, fetch_add(original, add, mask),
				    ripple_add(original, add, mask), "round %u", i);
	}
}

static void apply_fetch_add_each_single_mark(struct kunit *test)
{
	u32 bit;

	for (bit = 0; bit < 64; bit++)
		KUNIT_EXPECT_EQ_MSG(test, fetch_add(~0ULL, 1, 1ULL << bit),
				    ripple_add(~0ULL, 1, 1ULL << bit), "mark %u", bit);
}

/* RFC 7306, 5.2.1: compare fields of a FetchAdd are ignored on receive. */
static void apply_fetch_add_ignores_compare(struct kunit *test)
{
	struct weft_atomic_op op = {
		.code = WEFT_ATOMIC_FADD,
		.data = 5,
		.compare = 0xdeadbeef,
		.compare_mask = 0x1234,
	};

	KUNIT_EXPECT_EQ(test, weft_atomic_apply(&op, 37), 42ULL);
}

static u64 swap_bit_by_bit(const struct weft_atomic_op *op, u64 original)
{
	u64 result = original, at;
	u32 bit;

	for (bit = 0; bit < 64; bit++) {
		at = 1ULL << bit;
		if ((op->compare_mask & at) && (op->compare & at) != (original & at))
			return original;
		if (op->mask & at)
			result = (result & ~at) | (op->data & at);
	}
	return result;
}

static void apply_cmp_swap_any_masks(struct kunit *test)
{
	struct weft_atomic_op op = { .code = WEFT_ATOMIC_CSWAP };
	u64 seed = 0x5120, original;
	u32 i;

	for (i = 0; i < 5000; i++) {
		original = weft_next_random(&seed);
		op.data = weft_next_random(&seed);
		op.mask = weft_next_random(&seed);
		op.compare_mask = weft_next_random(&seed);
		op.compare = (original & op.compare_mask) | (op.data & ~op.compare_mask);
		if (i % 3 == 0)
			op.compare ^= 1ULL << i % 64;
		KUNIT_EXPECT_EQ_MSG(test, weft_atomic_apply(&op, original),
				    swap_bit_by_bit(&op, original), "round %u", i);
	}
}

static struct kunit_case atomic_cases[] = {
	KUNIT_CASE_PARAM(apply_fetch_add_vector, weft_vec_fetch_add_gen_params),
	KUNIT_CASE_PARAM(apply_cmp_swap_vector, weft_vec_cmp_swap_gen_params),
	KUNIT_CASE(apply_fetch_add_any_fields),
	KUNIT_CASE(apply_fetch_add_each_single_mark),
	KUNIT_CASE(apply_fetch_add_ignores_compare),
	KUNIT_CASE(apply_cmp_swap_any_masks),
	{},
};

static struct kunit_suite atomic_suite = {
	.name = "weft_atomic",
	.test_cases = atomic_cases,
};

kunit_test_suite(atomic_suite);
