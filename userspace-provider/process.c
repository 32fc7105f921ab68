// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What happens to this library's memory when a process forks. */
#include "process.h"

#include <pthread.h>

#include "region.h"

uint32_t weft_generation = 1;

/* The list of what is mapped is whole in the child, too. */
static void before_fork(void)
{
	weft_regions_lock();
}

static void after_fork_in_parent(void)
{
	weft_regions_unlock();
}

static void after_fork_in_child(void)
{
	weft_generation++;
	weft_regions_unlock();
}

void weft_process_init(void)
{
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
