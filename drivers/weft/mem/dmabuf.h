/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The memory of a dma-buf as the backing of a region.
 */
#ifndef WEFT_MEM_DMABUF_H
#define WEFT_MEM_DMABUF_H

#include <linux/types.h>

struct weft_backing;

struct weft_backing *weft_backing_from_dmabuf(int fd, u64 offset, u64 length);

#endif
