/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The slice of libibverbs' private interface that weft uses. Distributions do
 * not package a header for it, so it is declared here: first what has been the
 * same under every private ABI number, then, through one header per number,
 * what has not. The number comes from the installed library (see Makefile) and
 * stands in the name of the plugin, so a library with another one never loads
 * this build. Inside a source tree of rdma-core in-tree.h stands for all of it.
 *
 * The objects below are ours to allocate and the library's to fill in; their
 * sizes are asserted at the end and compared with the library's own figures in
 * Documentation/abi.md.
 */
#ifndef WEFT_PRIVATE_H
#define WEFT_PRIVATE_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef WEFT_IN_RDMA_CORE
#include "private-abi/in-tree.h"
#else

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

struct verbs_xrcd;
struct verbs_sysfs_dev;
struct ibv_command_buffer;

/* Our object around the library's part of it. */
#define container_of(ptr, type, member)                    \
	({                                                 \
		char *__part = (char *)(ptr);              \
		(type *)(__part - offsetof(type, member)); \
	})

/* How a provider recognises its devices; the other kinds are for older ones. */
enum { PABI_MATCH_END = 0, PABI_MATCH_DRIVER_ID = 3 };

struct verbs_match_ent {
	void *driver_data;
	union {
		const char *modalias;
		uint64_t driver_id;
	} u;
	uint16_t vendor;
	uint16_t device;
	uint8_t kind;
};

struct verbs_device;

struct verbs_device_ops {
	const char *name;
	uint32_t match_min_abi_version;
	uint32_t match_max_abi_version;
	const struct verbs_match_ent *match_table;
	const struct verbs_device_ops **static_providers;
	bool (*match_device)(struct verbs_sysfs_dev *sysfs);
	struct verbs_context *(*alloc_context)(struct ibv_device *device, int cmd_fd,
					       void *private_data);
	struct verbs_context *(*import_context)(struct ibv_device *device, int cmd_fd);
	struct verbs_device *(*alloc_device)(struct verbs_sysfs_dev *sysfs);
	void (*uninit_device)(struct verbs_device *device);
};

struct verbs_device {
	struct ibv_device device;
	const struct verbs_device_ops *ops;
	atomic_int refcount;
	struct {
		void *next;
		void *prev;
	} entry;
	struct verbs_sysfs_dev *sysfs;
	uint64_t core_support;
};

struct verbs_mr {
	struct ibv_mr ibv_mr;
	int mr_type;
	int access;
};

/* Set in verbs_qp.comp_mask, it lets the application have the qp_ex half. */
enum { PABI_QP_EX = 1 << 1 };

struct verbs_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex qp_ex;
	};
	uint32_t comp_mask;
	struct verbs_xrcd *xrcd;
};

struct verbs_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex cq_ex;
	};
};

/*
 * A write() command is a header, the kernel's body for it, and the driver's
 * part, which weft never has. The library takes whatever exceeds the size of
 * the first two for a driver's part, so the sizes must be exact.
 */
#define PABI_CMD(name)                                                         \
	struct pabi_##name {                                                   \
		struct ib_uverbs_cmd_hdr hdr;                                  \
		struct ib_uverbs_##name body;                                  \
	}

PABI_CMD(get_context);
PABI_CMD(query_port);
PABI_CMD(alloc_pd);
PABI_CMD(reg_mr);
PABI_CMD(rereg_mr);
PABI_CMD(alloc_mw);
PABI_CMD(create_cq);
PABI_CMD(resize_cq);
PABI_CMD(create_qp);
PABI_CMD(query_qp);
PABI_CMD(modify_qp);
PABI_CMD(create_srq);
PABI_CMD(modify_srq);
PABI_CMD(query_srq);

struct pabi_modify_cq {
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_ex_cmd_hdr ex_hdr;
	struct ib_uverbs_ex_modify_cq body;
};

struct pabi_create_cq_ex {
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_ex_cmd_hdr ex_hdr;
	struct ib_uverbs_ex_create_cq body;
};

#include "private-abi/layouts.h"

void WEFT_PABI_REGISTER(const struct verbs_device_ops *ops);

void *_verbs_init_and_alloc_context(struct ibv_device *device, int cmd_fd, size_t size,
				    struct verbs_context *at, uint32_t driver_id);
void verbs_uninit_context(struct verbs_context *context);
void verbs_set_ops(struct verbs_context *context, const struct verbs_context_ops *ops);

int ibv_cmd_query_context(struct ibv_context *context, struct ibv_command_buffer *driver);
int ibv_cmd_query_device_any(struct ibv_context *context,
			     const struct ibv_query_device_ex_input *input,
			     struct ibv_device_attr_ex *attr, size_t attr_size,
			     struct ib_uverbs_ex_query_device_resp *resp, size_t *resp_size);
int ibv_cmd_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		       struct pabi_query_port *cmd, size_t cmd_size);

int ibv_cmd_alloc_pd(struct ibv_context *context, struct ibv_pd *pd, struct pabi_alloc_pd *cmd,
		     size_t cmd_size, struct ib_uverbs_alloc_pd_resp *resp, size_t resp_size);
int ibv_cmd_dealloc_pd(struct ibv_pd *pd);

int ibv_cmd_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access,
		   struct verbs_mr *vmr, struct pabi_reg_mr *cmd, size_t cmd_size,
		   struct ib_uverbs_reg_mr_resp *resp, size_t resp_size);
int ibv_cmd_rereg_mr(struct verbs_mr *vmr, uint32_t flags, void *addr, size_t length, uint64_t iova,
		     int access, struct ibv_pd *pd, struct pabi_rereg_mr *cmd, size_t cmd_size,
		     struct ib_uverbs_rereg_mr_resp *resp, size_t resp_size);
int ibv_cmd_dereg_mr(struct verbs_mr *vmr);
int ibv_cmd_query_mr(struct ibv_pd *pd, struct verbs_mr *vmr, uint32_t mr_handle);
int ibv_cmd_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		      struct ibv_sge *sg_list, uint32_t num_sge);
/* The last argument came with rdma-core 55; a library before that does not look at it. */
int ibv_cmd_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
			  int access, struct verbs_mr *vmr, struct ibv_command_buffer *driver);

int ibv_cmd_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw *mw,
		     struct pabi_alloc_mw *cmd, size_t cmd_size,
		     struct ib_uverbs_alloc_mw_resp *resp, size_t resp_size);
int ibv_cmd_dealloc_mw(struct ibv_mw *mw);

int ibv_cmd_create_cq(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel,
		      int comp_vector, struct ibv_cq *cq, struct pabi_create_cq *cmd,
		      size_t cmd_size, struct ib_uverbs_create_cq_resp *resp, size_t resp_size);
int ibv_cmd_resize_cq(struct ibv_cq *cq, int cqe, struct pabi_resize_cq *cmd, size_t cmd_size,
		      struct ib_uverbs_resize_cq_resp *resp, size_t resp_size);
int ibv_cmd_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr,
		      struct pabi_modify_cq *cmd, size_t cmd_size);
int ibv_cmd_destroy_cq(struct ibv_cq *cq);

int ibv_cmd_create_srq(struct ibv_pd *pd, struct ibv_srq *srq, struct ibv_srq_init_attr *attr,
		       struct pabi_create_srq *cmd, size_t cmd_size,
		       struct ib_uverbs_create_srq_resp *resp, size_t resp_size);
int ibv_cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask,
		       struct pabi_modify_srq *cmd, size_t cmd_size);
int ibv_cmd_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, struct pabi_query_srq *cmd,
		      size_t cmd_size);
int ibv_cmd_destroy_srq(struct ibv_srq *srq);

int ibv_cmd_create_qp_ex(struct ibv_context *context, struct verbs_qp *qp,
			 struct ibv_qp_init_attr_ex *attr, struct pabi_create_qp *cmd,
			 size_t cmd_size, struct ib_uverbs_create_qp_resp *resp, size_t resp_size);
int ibv_cmd_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		     struct ibv_qp_init_attr *init_attr, struct pabi_query_qp *cmd,
		     size_t cmd_size);
int ibv_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		      struct pabi_modify_qp *cmd, size_t cmd_size);
int ibv_cmd_destroy_qp(struct ibv_qp *qp);

#if __SIZEOF_POINTER__ == 8
static_assert(sizeof(struct verbs_match_ent) == 24, "match entry");
static_assert(sizeof(struct verbs_device_ops) == 72, "device operations");
static_assert(sizeof(struct verbs_device) == sizeof(struct ibv_device) + 48, "device");
static_assert(sizeof(struct verbs_mr) == sizeof(struct ibv_mr) + 8, "mr");
static_assert(sizeof(struct verbs_qp) == sizeof(struct ibv_qp_ex) + 16, "qp");
static_assert(sizeof(struct verbs_context_ops) == WEFT_PABI_SLOTS * 8, "operations");
static_assert(sizeof(struct ibv_context) == 288 + sizeof(pthread_mutex_t), "public context");
#endif
static_assert(sizeof(struct pabi_get_context) == 16, "get_context");
static_assert(sizeof(struct pabi_query_port) == 24, "query_port");
static_assert(sizeof(struct pabi_alloc_pd) == 16, "alloc_pd");
static_assert(sizeof(struct pabi_reg_mr) == 48, "reg_mr");
static_assert(sizeof(struct pabi_rereg_mr) == 56, "rereg_mr");
static_assert(sizeof(struct pabi_alloc_mw) == 24, "alloc_mw");
static_assert(sizeof(struct pabi_create_cq) == 40, "create_cq");
static_assert(sizeof(struct pabi_create_cq_ex) == 56, "create_cq_ex");
static_assert(sizeof(struct pabi_resize_cq) == 24, "resize_cq");
static_assert(sizeof(struct pabi_modify_cq) == 40, "modify_cq");
static_assert(sizeof(struct pabi_create_qp) == 64, "create_qp");
static_assert(sizeof(struct pabi_query_qp) == 24, "query_qp");
static_assert(sizeof(struct pabi_modify_qp) == 120, "modify_qp");
static_assert(sizeof(struct pabi_create_srq) == 40, "create_srq");
static_assert(sizeof(struct pabi_modify_srq) == 24, "modify_srq");
static_assert(sizeof(struct pabi_query_srq) == 24, "query_srq");

#endif /* WEFT_IN_RDMA_CORE */

/*
 * An answer is the kernel's part with the driver's right behind it. The former
 * may end in a flexible array, so the latter is laid over it.
 */
#define PABI_RESP(name, core_type, drv_type)                                   \
	union name {                                                           \
		struct core_type core;                                         \
		struct {                                                       \
			uint8_t room[sizeof(struct core_type)];                \
			struct drv_type drv;                                   \
		};                                                             \
	};                                                                     \
	static_assert(offsetof(union name, drv) == sizeof(struct core_type),   \
		      "a gap before the driver's part")

/* The arguments differ, see layouts.h. */
static inline int pabi_cmd_get_context(struct verbs_context *context, struct pabi_get_context *cmd,
				       size_t cmd_size, struct ib_uverbs_get_context_resp *resp,
				       size_t resp_size)
{
#if WEFT_PABI >= 57
	return ibv_cmd_get_context(context, cmd, cmd_size, NULL, resp, resp_size);
#else
	return ibv_cmd_get_context(context, cmd, cmd_size, resp, resp_size);
#endif
}

static inline int pabi_cmd_create_cq_ex(struct ibv_context *context,
					const struct ibv_cq_init_attr_ex *attr, struct verbs_cq *cq,
					struct pabi_create_cq_ex *cmd, size_t cmd_size,
					struct ib_uverbs_ex_create_cq_resp *resp, size_t resp_size)
{
#if WEFT_PABI >= 59
	return ibv_cmd_create_cq_ex(context, attr, NULL, cq, cmd, cmd_size, resp, resp_size, 0);
#else
	return ibv_cmd_create_cq_ex(context, attr, cq, cmd, cmd_size, resp, resp_size, 0);
#endif
}

#endif
