/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What happens when the module comes and goes.
 */
#ifndef WEFT_VERBS_MODULE_H
#define WEFT_VERBS_MODULE_H

int weft_verbs_init(void);
void weft_verbs_exit(void);

#endif
