// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The plugin's face to libibverbs: which devices are ours, contexts, and the
 * table of operations. A slot that is left out answers EOPNOTSUPP.
 */
#include <errno.h>
#include <stdlib.h>

#include "context.h"
#include "cq.h"
#include "mr.h"
#include "pd.h"
#include "private-abi/private.h"
#include "process.h"
#include "qp.h"
#include "srq.h"
#include "uapi/weft-abi.h"
#include "verbs.h"

/* To be found in the file by strings(1) or a debugger. */
__attribute__((used)) static const char weft_version[] = "libweft " WEFT_VERSION;

PABI_RESP(get_context_resp, ib_uverbs_get_context_resp, weft_uresp_alloc_ctx);

/* Which kernels of before do not look at. */
struct get_context {
	struct pabi_get_context core;
	struct weft_ureq_alloc_ctx drv;
};

static void free_context(struct ibv_context *context)
{
	struct weft_context *ctx = weft_context(context);

	verbs_uninit_context(weft_lib_context(ctx));
	free(ctx);
}

static const struct verbs_context_ops context_ops = {
	.advise_mr = ibv_cmd_advise_mr,
	.alloc_mw = weft_alloc_mw,
	.alloc_parent_domain = weft_alloc_parent_domain,
	.alloc_pd = weft_alloc_pd,
	.alloc_td = weft_alloc_td,
	.bind_mw = weft_bind_mw,
	.cq_event = weft_cq_event,
	.create_cq = weft_create_cq,
	.create_cq_ex = weft_create_cq_ex,
	.create_qp = weft_create_qp,
	.create_qp_ex = weft_create_qp_ex,
	.create_srq = weft_create_srq,
	.dealloc_mw = weft_dealloc_mw,
	.dealloc_pd = weft_dealloc_pd,
	.dealloc_td = weft_dealloc_td,
	.dereg_mr = weft_dereg_mr,
	.destroy_cq = weft_destroy_cq,
	.destroy_qp = weft_destroy_qp,
	.destroy_srq = weft_destroy_srq,
	.free_context = free_context,
	.import_mr = weft_import_mr,
	.import_pd = weft_import_pd,
	.modify_cq = weft_modify_cq,
	.modify_qp = weft_modify_qp,
	.modify_srq = weft_modify_srq,
	.poll_cq = weft_poll_cq,
	.post_recv = weft_post_recv,
	.post_send = weft_post_send,
	.post_srq_recv = weft_post_srq_recv,
	.query_device_ex = weft_query_device_ex,
	.query_port = weft_query_port,
	.query_qp = weft_query_qp,
	.query_rt_values = weft_query_rt_values,
	.query_srq = weft_query_srq,
	.reg_dmabuf_mr = weft_reg_dmabuf_mr,
	.reg_mr = weft_reg_mr,
	.req_notify_cq = weft_req_notify_cq,
	.rereg_mr = weft_rereg_mr,
	.resize_cq = weft_resize_cq,
	.unimport_mr = weft_unimport_mr,
	.unimport_pd = weft_unimport_pd,
};

static struct weft_context *new_context(struct ibv_device *device, int cmd_fd)
{
	/* Not an address: how far into the allocation the library's part begins. */
	struct verbs_context *at = (struct verbs_context *)(pabi_surplus() * sizeof(void *));

	return _verbs_init_and_alloc_context(device, cmd_fd, sizeof(struct weft_context), at,
					     WEFT_DRIVER_ID);
}

/* The kernel has answered: @err is 0 or an errno, and then the context goes. */
static struct verbs_context *finish_context(struct weft_context *ctx, int err,
					    const struct weft_uresp_alloc_ctx *resp)
{
	struct verbs_context *vctx = weft_lib_context(ctx);

	if (err) {
		verbs_uninit_context(vctx);
		free(ctx);
		errno = err;
		return NULL;
	}
	ctx->regions = (struct weft_regions){
		.fd = ctx->ibv.cmd_fd,
		.shared = resp->features & WEFT_FEATURE_UNIQUE_MMAP_KEYS,
	};
	ctx->heritable = resp->features & WEFT_FEATURE_OWNER;
	ctx->generation = weft_generation;
	verbs_set_ops(vctx, pabi_shape(&context_ops));
	return vctx;
}

static struct verbs_context *alloc_context(struct ibv_device *device, int cmd_fd,
					   void *private_data)
{
	union get_context_resp resp = {};
	struct get_context cmd = { .drv.flags = WEFT_CTX_SHARED_PAGES };
	struct weft_context *ctx;
	int ret;

	(void)private_data;
	ctx = new_context(device, cmd_fd);
	if (!ctx)
		return NULL;

	ret = pabi_cmd_get_context(weft_lib_context(ctx), &cmd.core, sizeof(cmd), &resp.core,
				   sizeof(resp));
	return finish_context(ctx, ret, &resp.drv);
}

/* A file of the device that another process has opened, and its objects with it. */
static struct verbs_context *import_context(struct ibv_device *device, int cmd_fd)
{
	const struct weft_uresp_alloc_ctx nothing = {};
	struct weft_context *ctx = new_context(device, cmd_fd);
	int ret;

	if (!ctx)
		return NULL;

	ret = ibv_cmd_query_context(&ctx->ibv, NULL);
	return finish_context(ctx, ret, &nothing);
}

static struct verbs_device *alloc_device(struct verbs_sysfs_dev *sysfs)
{
	(void)sysfs;
	return calloc(1, sizeof(struct verbs_device));
}

static void uninit_device(struct verbs_device *vdev)
{
	free(vdev);
}

static const struct verbs_match_ent matches[] = {
	{ .u.driver_id = WEFT_DRIVER_ID, .kind = PABI_MATCH_DRIVER_ID },
	{ .kind = PABI_MATCH_END },
};

/* Version 2 has more to offer, all of which is to be asked for. */
#define OLDEST_ABI_VERSION 2

static const struct verbs_device_ops device_ops = {
	.name = "weft",
	.match_min_abi_version = OLDEST_ABI_VERSION,
	.match_max_abi_version = WEFT_ABI_VERSION,
	.match_table = matches,
	.alloc_context = alloc_context,
	.import_context = import_context,
	.alloc_device = alloc_device,
	.uninit_device = uninit_device,
};

/* libibverbs loads the plugin for this alone. */
__attribute__((constructor)) static void register_driver(void)
{
	weft_process_init();
	WEFT_PABI_REGISTER(&device_ops);
}
