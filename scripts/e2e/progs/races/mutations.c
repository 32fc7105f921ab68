// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * System calls on the device's file, by an unprivileged process: each that libibverbs and
 * the provider make is made several times before, mutated: other objects, methods,
 * attributes, lengths, contents, offsets. Where pointers were, there is memory of our own.
 */
#define _GNU_SOURCE
#include "races.h"

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../../../drivers/weft/uapi/weft-abi.h"

#define ATTRS 32
#define SCRATCH 65536 /* the length of an attribute has 16 bits */
#define KEPT 64
#define AGAIN 6 /* mutated calls before each good one, at most */

struct call {
	struct ib_uverbs_ioctl_hdr header;
	struct ib_uverbs_attr attr[ATTRS];
};

static bool mutating;
static struct call kept[KEPT];
static unsigned int calls_kept;
static unsigned char scratch[ATTRS][SCRATCH];
static unsigned int dice;

static unsigned int roll(unsigned int sides)
{
	return rand_r(&dice) % sides;
}

static uint32_t some_number(uint32_t before)
{
	static const uint32_t limits[] = { 0,	  1,	  2,	      3,	  7,
					   8,	  63,	  4095,	      65535,	  1 << 20,
					   1 << 24, 1U << 31, 0x7fffffff, 0xffffffff };

	switch (roll(5)) {
	case 0:
		return limits[roll(sizeof(limits) / sizeof(limits[0]))];
	case 1:
		return before + roll(9) - 4;
	case 2:
		return before ^ 1U << roll(32);
	case 3:
		return roll(64);
	}
	return rand_r(&dice) ^ (uint32_t)rand_r(&dice) << 16;
}

static void mutate_bytes(unsigned char *bytes, unsigned int length)
{
	unsigned int times = roll(4);

	while (length >= 4 && times--) {
		unsigned int at = roll(length / 4) * 4;
		uint32_t word;

		memcpy(&word, bytes + at, 4);
		word = some_number(word);
		memcpy(bytes + at, &word, 4);
	}
	if (length && !roll(4))
		bytes[roll(length)] = rand_r(&dice);
}

/* A pointer that leads nowhere, now and then. */
static uint64_t some_pointer(uint64_t good)
{
	static const uint64_t bad[] = { 0, 1, 4096, 0x7ffffffff000, 0xffffffff80000000, ~0ULL };

	return roll(30) ? good : bad[roll(6)];
}

/* What is behind a pointer of the library's is copied: that is an input, or does not matter. */
static void own_memory(struct ib_uverbs_attr *a, unsigned char *memory, bool fresh)
{
	if (fresh && a->len <= sizeof(a->data) && !roll(2))
		return;
	if (fresh && a->data > SCRATCH)
		memcpy(memory, (void *)(uintptr_t)a->data, a->len);
	mutate_bytes(memory, a->len);
	a->data = some_pointer((uintptr_t)memory);
}

static bool is_pointer(const struct ib_uverbs_attr *a)
{
	return a->len > sizeof(a->data) || a->data > 1ULL << 32;
}

static void mutate_attr(struct ib_uverbs_attr *a)
{
	switch (roll(6)) {
	case 0:
		a->len = some_number(a->len);
		break;
	case 1:
		a->attr_id = roll(2) ? roll(12) : 0x1000 + roll(4);
		break;
	case 2:
		a->flags = roll(2) ? roll(4) : rand_r(&dice);
		break;
	case 3:
		if (!is_pointer(a))
			a->data = some_number(a->data);
		break;
	case 4:
		a->attr_data.reserved = some_number(0);
		break;
	}
}

static void mutate_header(struct call *c)
{
	struct ib_uverbs_ioctl_hdr *h = &c->header;

	switch (roll(7)) {
	case 0:
		h->object_id = roll(4) ? roll(20) : 0x1000 + roll(3);
		break;
	case 1:
		h->method_id = roll(4) ? roll(10) : 0x1000 + roll(4);
		break;
	case 2:
		h->num_attrs = some_number(h->num_attrs);
		break;
	case 3:
		h->length = some_number(h->length);
		break;
	case 4:
		h->driver_id = some_number(h->driver_id);
		break;
	case 5:
		if (h->num_attrs && h->num_attrs < ATTRS) {
			c->attr[h->num_attrs] = c->attr[roll(h->num_attrs)];
			h->num_attrs++;
			h->length += sizeof(c->attr[0]);
		}
		break;
	case 6:
		if (h->num_attrs) {
			c->attr[roll(h->num_attrs)] = c->attr[h->num_attrs - 1];
			h->num_attrs--;
			h->length -= sizeof(c->attr[0]);
		}
		break;
	}
}

static void send_mutant(int fd, const struct call *model, bool fresh)
{
	struct call c = *model;
	unsigned int attrs = c.header.num_attrs;

	for (unsigned int i = 0; i < attrs; i++)
		if (is_pointer(&c.attr[i]))
			own_memory(&c.attr[i], scratch[i], fresh);
	for (unsigned int times = roll(4); times; times--) {
		if (attrs && roll(3))
			mutate_attr(&c.attr[roll(attrs)]);
		else if (!roll(2))
			mutate_header(&c);
	}
	syscall(SYS_ioctl, fd, RDMA_VERBS_IOCTL, &c);
}

/* A call of the library's, and one of those that it made before. */
static void mutate_ioctl(int fd, const struct ib_uverbs_ioctl_hdr *h)
{
	struct call *model = &kept[calls_kept++ % KEPT];

	if (h->length > sizeof(*model) || h->num_attrs > ATTRS)
		return;
	*model = (struct call){};
	memcpy(model, h, h->length);
	for (unsigned int times = roll(AGAIN); times; times--) {
		send_mutant(fd, model, true);
		send_mutant(fd, &kept[roll(calls_kept < KEPT ? calls_kept : KEPT)], false);
	}
}

/* The older way in. The address of the answer stands first; the library's own stays intact. */
static void mutate_write(int fd, const void *buf, size_t length)
{
	static unsigned char answer[SCRATCH];
	uint64_t to = (uintptr_t)answer;
	struct ib_uverbs_cmd_hdr *h;
	unsigned char copy[4096];

	if (length < sizeof(*h) || length > sizeof(copy) / 2)
		return;
	for (unsigned int times = roll(AGAIN); times; times--) {
		memcpy(copy, buf, length);
		h = (void *)copy;
		if (length >= sizeof(*h) + sizeof(to) && !(h->command & 0x80000000))
			memcpy(copy + sizeof(*h), &to, sizeof(to));
		if (length > sizeof(*h) + sizeof(to))
			mutate_bytes(copy + sizeof(*h) + sizeof(to),
				     length - sizeof(*h) - sizeof(to));
		if (!roll(4))
			h->command = roll(2) ? roll(60) : h->command ^ 1U << roll(32);
		if (!roll(4))
			h->in_words = some_number(h->in_words);
		if (!roll(4))
			h->out_words = some_number(h->out_words);
		syscall(SYS_write, fd, copy, roll(4) ? length : roll(sizeof(copy)));
	}
}

/* What it gives is looked at from end to end. */
static void mutate_mmap(int fd, size_t length, int prot, off_t offset)
{
	for (unsigned int times = roll(AGAIN); times; times--) {
		size_t len = roll(2) ? length : (size_t)(1 + roll(64)) * 4096;
		off_t at = offset + (roll(2) ? 0 : (roll(9) - 4) * 4096L);
		int how = roll(3) ? prot : (int)roll(8);
		volatile unsigned char *p;

		if (!roll(8))
			at = (off_t)some_number(offset / 4096) * 4096;
		p = (void *)syscall(SYS_mmap, NULL, len, how, roll(4) ? MAP_SHARED : MAP_PRIVATE,
				    fd, at);
		if (p == MAP_FAILED)
			continue;
		if (how & PROT_READ)
			for (size_t i = 0; i < len; i += 4096)
				(void)p[i];
		munmap((void *)p, len);
	}
}

static bool of_device(int fd)
{
	return mutating && fd == home.context->cmd_fd;
}

/* The library calls these instead of those of libc, since the program has them. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (of_device(fd) && request == RDMA_VERBS_IOCTL)
		mutate_ioctl(fd, arg);
	return syscall(SYS_ioctl, fd, request, arg);
}

ssize_t write(int fd, const void *buf, size_t length)
{
	if (of_device(fd))
		mutate_write(fd, buf, length);
	return syscall(SYS_write, fd, buf, length);
}

void *mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
	if (of_device(fd))
		mutate_mmap(fd, length, prot, offset);
	return (void *)syscall(SYS_mmap, addr, length, prot, flags, fd, offset);
}

void *mmap64(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
	return mmap(addr, length, prot, flags, fd, offset);
}

/* The life of a process that makes such calls: those of objects and connections, in any order. */
static bool calls_anything(void)
{
	unsigned int kinds = 0;

	dice = seed;
	while (object_activities[kinds].name)
		kinds++;
	mutating = true;
	for (unsigned int nth = roll(1000); going(); nth++) {
		object_activities[roll(kinds)].round(nth);
		if (!roll(4))
			connection_activities[0].round(nth);
	}
	_exit(0);
}

static bool calls(unsigned int nth)
{
	return live_often("calls_anything", "-xu", nth % 4 ? 2 : 0.5);
}

const struct activity mutation_activities[] = {
	{ .name = "calls", .round = calls },
	{ .name = "calls_anything", .whole = calls_anything },
	{},
};
