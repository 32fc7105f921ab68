// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Protection domains. A parent domain is the domain it was made of, for the
 * kernel, with a promise about threads beside it; only this library knows it.
 */
#include "pd.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "private-abi/private.h"
#include "process.h"

struct weft_td {
	struct ibv_td td;
	atomic_int users;	/* parent domains */
};

struct weft_pd {
	struct ibv_pd pd;
	uint32_t generation;	/* that made it */
	struct weft_pd *of;	/* a parent domain: made of this one, which may be one, too */
	struct weft_td *td;	/* and with this promise, or NULL */
	atomic_int users;	/* parent domains made of it */
};

struct ibv_pd *weft_alloc_pd(struct ibv_context *context)
{
	struct ib_uverbs_alloc_pd_resp resp = {};
	struct pabi_alloc_pd cmd = {};
	struct weft_pd *pd;
	int ret;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	pd->generation = weft_generation;
	ret = ibv_cmd_alloc_pd(context, &pd->pd, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(pd);
		errno = ret;
		return NULL;
	}
	return &pd->pd;
}

int weft_dealloc_pd(struct ibv_pd *ibpd)
{
	struct weft_pd *pd = container_of(ibpd, struct weft_pd, pd);
	int ret = 0;

	if (atomic_load(&pd->users))
		return EBUSY;
	if (pd->of) {
		atomic_fetch_sub(&pd->of->users, 1);
		if (pd->td)
			atomic_fetch_sub(&pd->td->users, 1);
		free(pd);
		return 0;
	}
	if (weft_owns(ibpd->context, pd->generation))
		ret = ibv_cmd_dealloc_pd(ibpd);
	if (!ret)
		free(pd);
	return ret;
}

/* The kernel checks the handle when it is used. */
struct ibv_pd *weft_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct weft_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return NULL;
	pd->generation = weft_generation;
	pd->pd.context = context;
	pd->pd.handle = handle;
	return &pd->pd;
}

void weft_unimport_pd(struct ibv_pd *ibpd)
{
	free(container_of(ibpd, struct weft_pd, pd));
}

struct ibv_td *weft_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct weft_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->td.context = context;
	return &td->td;
}

int weft_dealloc_td(struct ibv_td *ibtd)
{
	struct weft_td *td = container_of(ibtd, struct weft_td, td);

	if (atomic_load(&td->users))
		return EBUSY;
	free(td);
	return 0;
}

struct ibv_pd *weft_alloc_parent_domain(struct ibv_context *context,
					struct ibv_parent_domain_init_attr *attr)
{
	struct weft_pd *pd;

	/*
	 * Allocators are declined: queues are memory of the kernel, which no allocator of
	 * the application can provide.
	 */
	if (attr->comp_mask & ~(uint32_t)IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!attr->pd) {
		errno = EINVAL;
		return NULL;
	}
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	pd->pd.context = context;
	pd->pd.handle = attr->pd->handle;
	pd->of = container_of(attr->pd, struct weft_pd, pd);
	atomic_fetch_add(&pd->of->users, 1);
	if (attr->td) {
		pd->td = container_of(attr->td, struct weft_td, td);
		atomic_fetch_add(&pd->td->users, 1);
	}
	return &pd->pd;
}

bool weft_pd_is_single_threaded(struct ibv_pd *ibpd)
{
	return container_of(ibpd, struct weft_pd, pd)->td;
}
