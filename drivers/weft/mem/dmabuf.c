// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The memory of a dma-buf as the backing of a region. It is the CPU that copies
 * here, so the buffer is not attached to a device but mapped for the kernel, and
 * stays mapped, which keeps it where it is. Memory that the CPU does not reach as
 * ordinary pages is refused.
 */
#include "mem/dmabuf.h"

#include <linux/bvec.h>
#include <linux/dma-buf.h>
#include <linux/err.h>
#include <linux/iosys-map.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "mem/backing.h"

COMPAT_IMPORT_DMA_BUF;

/**
 * struct dmabuf_backing - what such a backing is made of
 * @buf: a reference
 * @map: where the kernel has it
 */
struct dmabuf_backing {
	struct dma_buf *buf;
	struct iosys_map map;
};

static void let_go(void *owner)
{
	struct dmabuf_backing *d = owner;

	dma_buf_end_cpu_access(d->buf, DMA_BIDIRECTIONAL);
	dma_buf_vunmap_unlocked(d->buf, &d->map);
	dma_buf_put(d->buf);
	kfree(d);
}

static struct dmabuf_backing *open_buffer(int fd, u64 offset, u64 length)
{
	struct dmabuf_backing *d = kzalloc(sizeof(*d), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!d)
		return ERR_PTR(-ENOMEM);
	d->buf = dma_buf_get(fd);
	if (IS_ERR(d->buf)) {
		ret = PTR_ERR(d->buf);
		goto free;
	}
	ret = -EINVAL;
	if (offset > d->buf->size || length > d->buf->size - offset)
		goto put;
	ret = -EOPNOTSUPP;
	if (!d->buf->ops->vmap)
		goto put;
	ret = dma_buf_vmap_unlocked(d->buf, &d->map);
	if (ret)
		goto put;
	if (d->map.is_iomem)
		ret = -EOPNOTSUPP;
	else
		ret = dma_buf_begin_cpu_access(d->buf, DMA_BIDIRECTIONAL);
	if (ret)
		goto unmap;
	return d;

unmap:
	dma_buf_vunmap_unlocked(d->buf, &d->map);
put:
	dma_buf_put(d->buf);
free:
	kfree(d);
	return ERR_PTR(ret);
}

/* Where a buffer begins within a page of the mapping is the exporter's choice. */
static struct weft_backing *list_pages(const struct dmabuf_backing *d, u64 offset, u64 length)
{
	const void *start = d->map.vaddr + offset;
	u64 pages = (offset_in_page(start) + length + PAGE_SIZE - 1) >> PAGE_SHIFT;
	const void *addr = PTR_ALIGN_DOWN(start, PAGE_SIZE);
	struct weft_backing *b;
	struct page *page;

	if (pages > U32_MAX)
		return ERR_PTR(-EINVAL);
	b = weft_backing_pages(pages);
	if (IS_ERR(b))
		return b;
	b->first = offset_in_page(start);
	for (; b->count < pages; addr += PAGE_SIZE) {
		if (is_vmalloc_addr(addr))
			page = vmalloc_to_page(addr);
		else
			page = virt_addr_valid(addr) ? virt_to_page(addr) : NULL;
		if (!page) {
			weft_backing_free(b);
			return ERR_PTR(-EOPNOTSUPP);
		}
		b->vec[b->count++] = (struct bio_vec){ .bv_page = page, .bv_len = PAGE_SIZE };
	}
	return b;
}

/**
 * weft_backing_from_dmabuf - part of a dma-buf
 * @fd: of the buffer, in the calling process
 * @offset: of the part
 * @length: bytes, not 0
 *
 * Context: may sleep. Return: the backing, or an ERR_PTR: -EOPNOTSUPP when the
 * CPU cannot reach the memory, -EINVAL when it is too small.
 */
struct weft_backing *weft_backing_from_dmabuf(int fd, u64 offset, u64 length)
{
	struct dmabuf_backing *d = open_buffer(fd, offset, length);
	struct weft_backing *b;

	if (IS_ERR(d))
		return ERR_CAST(d);
	b = list_pages(d, offset, length);
	if (IS_ERR(b)) {
		let_go(d);
		return b;
	}
	b->release = let_go;
	b->owner = d;
	return b;
}
