/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Private ABI 34: what rdma-core 44 to 56 have in common. Layouts only; a
 * slot that weft leaves empty is declared by position, without its signature.
 */
#ifndef WEFT_PABI_34_H
#define WEFT_PABI_34_H

#include <stdint.h>

#define WEFT_PABI_REGISTER	verbs_register_driver_34

/* Octets of struct verbs_context and operation slots the library works with. */
#define WEFT_PABI_CONTEXT_BYTES	(40 * 8 + sizeof(struct ibv_context))
#define WEFT_PABI_OPS_SLOTS	76

typedef void (*pabi_slot)(void);

/* Alphabetical, one pointer each: the library copies the slots that are set. */
struct verbs_context_ops {
	int (*advise_mr)(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
			 struct ibv_sge *sg_list, uint32_t num_sge);
	pabi_slot alloc_dm;
	struct ibv_mw *(*alloc_mw)(struct ibv_pd *pd, enum ibv_mw_type type);
	pabi_slot alloc_null_mr;
	struct ibv_pd *(*alloc_parent_domain)(struct ibv_context *context,
					      struct ibv_parent_domain_init_attr *attr);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	struct ibv_td *(*alloc_td)(struct ibv_context *context, struct ibv_td_init_attr *attr);
	pabi_slot async_event;
	pabi_slot attach_counters_point_flow;
	pabi_slot attach_mcast;
	int (*bind_mw)(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
	pabi_slot close_xrcd;
	void (*cq_event)(struct ibv_cq *cq);
	pabi_slot create_ah;
	pabi_slot create_counters;
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int cqe,
				    struct ibv_comp_channel *channel, int comp_vector);
	struct ibv_cq_ex *(*create_cq_ex)(struct ibv_context *context,
					  struct ibv_cq_init_attr_ex *attr);
	pabi_slot create_flow;
	pabi_slot create_flow_action_esp;
	struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
	struct ibv_qp *(*create_qp_ex)(struct ibv_context *context,
				       struct ibv_qp_init_attr_ex *attr);
	pabi_slot create_rwq_ind_table;
	struct ibv_srq *(*create_srq)(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
	pabi_slot create_srq_ex;
	pabi_slot create_wq;
	int (*dealloc_mw)(struct ibv_mw *mw);
	int (*dealloc_pd)(struct ibv_pd *pd);
	int (*dealloc_td)(struct ibv_td *td);
	int (*dereg_mr)(struct verbs_mr *vmr);
	pabi_slot destroy_ah;
	pabi_slot destroy_counters;
	int (*destroy_cq)(struct ibv_cq *cq);
	pabi_slot destroy_flow;
	pabi_slot destroy_flow_action;
	int (*destroy_qp)(struct ibv_qp *qp);
	pabi_slot destroy_rwq_ind_table;
	int (*destroy_srq)(struct ibv_srq *srq);
	pabi_slot destroy_wq;
	pabi_slot detach_mcast;
	void (*free_context)(struct ibv_context *context);
	pabi_slot free_dm;
	pabi_slot get_srq_num;
	pabi_slot import_dm;
	struct ibv_mr *(*import_mr)(struct ibv_pd *pd, uint32_t mr_handle);
	struct ibv_pd *(*import_pd)(struct ibv_context *context, uint32_t pd_handle);
	int (*modify_cq)(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
	pabi_slot modify_flow_action_esp;
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
	pabi_slot modify_qp_rate_limit;
	int (*modify_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
	pabi_slot modify_wq;
	pabi_slot open_qp;
	pabi_slot open_xrcd;
	int (*poll_cq)(struct ibv_cq *cq, int num, struct ibv_wc *wc);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
	pabi_slot post_srq_ops;
	int (*post_srq_recv)(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			     struct ibv_recv_wr **bad_wr);
	int (*query_device_ex)(struct ibv_context *context,
			       const struct ibv_query_device_ex_input *input,
			       struct ibv_device_attr_ex *attr, size_t size);
	pabi_slot query_ece;
	int (*query_port)(struct ibv_context *context, uint8_t port_num,
			  struct ibv_port_attr *attr);
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init_attr);
	pabi_slot query_qp_data_in_order;
	int (*query_rt_values)(struct ibv_context *context, struct ibv_values_ex *values);
	int (*query_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr);
	pabi_slot read_counters;
	pabi_slot reg_dm_mr;
	struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset, size_t length,
					uint64_t iova, int fd, int access);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				 int access);
	int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);
	int (*rereg_mr)(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr,
			size_t length, int access);
	int (*resize_cq)(struct ibv_cq *cq, int cqe);
	pabi_slot set_ece;
	pabi_slot unimport_dm;
	void (*unimport_mr)(struct ibv_mr *mr);
	void (*unimport_pd)(struct ibv_pd *pd);
};

/* Prototypes that other private ABI numbers have with other arguments. */
int ibv_cmd_get_context(struct verbs_context *context, struct pabi_get_context *cmd,
			size_t cmd_size, struct ib_uverbs_get_context_resp *resp, size_t resp_size);
int ibv_cmd_create_cq_ex(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr,
			 struct verbs_cq *cq, struct pabi_create_cq_ex *cmd, size_t cmd_size,
			 struct ib_uverbs_ex_create_cq_resp *resp, size_t resp_size,
			 uint32_t cmd_flags);

#endif
