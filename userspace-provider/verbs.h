/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Queries of the device, and its CQs. */
#ifndef WEFT_VERBS_H
#define WEFT_VERBS_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

int weft_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t size);
int weft_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr);
int weft_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);

struct ibv_cq *weft_create_cq(struct ibv_context *context, int cqe,
			      struct ibv_comp_channel *channel, int comp_vector);
struct ibv_cq_ex *weft_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
int weft_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr);
int weft_resize_cq(struct ibv_cq *ibcq, int cqe);
int weft_destroy_cq(struct ibv_cq *ibcq);

#endif
