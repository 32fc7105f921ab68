/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The doorbell: the one system call of the data path, a driver method of the QP
 * object (uapi/weft-abi.h).
 */
#ifndef WEFT_VERBS_DOORBELL_H
#define WEFT_VERBS_DOORBELL_H

#include <rdma/uverbs_ioctl.h>

extern const struct uapi_definition weft_uapi_defs[];

#endif
