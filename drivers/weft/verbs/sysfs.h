/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What an operator may choose per device while it runs.
 */
#ifndef WEFT_VERBS_SYSFS_H
#define WEFT_VERBS_SYSFS_H

struct attribute_group;
struct ib_device;

extern const struct attribute_group weft_sysfs_group;

void weft_sysfs_init(void);
int weft_sysfs_enable(struct ib_device *ib);

#endif
