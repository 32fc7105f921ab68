// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory of a dma-buf, of an exporter that is played: it may refuse each step, and gets everything
 * back.
 */
#include <linux/completion.h>
#include <linux/dma-buf.h>
#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/fdtable.h>
#include <linux/iosys-map.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/vmalloc.h>

#include "base/compat.h"
#include "mem/backing.h"
#include "mem/dmabuf.h"
#include "suite.h"

#define BYTES	(4 * PAGE_SIZE)

/* What an exporter does, and what is to be given back to it. */
struct exporter {
	u8 *memory;
	bool is_far;	/* beyond the reach of ordinary loads and stores */
	int access_error;
	u32 mapped;
	u32 opened;
	struct completion gone;
};

static int play_vmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct exporter *e = buf->priv;

	if (e->is_far)
		iosys_map_set_vaddr_iomem(map, (void __iomem *)e->memory);
	else
		iosys_map_set_vaddr(map, e->memory);
	e->mapped++;
	return 0;
}

static void play_vunmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct exporter *e = buf->priv;

	e->mapped--;
}

static int play_begin(struct dma_buf *buf, enum dma_data_direction direction)
{
	struct exporter *e = buf->priv;

	if (!e->access_error)
		e->opened++;
	return e->access_error;
}

static int play_end(struct dma_buf *buf, enum dma_data_direction direction)
{
	struct exporter *e = buf->priv;

	e->opened--;
	return 0;
}

static void play_release(struct dma_buf *buf)
{
	struct exporter *e = buf->priv;

	complete(&e->gone);
}

/* The core wants them, and no device is attached. */
static struct sg_table *never_map(struct dma_buf_attachment *at, enum dma_data_direction direction)
{
	return ERR_PTR(-EIO);
}

static void never_unmap(struct dma_buf_attachment *at, struct sg_table *sgt,
			enum dma_data_direction direction)
{
}

static const struct dma_buf_ops plain_ops = {
	.map_dma_buf = never_map,
	.unmap_dma_buf = never_unmap,
	.begin_cpu_access = play_begin,
	.end_cpu_access = play_end,
	.vmap = play_vmap,
	.vunmap = play_vunmap,
	.release = play_release,
};

static const struct dma_buf_ops device_ops = {
	.map_dma_buf = never_map,
	.unmap_dma_buf = never_unmap,
	.release = play_release,
};

static struct dma_buf *export(struct kunit *test, struct exporter *e, const struct dma_buf_ops *ops)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *buf;

	info.ops = ops;
	info.size = BYTES;
	info.flags = O_RDWR;
	info.priv = e;
	init_completion(&e->gone);
	buf = dma_buf_export(&info);
	KUNIT_ASSERT_FALSE(test, IS_ERR(buf));
	return buf;
}

static const struct open_row {
	const char *name;
	u64 offset;
	u64 length;
	const struct dma_buf_ops *ops;
	bool is_far;
	int access_error;
	int ret;
} open_rows[] = {
	{ "all", 0, BYTES, &plain_ops },
	{ "part", PAGE_SIZE + 100, PAGE_SIZE, &plain_ops },
	{ "begins_beyond", BYTES + 1, 1, &plain_ops, .ret = -EINVAL },
	{ "ends_beyond", PAGE_SIZE, BYTES, &plain_ops, .ret = -EINVAL },
	{ "memory_of_a_device", 0, BYTES, &device_ops, .ret = -EOPNOTSUPP },
	{ "far_memory", 0, BYTES, &plain_ops, .is_far = true, .ret = -EOPNOTSUPP },
	{ "access_refused", 0, BYTES, &plain_ops, .access_error = -EINTR, .ret = -EINTR },
};

WEFT_ROWS(open_rows)

static void expect_pages(struct kunit *test, const struct weft_backing *b,
			 const struct open_row *row, const u8 *memory)
{
	u64 first = row->offset / PAGE_SIZE, last = (row->offset + row->length - 1) / PAGE_SIZE;
	u32 i;

	KUNIT_EXPECT_EQ(test, b->first, (u32)(row->offset % PAGE_SIZE));
	KUNIT_ASSERT_EQ(test, b->count, (u32)(last - first + 1));
	for (i = 0; i < b->count; i++)
		KUNIT_EXPECT_PTR_EQ(test, b->vec[i].bv_page,
				    vmalloc_to_page(memory + (first + i) * PAGE_SIZE));
}

static void weft_dmabuf_gives_all_back(struct kunit *test)
{
	const struct open_row *row = test->param_value;
	struct exporter *e = kunit_kzalloc(test, sizeof(*e), GFP_KERNEL);
	struct weft_backing *b;
	struct iosys_map map;
	struct dma_buf *buf;
	int fd;

	KUNIT_ASSERT_NOT_NULL(test, e);
	e->memory = vzalloc(BYTES);
	KUNIT_ASSERT_NOT_NULL(test, e->memory);
	e->is_far = row->is_far;
	e->access_error = row->access_error;
	buf = export(test, e, row->ops);
	fd = dma_buf_fd(buf, O_CLOEXEC);
	KUNIT_ASSERT_GE(test, fd, 0);
	b = weft_backing_from_dmabuf(fd, row->offset, row->length);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(b), row->ret);
	if (!IS_ERR(b)) {
		KUNIT_EXPECT_EQ(test, e->mapped, 1U);
		KUNIT_EXPECT_EQ(test, e->opened, 1U);
		expect_pages(test, b, row, e->memory);
		weft_backing_free(b);
	}
	KUNIT_EXPECT_EQ(test, e->opened, 0U);
	KUNIT_EXPECT_EQ(test, e->mapped, 0U);
	if (e->mapped) {	/* the core stops the kernel for one that is left */
		iosys_map_set_vaddr(&map, e->memory);
		dma_buf_vunmap_unlocked(buf, &map);
	}
	KUNIT_EXPECT_FALSE(test, completion_done(&e->gone));
	close_fd(fd);
	/* A kernel thread's last reference goes later. */
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&e->gone, 60 * HZ));
	vfree(e->memory);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(weft_dmabuf_gives_all_back, open_rows_gen_params),
	{},
};

static struct kunit_suite suite = {
	.name = "weft_dmabuf",
	.test_cases = cases,
};

kunit_test_suite(suite);
