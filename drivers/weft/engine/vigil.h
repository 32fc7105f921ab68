/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Keeping a CPU awake for a moment, for a process that is about to sleep there
 * until the answer to what it has just sent comes.
 */
#ifndef WEFT_ENGINE_VIGIL_H
#define WEFT_ENGINE_VIGIL_H

#include <linux/types.h>

int weft_vigil_module_init(void);
void weft_vigil_module_exit(void);

bool weft_vigil_keep(u32 us);

#endif
