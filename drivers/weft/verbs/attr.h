/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What a device and its port say about themselves.
 */
#ifndef WEFT_VERBS_ATTR_H
#define WEFT_VERBS_ATTR_H

#include <rdma/ib_verbs.h>

void weft_attr_set_guid(struct ib_device *ib, const u8 *mac);

int weft_query_device(struct ib_device *ib, struct ib_device_attr *attr, struct ib_udata *udata);
int weft_query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr);
int weft_query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey);
int weft_get_port_immutable(struct ib_device *ib, u32 port, struct ib_port_immutable *immutable);
int weft_modify_device(struct ib_device *ib, int mask, struct ib_device_modify *attr);
void weft_get_dev_fw_str(struct ib_device *ib, char *str);

#endif
