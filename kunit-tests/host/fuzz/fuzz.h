/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the fuzz targets share: an input that is eaten from the front, copies with
 * nothing behind them, and promises that end the program when broken.
 */
#ifndef WEFT_HOST_FUZZ_H
#define WEFT_HOST_FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#include "proto/env.h"

struct input {
	const u8 *at;
	size_t left;
};

/* The next bytes as a number; zeros once there are none. */
static inline u64 take(struct input *in, u32 bytes)
{
	u64 value = 0;

	while (bytes--) {
		value <<= 8;
		if (in->left) {
			value |= *in->at++;
			in->left--;
		}
	}
	return value;
}

/* A heap copy of exactly @len bytes, so that one too far is seen. */
static inline u8 *exact(const void *data, size_t len)
{
	u8 *copy = malloc(len);

	if (len)
		memcpy(copy, data, len);
	return copy;
}

#define PROMISE(holds)									\
	do {										\
		if (!(holds)) {								\
			fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #holds); \
			abort();							\
		}									\
	} while (0)

/* xorshift32: shapes that follow from a number of the input. @state: not 0. */
static inline u32 next_shape(u32 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* Where the verdict on an input goes: scripts/fuzz --compare. NULL: nowhere. */
extern FILE *fuzz_verdict;

#define say(...)							\
	do {								\
		if (fuzz_verdict)					\
			fprintf(fuzz_verdict, __VA_ARGS__);		\
	} while (0)

/* Bytes as hexadecimal digits. */
static inline void say_bytes(const u8 *bytes, size_t len)
{
	while (fuzz_verdict && len--)
		fprintf(fuzz_verdict, "%02x", *bytes++);
}

/* Each target has one, under the name libFuzzer looks for. */
int fuzz_one(const u8 *data, size_t size) __asm__("LLVMFuzzerTestOneInput");

#endif
