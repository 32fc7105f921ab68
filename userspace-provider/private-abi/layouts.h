/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What differs between the private ABIs of rdma-core: layouts, and the arguments of two
 * functions. A slot that weft leaves empty is declared by position, without its signature.
 *
 *   private ABI  rdma-core  operation slots  pointers before the public context
 *   34           44 to 56   76               40
 *   57           57, 58     76               40
 *   59           59 to 61   79               43
 *   59           62, 63     81               44
 *   64           64         83               46
 *   65           65         93               46
 *
 * Under the number 59 there are two, which the library is asked for when the plugin is loaded.
 * The declarations are of the longer one; shape.c leaves out what the shorter one lacks.
 */
#ifndef WEFT_PABI_LAYOUTS_H
#define WEFT_PABI_LAYOUTS_H

#include <stdbool.h>
#include <stdint.h>

#if WEFT_PABI == 34
#define WEFT_PABI_REGISTER	verbs_register_driver_34
#define WEFT_PABI_SLOTS		76
#define WEFT_PABI_POINTERS	40
#elif WEFT_PABI == 57
#define WEFT_PABI_REGISTER	verbs_register_driver_57
#define WEFT_PABI_SLOTS		76
#define WEFT_PABI_POINTERS	40
#elif WEFT_PABI == 59
#define WEFT_PABI_REGISTER	verbs_register_driver_59
#define WEFT_PABI_SLOTS		81
#define WEFT_PABI_POINTERS	44
#elif WEFT_PABI == 64
#define WEFT_PABI_REGISTER	verbs_register_driver_64
#define WEFT_PABI_SLOTS		83
#define WEFT_PABI_POINTERS	46
#elif WEFT_PABI == 65
#define WEFT_PABI_REGISTER	verbs_register_driver_65
#define WEFT_PABI_SLOTS		93
#define WEFT_PABI_POINTERS	46
#else
#error "no layout for this libibverbs' private ABI: see Documentation/abi.md"
#endif

/* The earlier layout of 59 lacks two slots, and one pointer in front of the context. */
#define WEFT_PABI_EARLIER_59_SLOTS	79
#define WEFT_PABI_EARLIER_59_POINTERS	43

typedef void (*pabi_slot)(void);

/* Alphabetical, one pointer each: the library copies the slots that are set. */
struct verbs_context_ops {
	int (*advise_mr)(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
			 struct ibv_sge *sg_list, uint32_t num_sge);
#if WEFT_PABI >= 64
	pabi_slot alloc_buf;
#endif
	pabi_slot alloc_dm;
#if WEFT_PABI >= 59
	pabi_slot alloc_dmah;
#endif
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
#if WEFT_PABI >= 65
	pabi_slot create_comp_cntr;
#endif
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
#if WEFT_PABI >= 59
	pabi_slot dealloc_dmah;
#endif
	int (*dealloc_mw)(struct ibv_mw *mw);
	int (*dealloc_pd)(struct ibv_pd *pd);
	int (*dealloc_td)(struct ibv_td *td);
	int (*dereg_mr)(struct verbs_mr *vmr);
	pabi_slot destroy_ah;
#if WEFT_PABI >= 65
	pabi_slot destroy_comp_cntr;
#endif
	pabi_slot destroy_counters;
	int (*destroy_cq)(struct ibv_cq *cq);
	pabi_slot destroy_flow;
	pabi_slot destroy_flow_action;
	int (*destroy_qp)(struct ibv_qp *qp);
	pabi_slot destroy_rwq_ind_table;
	int (*destroy_srq)(struct ibv_srq *srq);
	pabi_slot destroy_wq;
	pabi_slot detach_mcast;
#if WEFT_PABI >= 59
	pabi_slot dm_export_dmabuf_fd;
#endif
#if WEFT_PABI >= 64
	pabi_slot free_buf;
#endif
	void (*free_context)(struct ibv_context *context);
	pabi_slot free_dm;
	pabi_slot get_srq_num;
	pabi_slot import_dm;
	struct ibv_mr *(*import_mr)(struct ibv_pd *pd, uint32_t mr_handle);
	struct ibv_pd *(*import_pd)(struct ibv_context *context, uint32_t pd_handle);
#if WEFT_PABI >= 65
	pabi_slot inc_comp_cntr;
	pabi_slot inc_err_comp_cntr;
#endif
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
#if WEFT_PABI >= 65
	pabi_slot qp_attach_comp_cntr;
	pabi_slot query_comp_cntr_caps;
#endif
	int (*query_device_ex)(struct ibv_context *context,
			       const struct ibv_query_device_ex_input *input,
			       struct ibv_device_attr_ex *attr, size_t size);
	pabi_slot query_ece;
	int (*query_port)(struct ibv_context *context, uint8_t port_num,
			  struct ibv_port_attr *attr);
#if WEFT_PABI >= 59
	pabi_slot query_port_speed;
#endif
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init_attr);
	pabi_slot query_qp_data_in_order;
	int (*query_rt_values)(struct ibv_context *context, struct ibv_values_ex *values);
	int (*query_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr);
#if WEFT_PABI >= 65
	pabi_slot read_comp_cntr;
#endif
	pabi_slot read_counters;
#if WEFT_PABI >= 65
	pabi_slot read_err_comp_cntr;
#endif
	pabi_slot reg_dm_mr;
	struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset, size_t length,
					uint64_t iova, int fd, int access);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				 int access);
#if WEFT_PABI >= 59
	pabi_slot reg_mr_ex;
#endif
	int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);
	int (*rereg_mr)(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr,
			size_t length, int access);
	int (*resize_cq)(struct ibv_cq *cq, int cqe);
#if WEFT_PABI >= 65
	pabi_slot set_comp_cntr;
#endif
	pabi_slot set_ece;
#if WEFT_PABI >= 65
	pabi_slot set_err_comp_cntr;
#endif
	pabi_slot unimport_dm;
	void (*unimport_mr)(struct ibv_mr *mr);
	void (*unimport_pd)(struct ibv_pd *pd);
};

struct ibv_fd_arr;
struct verbs_create_cq_prov_attr;

#if WEFT_PABI >= 57
int ibv_cmd_get_context(struct verbs_context *context, struct pabi_get_context *cmd,
			size_t cmd_size, struct ibv_fd_arr *fds,
			struct ib_uverbs_get_context_resp *resp, size_t resp_size);
#else
int ibv_cmd_get_context(struct verbs_context *context, struct pabi_get_context *cmd,
			size_t cmd_size, struct ib_uverbs_get_context_resp *resp, size_t resp_size);
#endif

#if WEFT_PABI >= 59
int ibv_cmd_create_cq_ex(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr,
			 struct verbs_create_cq_prov_attr *more, struct verbs_cq *cq,
			 struct pabi_create_cq_ex *cmd, size_t cmd_size,
			 struct ib_uverbs_ex_create_cq_resp *resp, size_t resp_size,
			 uint32_t cmd_flags);
#else
int ibv_cmd_create_cq_ex(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr,
			 struct verbs_cq *cq, struct pabi_create_cq_ex *cmd, size_t cmd_size,
			 struct ib_uverbs_ex_create_cq_resp *resp, size_t resp_size,
			 uint32_t cmd_flags);
#endif

#if WEFT_PABI == 59
bool pabi_is_earlier_59(void);
const struct verbs_context_ops *pabi_shape(const struct verbs_context_ops *ops);
#else
static inline bool pabi_is_earlier_59(void)
{
	return false;
}

static inline const struct verbs_context_ops *pabi_shape(const struct verbs_context_ops *ops)
{
	return ops;
}
#endif

/* Pointers at the beginning of a context that the library does not have. */
static inline unsigned int pabi_surplus(void)
{
	return pabi_is_earlier_59() ? WEFT_PABI_POINTERS - WEFT_PABI_EARLIER_59_POINTERS : 0;
}

#endif
