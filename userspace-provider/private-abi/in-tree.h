/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * In place of private.h and layouts.h where the provider is built inside a source tree of
 * rdma-core (CMakeLists.txt), which has the declarations: weft's names for them.
 */
#ifndef WEFT_PABI_IN_TREE_H
#define WEFT_PABI_IN_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include <config.h>
#include <infiniband/driver.h>

#define WEFT_PABI		IBVERBS_PABI_VERSION
#define WEFT_PABI_REGISTER	verbs_register_driver
#define WEFT_PABI_POINTERS	(offsetof(struct verbs_context, context) / sizeof(void *))

enum {
	PABI_MATCH_END = VERBS_MATCH_SENTINEL,
	PABI_MATCH_DRIVER_ID = VERBS_MATCH_DRIVER_ID,
	PABI_QP_EX = VERBS_QP_EX,
};

#define pabi_get_context	ibv_get_context
#define pabi_query_port		ibv_query_port
#define pabi_alloc_pd		ibv_alloc_pd
#define pabi_reg_mr		ibv_reg_mr
#define pabi_rereg_mr		ibv_rereg_mr
#define pabi_alloc_mw		ibv_alloc_mw
#define pabi_create_cq		ibv_create_cq
#define pabi_create_cq_ex	ibv_create_cq_ex
#define pabi_resize_cq		ibv_resize_cq
#define pabi_modify_cq		ibv_modify_cq
#define pabi_create_qp		ibv_create_qp
#define pabi_query_qp		ibv_query_qp
#define pabi_modify_qp		ibv_modify_qp
#define pabi_create_srq		ibv_create_srq
#define pabi_modify_srq		ibv_modify_srq
#define pabi_query_srq		ibv_query_srq

static_assert(sizeof(struct verbs_context) ==
		      WEFT_PABI_POINTERS * sizeof(void *) + sizeof(struct ibv_context),
	      "the public context is the end of the library's");

/* The library is the one of the same tree. */
static inline const struct verbs_context_ops *pabi_shape(const struct verbs_context_ops *ops)
{
	return ops;
}

static inline unsigned int pabi_surplus(void)
{
	return 0;
}

#endif
