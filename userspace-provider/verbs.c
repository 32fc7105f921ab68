// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Objects without a queue, and CQs. libibverbs carries the commands and fills
 * in the public part of what we allocate; a function here returns what it got.
 */
#include "verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cq.h"
#include "cq_ex.h"
#include "private-abi/private.h"

int weft_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t size)
{
	struct ib_uverbs_ex_query_device_resp resp = {};
	size_t resp_size = sizeof(resp);
	uint64_t version;
	int ret;

	ret = ibv_cmd_query_device_any(context, input, attr, size, &resp, &resp_size);
	if (ret)
		return ret;

	version = resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver), "%u.%u.%u",
		 (unsigned int)(version >> 32), (unsigned int)(version >> 16) & 0xffff,
		 (unsigned int)version & 0xffff);
	return 0;
}

int weft_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr)
{
	struct pabi_query_port cmd = {};

	return ibv_cmd_query_port(context, port_num, attr, &cmd, sizeof(cmd));
}

/*
 * The clock that stamps completions is the host's monotonic one and ticks in
 * nanoseconds. Applications expect a count of ticks, all of it in tv_nsec.
 */
int weft_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	struct timespec now;

	(void)context;
	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return EOPNOTSUPP;
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec = now.tv_sec * 1000000000L + now.tv_nsec;
	}
	return 0;
}

struct ibv_pd *weft_alloc_pd(struct ibv_context *context)
{
	struct ib_uverbs_alloc_pd_resp resp = {};
	struct pabi_alloc_pd cmd = {};
	struct ibv_pd *pd;
	int ret;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	ret = ibv_cmd_alloc_pd(context, pd, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(pd);
		errno = ret;
		return NULL;
	}
	return pd;
}

int weft_dealloc_pd(struct ibv_pd *pd)
{
	int ret = ibv_cmd_dealloc_pd(pd);

	if (!ret)
		free(pd);
	return ret;
}

struct ibv_mr *weft_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	struct ib_uverbs_reg_mr_resp resp = {};
	struct pabi_reg_mr cmd = {};
	struct verbs_mr *vmr;
	int ret;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	ret = ibv_cmd_reg_mr(pd, addr, length, iova, access, vmr, &cmd, sizeof(cmd), &resp,
			     sizeof(resp));
	if (ret) {
		free(vmr);
		errno = ret;
		return NULL;
	}
	return &vmr->ibv_mr;
}

int weft_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		  int access)
{
	struct ib_uverbs_rereg_mr_resp resp = {};
	struct pabi_rereg_mr cmd = {};

	return ibv_cmd_rereg_mr(vmr, (uint32_t)flags, addr, length, (uintptr_t)addr, access, pd,
				&cmd, sizeof(cmd), &resp, sizeof(resp));
}

int weft_dereg_mr(struct verbs_mr *vmr)
{
	int ret = ibv_cmd_dereg_mr(vmr);

	if (!ret)
		free(vmr);
	return ret;
}

struct ibv_mw *weft_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ib_uverbs_alloc_mw_resp resp = {};
	struct pabi_alloc_mw cmd = {};
	struct ibv_mw *mw;
	int ret;

	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;

	ret = ibv_cmd_alloc_mw(pd, type, mw, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(mw);
		errno = ret;
		return NULL;
	}
	return mw;
}

int weft_dealloc_mw(struct ibv_mw *mw)
{
	int ret = ibv_cmd_dealloc_mw(mw);

	if (!ret)
		free(mw);
	return ret;
}

PABI_RESP(create_cq_resp, ib_uverbs_create_cq_resp, weft_uresp_create_cq);

PABI_RESP(create_cq_ex_resp, ib_uverbs_ex_create_cq_resp, weft_uresp_create_cq);

PABI_RESP(resize_cq_resp, ib_uverbs_resize_cq_resp, weft_uresp_resize_cq);

static int map_cq(struct weft_cq *cq, struct ibv_context *context,
		  const struct weft_uresp_create_cq *drv)
{
	int ret;

	ret = weft_cq_init(cq, context->cmd_fd, &drv->cq);
	if (ret)
		ibv_cmd_destroy_cq(&cq->vcq.cq);
	return ret;
}

struct ibv_cq *weft_create_cq(struct ibv_context *context, int cqe,
			      struct ibv_comp_channel *channel, int comp_vector)
{
	union create_cq_resp resp = {};
	struct pabi_create_cq cmd = {};
	struct weft_cq *cq;
	int ret;

	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;

	ret = ibv_cmd_create_cq(context, cqe, channel, comp_vector, &cq->vcq.cq, &cmd, sizeof(cmd),
				&resp.core, sizeof(resp));
	if (!ret)
		ret = map_cq(cq, context, &resp.drv);
	if (ret) {
		free(cq);
		errno = ret;
		return NULL;
	}
	return &cq->vcq.cq;
}

static int check_cq_attr(const struct ibv_cq_init_attr_ex *attr)
{
	if (attr->wc_flags & ~weft_cq_ex_readable)
		return EOPNOTSUPP;
	if (attr->comp_mask & ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS)
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	    (attr->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED))
		return EOPNOTSUPP;
	return 0;
}

struct ibv_cq_ex *weft_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	union create_cq_ex_resp resp = {};
	struct pabi_create_cq_ex cmd = {};
	struct weft_cq *cq;
	int ret;

	ret = check_cq_attr(attr);
	if (ret) {
		errno = ret;
		return NULL;
	}

	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;

	ret = ibv_cmd_create_cq_ex(context, attr, &cq->vcq, &cmd, sizeof(cmd), &resp.core,
				   sizeof(resp), 0);
	if (!ret)
		ret = map_cq(cq, context, &resp.drv);
	if (ret) {
		free(cq);
		errno = ret;
		return NULL;
	}
	weft_cq_ex_init(cq, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

/* The lock keeps cons still while the kernel moves what is unread. */
int weft_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct weft_cq *cq = weft_cq(ibcq);
	union resize_cq_resp resp = {};
	struct pabi_resize_cq cmd = {};
	int ret;

	pthread_spin_lock(&cq->lock);
	ret = ibv_cmd_resize_cq(ibcq, cqe, &cmd, sizeof(cmd), &resp.core, sizeof(resp));
	if (!ret)
		ret = weft_cq_move(cq, ibcq->context->cmd_fd, &resp.drv.cq);
	pthread_spin_unlock(&cq->lock);
	return ret;
}

int weft_destroy_cq(struct ibv_cq *ibcq)
{
	struct weft_cq *cq = weft_cq(ibcq);
	int ret;

	ret = ibv_cmd_destroy_cq(ibcq);
	if (ret)
		return ret;

	weft_cq_fini(cq);
	free(cq);
	return 0;
}
