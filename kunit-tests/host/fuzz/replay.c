// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A target without libFuzzer. Standard input: inputs, each behind its length in four bytes, big
 * endian. Standard output: a line for each, the verdict.
 */
#include "fuzz.h"

static bool get(void *to, size_t len)
{
	return fread(to, 1, len, stdin) == len;
}

int main(void)
{
	u8 head[4], *data;
	u32 len;

	fuzz_verdict = stdout;
	while (get(head, sizeof(head))) {
		len = get_unaligned_be32(head);
		data = malloc(len + 1);
		if (!data || !get(data, len))
			return 1;
		fuzz_one(data, len);
		free(data);
		putchar('\n');
	}
	return ferror(stdin) || fflush(stdout);
}
