/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The cases: each round runs all but those that end the connection, and one of these.
 */
#ifndef WEFT_TEST_CASES_H
#define WEFT_TEST_CASES_H

#include <linux/types.h>

int cases_run(int round);
size_t cases_count(void);

#endif
