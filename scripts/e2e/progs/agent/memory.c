// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Protection domains, regions between guards, windows.
 */
#include "agent.h"

#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define GUARD		8192U
#define GUARD_BYTE	0xa5

static struct {
	char name[32];
	struct ibv_pd *pd;
} pds[MAX_OBJECTS];

static struct {
	char name[32];
	struct ibv_mw *mw;
} windows[MAX_OBJECTS];

static struct region regions[MAX_OBJECTS];

struct ibv_pd *find_pd(const char *name)
{
	for (int i = 0; i < MAX_OBJECTS; i++)
		if (pds[i].pd && !strcmp(pds[i].name, name))
			return pds[i].pd;
	return NULL;
}

struct region *find_region(const char *name)
{
	for (int i = 0; i < MAX_OBJECTS; i++)
		if (regions[i].map && !strcmp(regions[i].name, name))
			return &regions[i];
	return NULL;
}

struct region *region_of(const struct args *a)
{
	return find_region(arg_str(a, "name", "mr")) ?: (err(ENOENT, "region"), NULL);
}

struct ibv_mw *find_window(const char *name)
{
	for (int i = 0; i < MAX_OBJECTS; i++)
		if (windows[i].mw && !strcmp(windows[i].name, name))
			return windows[i].mw;
	return NULL;
}

int parse_access(const char *letters)
{
	int access = 0;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'l':
			access |= IBV_ACCESS_LOCAL_WRITE;
			break;
		case 'w':
			access |= IBV_ACCESS_REMOTE_WRITE;
			break;
		case 'r':
			access |= IBV_ACCESS_REMOTE_READ;
			break;
		case 'a':
			access |= IBV_ACCESS_REMOTE_ATOMIC;
			break;
		case 'b':
			access |= IBV_ACCESS_MW_BIND;
			break;
		case 'o':
			access |= IBV_ACCESS_ON_DEMAND;
			break;
		case 'z':
			access |= IBV_ACCESS_ZERO_BASED;
			break;
		default:
			break;
		}
	}
	return access;
}

/* pd name= */
COMMAND(pd, a)
{
	for (int i = 0; i < MAX_OBJECTS; i++) {
		if (pds[i].pd)
			continue;
		pds[i].pd = ibv_alloc_pd(device);
		if (!pds[i].pd)
			break;
		snprintf(pds[i].name, sizeof(pds[i].name), "%s", arg_str(a, "name", "pd"));
		ok("pd");
		return;
	}
	err(errno, "pd");
}

/* droppd name= */
COMMAND(droppd, a)
{
	const char *name = arg_str(a, "name", "pd");
	int ret = ENOENT;

	for (int i = 0; i < MAX_OBJECTS; i++) {
		if (!pds[i].pd || strcmp(pds[i].name, name))
			continue;
		ret = ibv_dealloc_pd(pds[i].pd);
		if (!ret)
			pds[i].pd = NULL;
		break;
	}
	answer(ret, "droppd");
}

static int map_region(struct region *r, size_t len, size_t shift)
{
	r->map_len = 2 * GUARD + ((len + shift + 4095) & ~(size_t)4095);
	r->map = mmap(NULL, r->map_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r->map == MAP_FAILED) {
		r->map = NULL;
		return errno;
	}
	r->buf = r->map + GUARD + shift;
	r->len = len;
	memset(r->map, GUARD_BYTE, r->map_len);
	memset(r->buf, 0, len);
	return 0;
}

static void unmap_region(struct region *r)
{
	munmap(r->map, r->map_len);
	memset(r, 0, sizeof(*r));
}

static int register_region(struct region *r, const struct args *a)
{
	int access = parse_access(arg_str(a, "access", "l"));

	r->iova = arg_num(a, "iova", access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)r->buf);
	if (arg_str(a, "iova", NULL))
		r->mr = ibv_reg_mr_iova(r->pd, r->buf, r->len, r->iova, access);
	else
		r->mr = ibv_reg_mr(r->pd, r->buf, r->len, access);
	return r->mr ? 0 : errno;
}

/*
 * mr name= pd= len= access=letters of lwrabz [iova=] [shift=bytes into a page]
 * [prot=r: make the pages read-only first]
 */
COMMAND(mr, a)
{
	struct region *r = NULL;
	int ret;

	for (int i = 0; i < MAX_OBJECTS && !r; i++)
		if (!regions[i].map)
			r = &regions[i];
	if (!r)
		err(ENOSPC, "regions");
	r->pd = find_pd(arg_str(a, "pd", "pd"));
	ret = map_region(r, arg_num(a, "len", 4096), arg_num(a, "shift", 0));
	if (ret)
		err(ret, "mmap");
	if (!strcmp(arg_str(a, "prot", ""), "r"))
		mprotect(r->map, r->map_len, PROT_READ);
	ret = register_region(r, a);
	if (ret) {
		unmap_region(r);
		err(ret, "ibv_reg_mr");
	}
	snprintf(r->name, sizeof(r->name), "%s", arg_str(a, "name", "mr"));
	ok("addr=%#lx iova=%#lx lkey=%u rkey=%u", (unsigned long)r->buf, (unsigned long)r->iova,
	   r->mr->lkey, r->mr->rkey);
}

/* rereg name= access= */
COMMAND(rereg, a)
{
	struct region *r = region_of(a);
	int ret;

	ret = ibv_rereg_mr(r->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   parse_access(arg_str(a, "access", "l")));
	if (ret)
		err(errno, "rereg");
	ok("lkey=%u rkey=%u", r->mr->lkey, r->mr->rkey);
}

/* dereg name= [keep=1: the memory stays, for hash and guard] */
COMMAND(dereg, a)
{
	struct region *r = region_of(a);
	int ret = 0;

	if (r->mr)
		ret = ibv_dereg_mr(r->mr);
	if (ret)
		err(ret, "dereg");
	r->mr = NULL;
	if (!arg_num(a, "keep", 0))
		unmap_region(r);
	ok("dereg");
}

/* mw name= pd= type=1|2 */
COMMAND(mw, a)
{
	enum ibv_mw_type type = arg_num(a, "type", 2) == 1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;

	for (int i = 0; i < MAX_OBJECTS; i++) {
		if (windows[i].mw)
			continue;
		windows[i].mw = ibv_alloc_mw(find_pd(arg_str(a, "pd", "pd")), type);
		if (!windows[i].mw)
			break;
		snprintf(windows[i].name, sizeof(windows[i].name), "%s", arg_str(a, "name", "mw"));
		ok("rkey=%u", windows[i].mw->rkey);
		return;
	}
	err(errno, "mw");
}

/* dealloc name=: of a window */
COMMAND(dealloc, a)
{
	const char *name = arg_str(a, "name", "mw");

	for (int i = 0; i < MAX_OBJECTS; i++) {
		int ret;

		if (!windows[i].mw || strcmp(windows[i].name, name))
			continue;
		ret = ibv_dealloc_mw(windows[i].mw);
		if (ret)
			err(ret, "dealloc");
		windows[i].mw = NULL;
		ok("dealloc");
		return;
	}
	err(ENOENT, "window");
}

static uint8_t *part(const struct args *a, struct region **r, size_t *len)
{
	size_t off = arg_num(a, "off", 0);

	*r = region_of(a);
	if (off > (*r)->len)
		err(ENOENT, "region");
	*len = arg_num(a, "len", (*r)->len - off);
	if (*len > (*r)->len - off)
		err(ERANGE, "region");
	return (*r)->buf + off;
}

/* fill name= [off=] [len=] byte= */
COMMAND(fill, a)
{
	struct region *r;
	size_t len;
	uint8_t *at = part(a, &r, &len);

	memset(at, (int)arg_num(a, "byte", 0), len);
	ok("fill");
}

/* advise name= [off=] [len=]: of memory paged on demand, has the pages ready to be written */
COMMAND(advise, a)
{
	struct region *r;
	size_t len;
	uint8_t *at = part(a, &r, &len);
	struct ibv_sge sge = { .addr = (uintptr_t)at, .length = len, .lkey = r->mr->lkey };

	answer(ibv_advise_mr(r->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH,
			     &sge, 1),
	       "advise");
}

/* discard name= [off=] [len=]: whole pages, which are empty afterwards */
COMMAND(discard, a)
{
	struct region *r;
	size_t len;
	uint8_t *at = part(a, &r, &len);

	answer(madvise(at, len, MADV_DONTNEED) ? errno : 0, "discard");
}

/* poke name= off= hex= */
COMMAND(poke, a)
{
	const char *hex = arg_str(a, "hex", "");
	struct region *r;
	size_t len;
	uint8_t *at = part(a, &r, &len);

	if (from_hex(hex, at, len) < 0)
		err(EINVAL, "hex");
	ok("poke");
}

/* peek name= off= len= */
COMMAND(peek, a)
{
	struct region *r;
	size_t len;
	const uint8_t *at = part(a, &r, &len);

	printf("ok hex=");
	print_hex(at, len);
	putchar('\n');
}

static uint32_t crc32(const uint8_t *data, size_t len)
{
	static uint32_t table[256];
	uint32_t crc = ~0U;

	for (uint32_t n = 0; n < 256; n++) {
		table[n] = n;
		for (int bit = 0; bit < 8; bit++)
			table[n] = table[n] >> 1 ^ (table[n] & 1 ? 0xedb88320U : 0);
	}
	while (len--)
		crc = crc >> 8 ^ table[(crc ^ *data++) & 0xff];
	return ~crc;
}

/* hash name= [off=] [len=]: the CRC-32 of zlib */
COMMAND(hash, a)
{
	struct region *r;
	size_t len;
	const uint8_t *at = part(a, &r, &len);

	ok("crc32=%u", crc32(at, len));
}

/* guard name=: is everything around the buffer as it was? */
COMMAND(guard, a)
{
	struct region *r = region_of(a);

	for (uint8_t *at = r->map; at < r->map + r->map_len; at++) {
		if (at == r->buf)
			at += r->len;
		if (at < r->map + r->map_len && *at != GUARD_BYTE)
			err(EFAULT, "guard broken at %ld", (long)(at - r->buf));
	}
	ok("intact");
}
