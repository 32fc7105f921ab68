// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The system calls of the data path, driver methods of the QP and of the device
 * (uapi/weft-abi.h): the kick, and that of a process with a CPU to spare.
 */
#include "verbs/kick.h"

#include <linux/build_bug.h>

#include "engine/helper.h"
#include "engine/kick.h"
#include "engine/stream.h"
#include "uapi/weft-abi.h"
#include "verbs/qp.h"
#include "verbs/ucontext.h"

#define UVERBS_MODULE_NAME weft
#include <rdma/uverbs_named_ioctl.h>

/* The provider knows the numbers without the kernel's headers. */
static_assert(WEFT_METHOD_HELP == 1U << UVERBS_ID_NS_SHIFT);
static_assert(WEFT_METHOD_QP_KICK == 1U << UVERBS_ID_NS_SHIFT);
static_assert(WEFT_ATTR_QP_KICK_HANDLE == 1U << UVERBS_ID_NS_SHIFT);

static int UVERBS_HANDLER(WEFT_METHOD_QP_KICK)(struct uverbs_attr_bundle *attrs)
{
	struct ib_qp *qp = uverbs_attr_get_obj(attrs, WEFT_ATTR_QP_KICK_HANDLE);

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	weft_kick(to_weft_qp(qp)->stream);
	return 0;
}

/* READ: threads that post to the same QP do not exclude each other. */
DECLARE_UVERBS_NAMED_METHOD(WEFT_METHOD_QP_KICK,
			    UVERBS_ATTR_IDR(WEFT_ATTR_QP_KICK_HANDLE, UVERBS_OBJECT_QP,
					    UVERBS_ACCESS_READ, UA_MANDATORY));

static int UVERBS_HANDLER(WEFT_METHOD_HELP)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *ib = ib_uverbs_get_ucontext(attrs);

	if (IS_ERR(ib))
		return PTR_ERR(ib);
	weft_helper_run(weft_ucontext_helper(ib));
	return 0;
}

DECLARE_UVERBS_NAMED_METHOD(WEFT_METHOD_HELP);

ADD_UVERBS_METHODS(weft_device_methods, UVERBS_OBJECT_DEVICE, &UVERBS_METHOD(WEFT_METHOD_HELP));

ADD_UVERBS_METHODS(weft_qp_methods, UVERBS_OBJECT_QP, &UVERBS_METHOD(WEFT_METHOD_QP_KICK));

const struct uapi_definition weft_uapi_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_QP, &weft_qp_methods),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &weft_device_methods),
	{},
};
