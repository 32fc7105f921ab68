/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Protection domains: plain, imported, and parent domains with thread domains. */
#ifndef WEFT_PD_H
#define WEFT_PD_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct ibv_pd *weft_alloc_pd(struct ibv_context *context);
int weft_dealloc_pd(struct ibv_pd *ibpd);
struct ibv_pd *weft_import_pd(struct ibv_context *context, uint32_t handle);
void weft_unimport_pd(struct ibv_pd *ibpd);

struct ibv_td *weft_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int weft_dealloc_td(struct ibv_td *ibtd);
struct ibv_pd *weft_alloc_parent_domain(struct ibv_context *context,
					struct ibv_parent_domain_init_attr *attr);

/* Are objects made with it used by one thread at a time? */
bool weft_pd_is_single_threaded(struct ibv_pd *ibpd);

#endif
