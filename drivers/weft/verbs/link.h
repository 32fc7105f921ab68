/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * `rdma link add NAME type weft netdev DEV`.
 */
#ifndef WEFT_VERBS_LINK_H
#define WEFT_VERBS_LINK_H

void weft_link_register(void);
void weft_link_unregister(void);

#endif
