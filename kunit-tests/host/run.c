// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Runs the registered suites and prints what KUnit prints: TAP with one level of
 * subtests per suite and one per table. Arguments: names of suites, default all.
 */
#include <stdarg.h>

#include <kunit/test.h>

static struct kunit_suite *suites;
static unsigned int cases_run, cases_failed;

/* Constructors run in no order worth keeping; the list is kept by name. */
void kunit_register(struct kunit_suite *suite)
{
	struct kunit_suite **at = &suites;

	while (*at && strcmp((*at)->name, suite->name) < 0)
		at = &(*at)->next;
	suite->next = *at;
	*at = suite;
}

void *kunit_kzalloc(struct kunit *test, size_t size, int gfp)
{
	struct kunit_block *block = malloc(sizeof(*block));

	(void)gfp;
	if (!block)
		return NULL;
	block->mem = calloc(1, size);
	block->next = test->blocks;
	test->blocks = block;
	return block->mem;
}

/* Said once more in a way people read, before the check that failed is named. */
void kunit_values(bool ok, long long left, long long right)
{
	if (!ok)
		printf("        # %lld (0x%llx) and %lld (0x%llx):\n", left, left, right, right);
}

void kunit_check(struct kunit *test, bool ok, struct kunit_place place, const char *fmt, ...)
{
	va_list args;
	char text[256];

	if (ok)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	printf("        # %s:%d: %s%s\n", place.file, place.line, place.what, text);
	test->failed = true;
	if (place.leave)
		longjmp(test->leave, 1);
}

static bool run_once(const struct kunit_case *kase, const void *param)
{
	struct kunit test = { .param_value = param };
	struct kunit_block *block;

	if (!setjmp(test.leave))
		kase->run_case(&test);
	while ((block = test.blocks)) {
		test.blocks = block->next;
		free(block->mem);
		free(block);
	}
	cases_run++;
	cases_failed += test.failed;
	return !test.failed;
}

static bool run_rows(const struct kunit_case *kase)
{
	char desc[KUNIT_PARAM_DESC_SIZE] = "";
	const void *row = NULL;
	bool all = true;
	unsigned int n = 0;

	printf("        # Subtest: %s\n", kase->name);
	while ((row = kase->generate_params(row, desc))) {
		bool ok = run_once(kase, row);

		printf("        %sok %u %s\n", ok ? "" : "not ", ++n, desc);
		all &= ok;
	}
	printf("        1..%u\n", n);
	return all && n;
}

static bool run_suite(const struct kunit_suite *suite, unsigned int number)
{
	const struct kunit_case *kase;
	bool ok, all = true;
	unsigned int n = 0;

	printf("    # Subtest: %s\n", suite->name);
	for (kase = suite->test_cases; kase->run_case; kase++) {
		ok = kase->generate_params ? run_rows(kase) : run_once(kase, NULL);
		printf("    %sok %u %s\n", ok ? "" : "not ", ++n, kase->name);
		all &= ok;
	}
	printf("    1..%u\n%sok %u %s\n", n, all ? "" : "not ", number, suite->name);
	return all;
}

static bool asked_for(const struct kunit_suite *suite, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (!strcmp(argv[i], suite->name))
			return true;
	return argc < 2;
}

int main(int argc, char **argv)
{
	struct kunit_suite *suite;
	unsigned int n = 0;
	bool all = true;

	printf("TAP version 14\n");
	for (suite = suites; suite; suite = suite->next)
		if (asked_for(suite, argc, argv))
			all &= run_suite(suite, ++n);
	printf("1..%u\n# %u run, %u failed\n", n, cases_run, cases_failed);
	return all && n ? 0 : 1;
}
