// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The system calls of the data path: doorbells, driver methods of QP and SRQ (uapi/weft-abi.h). */
#include "verbs/doorbell.h"

#include <linux/build_bug.h>

#include "engine/life/stream.h"
#include "engine/ops/rnr.h"
#include "engine/run/doorbell.h"
#include "ring/recvq.h"
#include "uapi/weft-abi.h"
#include "verbs/owner.h"
#include "verbs/qp.h"
#include "verbs/srq.h"

#define UVERBS_MODULE_NAME weft
#include <rdma/uverbs_named_ioctl.h>

/* The provider knows the numbers without the kernel's headers. */
static_assert(WEFT_METHOD_QP_DOORBELL == 1U << UVERBS_ID_NS_SHIFT);
static_assert(WEFT_ATTR_QP_DOORBELL_HANDLE == 1U << UVERBS_ID_NS_SHIFT);
static_assert(WEFT_METHOD_SRQ_DOORBELL == 1U << UVERBS_ID_NS_SHIFT);
static_assert(WEFT_ATTR_SRQ_DOORBELL_HANDLE == 1U << UVERBS_ID_NS_SHIFT);

static int UVERBS_HANDLER(WEFT_METHOD_QP_DOORBELL)(struct uverbs_attr_bundle *attrs)
{
	struct ib_qp *qp = uverbs_attr_get_obj(attrs, WEFT_ATTR_QP_DOORBELL_HANDLE);

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	weft_rnr_doorbell(to_weft_qp(qp)->stream);
	weft_doorbell(to_weft_qp(qp)->stream);
	return 0;
}

/* READ: threads that post to the same QP do not exclude each other. */
DECLARE_UVERBS_NAMED_METHOD(WEFT_METHOD_QP_DOORBELL,
			    UVERBS_ATTR_IDR(WEFT_ATTR_QP_DOORBELL_HANDLE, UVERBS_OBJECT_QP,
					    UVERBS_ACCESS_READ, UA_MANDATORY));

ADD_UVERBS_METHODS(weft_qp_methods, UVERBS_OBJECT_QP, &UVERBS_METHOD(WEFT_METHOD_QP_DOORBELL));

static int UVERBS_HANDLER(WEFT_METHOD_SRQ_DOORBELL)(struct uverbs_attr_bundle *attrs)
{
	struct ib_srq *srq = uverbs_attr_get_obj(attrs, WEFT_ATTR_SRQ_DOORBELL_HANDLE);

	if (IS_ERR(srq))
		return PTR_ERR(srq);
	weft_recvq_posted(&to_weft_srq(srq)->rq);
	return 0;
}

DECLARE_UVERBS_NAMED_METHOD(WEFT_METHOD_SRQ_DOORBELL,
			    UVERBS_ATTR_IDR(WEFT_ATTR_SRQ_DOORBELL_HANDLE, UVERBS_OBJECT_SRQ,
					    UVERBS_ACCESS_READ, UA_MANDATORY));

ADD_UVERBS_METHODS(weft_srq_methods, UVERBS_OBJECT_SRQ, &UVERBS_METHOD(WEFT_METHOD_SRQ_DOORBELL));

const struct uapi_definition weft_uapi_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_QP, &weft_qp_methods),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_SRQ, &weft_srq_methods),
	UAPI_DEF_CHAIN(weft_owner_defs),
	{},
};
