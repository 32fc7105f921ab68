// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The module around the suites; they run when it is loaded.
 */
#include <linux/module.h>

MODULE_DESCRIPTION("KUnit suites of weft");
MODULE_LICENSE("Dual BSD/GPL");
