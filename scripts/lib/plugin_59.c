// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The plugin under a library of private ABI 59, of which there are two layouts: with EARLIER it
 * is the one that no release of Debian has. The library's part is played, as far as the plugin
 * and it tell each other where things are.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "context.h"
#include "mr.h"
#include "verbs.h"

#ifdef EARLIER
#define LIBRARY_POINTERS WEFT_PABI_EARLIER_59_POINTERS
#define LACKING 2
#else
#define LIBRARY_POINTERS WEFT_PABI_POINTERS
#define LACKING 0
void ibv_query_port_speed(void);
void ibv_query_port_speed(void)
{
}
#endif

static const struct verbs_device_ops *driver;
static char *memory;
static int failures;

static void check(bool good, const char *what)
{
	printf("%sok - %s\n", good ? "" : "not ", what);
	failures += !good;
}

/* The public context is the end of the library's part. */
static void check_context(const struct verbs_context *context, const char *what)
{
	const char *public = (const char *)context + LIBRARY_POINTERS * sizeof(void *);

	check(public == memory + offsetof(struct weft_context, ibv), what);
}

void verbs_register_driver_59(const struct verbs_device_ops *ops)
{
	driver = ops;
}

void *_verbs_init_and_alloc_context(struct ibv_device *device, int cmd_fd, size_t size,
				    struct verbs_context *at, uint32_t driver_id)
{
	(void)device;
	(void)cmd_fd;
	(void)driver_id;
	memory = calloc(1, size);
	if (!memory)
		exit(1);
	check_context((void *)(memory + (uintptr_t)at), "the library's part of a context");
	return memory;
}

int ibv_cmd_get_context(struct verbs_context *context, struct pabi_get_context *cmd,
			size_t cmd_size, struct ibv_fd_arr *fds,
			struct ib_uverbs_get_context_resp *resp, size_t resp_size)
{
	(void)cmd;
	(void)cmd_size;
	(void)fds;
	(void)resp;
	(void)resp_size;
	check_context(context, "the context of a command");
	return 0;
}

/* With one argument more than earlier libraries have. */
int ibv_cmd_create_cq_ex(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr,
			 struct verbs_create_cq_prov_attr *more, struct verbs_cq *cq,
			 struct pabi_create_cq_ex *cmd, size_t cmd_size,
			 struct ib_uverbs_ex_create_cq_resp *resp, size_t resp_size,
			 uint32_t cmd_flags)
{
	(void)attr;
	(void)resp;
	check(context == &((struct weft_context *)memory)->ibv && !more && cq &&
		      cmd_size == sizeof(*cmd) && resp_size > sizeof(*resp) && !cmd_flags,
	      "the arguments that make a CQ");
	return ENOSPC;
}

static void check_cq(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 1 };

	errno = 0;
	check(!weft_create_cq_ex(&((struct weft_context *)memory)->ibv, &attr) && errno == ENOSPC,
	      "a CQ that is refused is none");
}

#define SLOT(name) (offsetof(struct verbs_context_ops, name) / sizeof(pabi_slot))

void verbs_set_ops(struct verbs_context *context, const struct verbs_context_ops *ops)
{
	check_context(context, "the context of the operations");
	check(((const pabi_slot *)ops)[SLOT(rereg_mr) - LACKING] == (pabi_slot)weft_rereg_mr,
	      "operations of the plugin are in their slots");
}

/* All but those that the earlier library lacks, in their order. */
static void check_slots(void)
{
	static union {
		struct verbs_context_ops ops;
		pabi_slot slots[WEFT_PABI_SLOTS];
	} all;
	const pabi_slot *slots;
	size_t i, n = 0;
	bool good = true;

	for (i = 0; i < WEFT_PABI_SLOTS; i++)
		all.slots[i] = (pabi_slot)(i + 1);
	slots = (const pabi_slot *)pabi_shape(&all.ops);
	for (i = 0; i < WEFT_PABI_SLOTS; i++) {
		if (!LACKING || (i != SLOT(dm_export_dmabuf_fd) && i != SLOT(query_port_speed)))
			good &= slots[n++] == all.slots[i];
	}
	check(good && n == WEFT_PABI_SLOTS - LACKING, "each operation has its slot");
}

int main(void)
{
	struct ibv_device device = {};

	check(driver && driver->alloc_context, "the plugin registers");
	if (!failures)
		check_context(driver->alloc_context(&device, -1, NULL), "the context it returns");
	if (!failures)
		check_cq();
	check_slots();
	free(memory);
	return failures;
}
