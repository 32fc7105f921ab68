// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The device, and CQs. libibverbs carries the commands and fills
 * in the public part of what we allocate; a function here returns what it got.
 */
#include "verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "context.h"
#include "cq.h"
#include "cq_ex.h"
#include "pd.h"
#include "private-abi/private.h"
#include "process.h"

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

PABI_RESP(create_cq_resp, ib_uverbs_create_cq_resp, weft_uresp_create_cq);

PABI_RESP(create_cq_ex_resp, ib_uverbs_ex_create_cq_resp, weft_uresp_create_cq);

PABI_RESP(resize_cq_resp, ib_uverbs_resize_cq_resp, weft_uresp_resize_cq);

/*
 * @ret is that of the command that created @cq. Return: false if it or what follows failed; then
 * @cq is freed, and errno is set.
 */
static bool finish_cq(struct weft_cq *cq, int ret, struct ibv_context *context,
		      const struct weft_queue_map *map, bool single_threaded)
{
	if (!ret) {
		ret = weft_cq_init(cq, weft_regions(context), map, single_threaded);
		if (ret)
			ibv_cmd_destroy_cq(&cq->vcq.cq);
	}
	if (ret) {
		free(cq);
		errno = ret;
	}
	return !ret;
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
	if (!finish_cq(cq, ret, context, &resp.drv.cq, false))
		return NULL;
	return &cq->vcq.cq;
}

static const uint32_t known_cq_attrs = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;

struct ibv_cq_ex *weft_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
	bool single_threaded = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	struct ibv_cq_init_attr_ex ask = *attr;
	union create_cq_ex_resp resp = {};
	struct pabi_create_cq_ex cmd = {};
	struct weft_cq *cq;
	int ret;

	if ((attr->wc_flags & ~weft_cq_ex_readable) || (attr->comp_mask & ~known_cq_attrs) ||
	    (flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) && attr->parent_domain &&
	    weft_pd_is_single_threaded(attr->parent_domain))
		single_threaded = true;

	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;

	ask.comp_mask &= ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_PD;
	ret = pabi_cmd_create_cq_ex(context, &ask, &cq->vcq, &cmd, sizeof(cmd), &resp.core,
				    sizeof(resp));
	if (!finish_cq(cq, ret, context, &resp.drv.cq, single_threaded))
		return NULL;
	weft_cq_ex_init(cq, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

int weft_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	struct pabi_modify_cq cmd = {};
	int ret;

	ret = weft_must_own(ibcq->context, weft_cq(ibcq)->generation);
	if (ret)
		return ret;
	return ibv_cmd_modify_cq(ibcq, attr, &cmd, sizeof(cmd));
}

/* The locks keep cons and arm still while the kernel moves what is unread. */
int weft_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct weft_cq *cq = weft_cq(ibcq);
	union resize_cq_resp resp = {};
	struct pabi_resize_cq cmd = {};
	struct weft_va_range room;
	int ret;

	if (cqe < 1)
		return EINVAL;
	ret = weft_must_own(ibcq->context, cq->generation);
	if (ret)
		return ret;
	ret = weft_queue_reserve(&room, (uint32_t)cqe, sizeof(struct weft_cqe));
	if (ret)
		return ret;
	weft_lock(&cq->lock);
	weft_lock(&cq->arming);
	ret = ibv_cmd_resize_cq(ibcq, cqe, &cmd, sizeof(cmd), &resp.core, sizeof(resp));
	if (!ret)
		ret = weft_cq_move(cq, weft_regions(ibcq->context), &resp.drv.cq, &room);
	weft_unlock(&cq->arming);
	weft_unlock(&cq->lock);
	weft_va_release(&room);
	return ret;
}

int weft_destroy_cq(struct ibv_cq *ibcq)
{
	struct weft_cq *cq = weft_cq(ibcq);
	int ret = 0;

	if (weft_owns(ibcq->context, cq->generation))
		ret = ibv_cmd_destroy_cq(ibcq);
	if (ret)
		return ret;

	weft_queue_unmap(&cq->queue);
	free(cq);
	return 0;
}
