// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * weft: a software RNIC, iWARP over the kernel's TCP.
 */
#include <linux/module.h>
#include <linux/rcupdate.h>

#include "verbs/module.h"

static int __init weft_init(void)
{
	return weft_verbs_init();
}

static void __exit weft_exit(void)
{
	weft_verbs_exit();
	/* What was freed through RCU calls back into this module's text. */
	rcu_barrier();
}

module_init(weft_init);
module_exit(weft_exit);

MODULE_DESCRIPTION("weft software RNIC (iWARP over TCP)");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(WEFT_VERSION);
