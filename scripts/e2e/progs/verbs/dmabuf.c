// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Regions of dma-bufs of each exporter that there is. */
#define _GNU_SOURCE
#include "verbs.h"

#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define DMABUF 65536

static int from_udmabuf(size_t bytes)
{
	struct udmabuf_create create = { .size = bytes };
	int dev = open("/dev/udmabuf", O_RDWR), fd;

	if (dev < 0)
		return -1;
	create.memfd = memfd_create("weft", MFD_ALLOW_SEALING);
	CHECK(!ftruncate(create.memfd, bytes));
	CHECK(!fcntl(create.memfd, F_ADD_SEALS, F_SEAL_SHRINK));
	fd = ioctl(dev, UDMABUF_CREATE, &create);
	CHECK(fd >= 0);
	close(dev);
	return fd;
}

static int from_heap(size_t bytes)
{
	struct dma_heap_allocation_data alloc = { .len = bytes, .fd_flags = O_RDWR | O_CLOEXEC };
	int dev = open("/dev/dma_heap/system", O_RDWR);

	if (dev < 0)
		return -1;
	CHECK(!ioctl(dev, DMA_HEAP_IOCTL_ALLOC, &alloc));
	close(dev);
	return alloc.fd;
}

/* vgem: a graphics card without graphics. Its calls as <drm/drm.h> has them. */
struct create_dumb {
	uint32_t height, width, bpp, flags, handle, pitch;
	uint64_t size;
};

struct prime_handle {
	uint32_t handle, flags;
	int32_t fd;
};

static int from_vgem(size_t bytes)
{
	struct create_dumb create = { .height = bytes / 4096, .width = 1024, .bpp = 32 };
	struct prime_handle prime = { .flags = O_RDWR | O_CLOEXEC };
	int dev = open("/dev/dri/card0", O_RDWR);

	if (dev < 0)
		return -1;
	CHECK(!ioctl(dev, _IOWR('d', 0xb2, struct create_dumb), &create));
	prime.handle = create.handle;
	CHECK(!ioctl(dev, _IOWR('d', 0x2d, struct prime_handle), &prime));
	close(dev);
	return prime.fd;
}

static int make_dmabuf(size_t bytes)
{
	int (*const sources[])(size_t bytes) = { from_udmabuf, from_heap, from_vgem };
	int fd = -1;

	for (int i = 0; i < 3 && fd < 0; i++)
		fd = sources[i](bytes);
	if (fd < 0)
		SKIP("this kernel makes no dma-buf: no udmabuf, no system heap, no vgem");
	return fd;
}

/* How many dma-bufs there are; -1: debugfs does not tell. */
static int dmabufs(void)
{
	FILE *info = fopen("/sys/kernel/debug/dma_buf/bufinfo", "r");
	char line[512];
	int count = -1;

	while (info && fgets(line, sizeof(line), info))
		sscanf(line, "Total %d objects", &count);
	if (info)
		fclose(info);
	return count;
}

/* A part that begins and ends within pages, of three of them. */
static void part_of_dmabuf(int fd, unsigned char *seen)
{
	const uint64_t iova = 0x7000456000 + 100;
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(s.id->pd, 8192 + 100, 8192, iova, fd, OPEN);

	CHECK(mr);
	both_ways(seen + 8192 + 100, iova, mr->rkey, 8192);
	CHECK(!ibv_dereg_mr(mr));
}

/* It is the same memory for a child, which has no copy of it. */
static void is_posted_by_a_child(struct ibv_sge sg)
{
	pid_t pid = fork();

	if (!pid)
		_exit(recv_sge(&s, 3, sg));
	ends_well(pid);
}

static void dmabuf_traffic(int fd)
{
	unsigned char *seen = mmap(NULL, DMABUF, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	const uint64_t iova = 0x7000123000;
	struct ibv_mr *mr;

	CHECK(seen != MAP_FAILED);
	mr = ibv_reg_dmabuf_mr(s.id->pd, 4096, 32768, iova, fd, OPEN);
	CHECK(mr);
	both_ways(seen + 4096 + 100, iova + 100, mr->rkey, 20000);
	part_of_dmabuf(fd, seen);
	/* As a local buffer: a message out of it, and one into it. */
	for (int i = 0; i < 1000; i++)
		seen[4096 + i] = i * 5;
	CHECK(!recv_sge(&c, 1, sge(c.own, 0, 1000)));
	CHECK(!send_sge(&s, 2, (struct ibv_sge){ iova, 1000, mr->lkey }, 0));
	expect(s.id->send_cq, 2, IBV_WC_SUCCESS);
	expect(c.id->recv_cq, 1, IBV_WC_SUCCESS);
	CHECK(!memcmp(c.buf + BYTES, seen + 4096, 1000));
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, s.buf, 4096, 0));
	/* The buffer outlives its file and its mapping. */
	close(fd);
	read_back(iova + 5, mr->rkey, 900, IBV_WC_SUCCESS);
	CHECK(!memcmp(c.buf + BYTES + 30000, seen + 4096 + 5, 900));
	munmap(seen, DMABUF);
	read_back(iova + 32768 - 8, mr->rkey, 9, IBV_WC_REM_ACCESS_ERR);
	is_posted_by_a_child((struct ibv_sge){ iova, 1000, mr->lkey });
	CHECK(!ibv_dereg_mr(mr));
}

/* So many are left, in the end: a file is let go of later. */
static void await_dmabufs(int count)
{
	double end = now() + SECONDS;

	if (count < 0)
		printf("debugfs does not tell whether the buffer is freed\n");
	while (dmabufs() != count)
		CHECK(now() < end);
}

static void dmabuf_refused(int fd)
{
	errno = 0;
	CHECK(!ibv_reg_dmabuf_mr(s.id->pd, 0, DMABUF + 4096, 0, fd, OPEN) && errno == EINVAL);
	CHECK(!ibv_reg_dmabuf_mr(s.id->pd, DMABUF, 4096, 0, fd, OPEN) && errno == EINVAL);
	CHECK(!ibv_reg_dmabuf_mr(s.id->pd, -4096, 8192, 0, fd, OPEN) && errno == EINVAL);
	CHECK(!ibv_reg_dmabuf_mr(s.id->pd, 0, 0, 0, fd, OPEN) && errno == EINVAL);
	CHECK(!ibv_reg_dmabuf_mr(s.id->pd, 0, 4096, -4095, fd, OPEN) && errno == EINVAL);
	CHECK(!ibv_reg_dmabuf_mr(s.id->pd, 0, 4096, 0, s.id->verbs->cmd_fd, OPEN));
	CHECK(!ibv_reg_dmabuf_mr(s.id->pd, 0, 4096, 0, -1, OPEN) && errno == EBADF);
}

CASE("objects", dmabuf)
{
	const int before = dmabufs();
	int fd = make_dmabuf(DMABUF);

	CHECK(before < 0 || dmabufs() == before + 1);
	dmabuf_refused(fd);
	dmabuf_traffic(fd);
	await_dmabufs(before);
}

#define CGROUPS "/sys/fs/cgroup"
#define GROUP CGROUPS "/weft-dmabuf"
#define LARGE (64 << 20)
/* Less than the list of its pages takes, 16 bytes for each. */
#define TOO_LITTLE "160K"

static bool put_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* The process is not to be killed for it. */
static void has_no_memory_for_the_list(int fd)
{
	CHECK(put_text("/proc/self/oom_score_adj", "-1000"));
	CHECK(put_text(GROUP "/cgroup.procs", "0"));
	errno = 0;
	CHECK(!ibv_reg_dmabuf_mr(s.id->pd, 0, LARGE, 0, fd, OPEN) && errno == ENOMEM);
	_exit(0);
}

/* What has the buffer already lets go of it again. */
CASE("objects", dmabuf_without_memory)
{
	const int before = dmabufs();
	int fd = make_dmabuf(LARGE);
	/* From here on the buffer itself has all the memory that it needs. */
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(s.id->pd, 0, LARGE, 0, fd, OPEN);
	pid_t pid;

	CHECK(mr);
	if (access(CGROUPS "/cgroup.controllers", R_OK))
		mount("cgroup2", CGROUPS, "cgroup2", 0, NULL);
	if (!put_text(CGROUPS "/cgroup.subtree_control", "+memory"))
		SKIP("this kernel has no memory cgroups");
	CHECK(!mkdir(GROUP, 0755) && put_text(GROUP "/memory.max", TOO_LITTLE));
	pid = fork();
	if (!pid)
		has_no_memory_for_the_list(fd);
	ends_well(pid);
	CHECK(!rmdir(GROUP) && !ibv_dereg_mr(mr));
	close(fd);
	await_dmabufs(before);
}
