// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory regions and windows. libibverbs carries the commands and fills in the
 * public part of what we allocate; a function here returns what it got.
 */
#include "mr.h"

#include <errno.h>
#include <stdlib.h>

#include "context.h"
#include "inherit.h"
#include "process.h"

/* The kernel has answered: @err is 0 or an errno. */
static struct ibv_mr *finish(struct weft_mr *mr, struct ibv_pd *pd, int err)
{
	if (!err) {
		mr->regions = weft_regions(pd->context);
		err = weft_mr_enter(mr);
		if (err)
			ibv_cmd_dereg_mr(&mr->vmr);
	}
	if (err) {
		free(mr);
		errno = err;
		return NULL;
	}
	return &mr->vmr.ibv_mr;
}

struct ibv_mr *weft_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	struct ib_uverbs_reg_mr_resp resp = {};
	struct weft_mr *mr = calloc(1, sizeof(*mr));
	struct pabi_reg_mr cmd = {};
	int ret;

	if (!mr)
		return NULL;
	ret = ibv_cmd_reg_mr(pd, addr, length, iova, access, &mr->vmr, &cmd, sizeof(cmd), &resp,
			     sizeof(resp));
	return finish(mr, pd, ret);
}

struct ibv_mr *weft_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				  int fd, int access)
{
	struct weft_mr *mr = calloc(1, sizeof(*mr));
	int ret;

	if (!mr)
		return NULL;
	/* A buffer is the same memory for everybody. */
	mr->mapping = WEFT_MR_SHARED;
	ret = ibv_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, &mr->vmr, NULL);
	return finish(mr, pd, ret);
}

/* With a translation it is the caller's memory that is registered, also in an heir. */
int weft_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		  int access)
{
	struct ib_uverbs_rereg_mr_resp resp = {};
	struct pabi_rereg_mr cmd = {};
	struct weft_mr *mr = container_of(vmr, struct weft_mr, vmr);
	int ret;

	ret = weft_must_own(vmr->ibv_mr.context, mr->generation);
	if (ret)
		return ret;
	ret = ibv_cmd_rereg_mr(vmr, (uint32_t)flags, addr, length, (uintptr_t)addr, access, pd,
			       &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (!ret && (flags & IBV_REREG_MR_CHANGE_TRANSLATION))
		weft_mr_renew(mr);
	return ret;
}

int weft_dereg_mr(struct verbs_mr *vmr)
{
	struct weft_mr *mr = container_of(vmr, struct weft_mr, vmr);
	int ret = 0;

	if (weft_owns(vmr->ibv_mr.context, mr->generation))
		ret = ibv_cmd_dereg_mr(vmr);
	if (ret)
		return ret;
	weft_mr_leave(mr);
	free(mr);
	return 0;
}

/* A region of another process that shares our context: known by its handle. */
struct ibv_mr *weft_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct weft_mr *mr = calloc(1, sizeof(*mr));
	int ret;

	if (!mr)
		return NULL;

	mr->generation = weft_generation;
	ret = ibv_cmd_query_mr(pd, &mr->vmr, handle);
	if (ret) {
		free(mr);
		errno = ret;
		return NULL;
	}
	return &mr->vmr.ibv_mr;
}

void weft_unimport_mr(struct ibv_mr *mr)
{
	free(container_of(mr, struct weft_mr, vmr.ibv_mr));
}

struct ibv_mw *weft_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ib_uverbs_alloc_mw_resp resp = {};
	struct pabi_alloc_mw cmd = {};
	struct weft_mw *mw;
	int ret;

	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;

	mw->generation = weft_generation;
	ret = ibv_cmd_alloc_mw(pd, type, &mw->mw, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(mw);
		errno = ret;
		return NULL;
	}
	return &mw->mw;
}

int weft_dealloc_mw(struct ibv_mw *ibmw)
{
	struct weft_mw *mw = container_of(ibmw, struct weft_mw, mw);
	int ret = 0;

	if (weft_owns(ibmw->context, mw->generation))
		ret = ibv_cmd_dealloc_mw(ibmw);
	if (!ret)
		free(mw);
	return ret;
}
