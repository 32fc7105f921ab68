// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * weft: a software RNIC, iWARP over the kernel's TCP.
 */
#include <linux/module.h>

#include "base/compat.h"

MODULE_DESCRIPTION("weft software RNIC (iWARP over TCP)");
MODULE_LICENSE("Dual BSD/GPL");
