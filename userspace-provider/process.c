// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What happens to objects and to this library's memory when a process forks. */
#include "process.h"

#include <errno.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <time.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "context.h"
#include "inherit.h"
#include "lock.h"
#include "region.h"
#include "uapi/weft-abi.h"

/* In seconds: the parent of a daemon has nothing left to do but to end. */
#define OWN_TIMEOUT 1

uint32_t weft_generation = 1;

/* What is mapped and registered is known completely in the child, too. */
static void before_fork(void)
{
	pthread_mutex_lock(&weft_regions_lock);
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&weft_regions_lock);
}

static void after_fork_in_child(void)
{
	weft_generation++;
	weft_mrs_are_inherited();
	pthread_mutex_unlock(&weft_regions_lock);
}

void weft_process_init(void)
{
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* Returns 0 or an errno, EBUSY while the process that made it all lives. */
static int take_over(struct weft_context *ctx)
{
	struct ib_uverbs_ioctl_hdr request = {
		.length = sizeof(request),
		.object_id = UVERBS_OBJECT_DEVICE,
		.method_id = WEFT_METHOD_DEVICE_OWN,
		.driver_id = WEFT_DRIVER_ID,
	};

	if (!ctx->heritable)
		return EBUSY;
	if (ioctl(ctx->ibv.cmd_fd, RDMA_VERBS_IOCTL, &request))
		return errno;
	__atomic_store_n(&ctx->generation, weft_generation, __ATOMIC_RELAXED);
	return 0;
}

/* Made here, or inherited from one whose heir we are known to be. */
static bool is_own(const struct weft_context *ctx, uint32_t generation)
{
	return generation == weft_generation ||
	       __atomic_load_n(&ctx->generation, __ATOMIC_RELAXED) == weft_generation;
}

bool weft_owns(struct ibv_context *context, uint32_t generation)
{
	struct weft_context *ctx = weft_context(context);

	return is_own(ctx, generation) || !take_over(ctx);
}

int weft_must_own(struct ibv_context *context, uint32_t generation)
{
	const struct timespec moment = { .tv_nsec = WEFT_PAUSE_NS };
	struct weft_context *ctx = weft_context(context);
	struct timespec now, begin;
	int ret;

	if (is_own(ctx, generation))
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (;;) {
		ret = take_over(ctx);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (ret != EBUSY || !ctx->heritable || now.tv_sec > begin.tv_sec + OWN_TIMEOUT)
			break;
		nanosleep(&moment, NULL);
	}
	if (ret)
		errno = ret == EBUSY ? EPERM : ret;	/* ibv_rereg_mr() tells no other way */
	return ret ? errno : 0;
}
