/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Figures that the kernel shows in /proc. */
#ifndef WEFT_E2E_PROC_H
#define WEFT_E2E_PROC_H

#include <stdio.h>

/* The figure of a file whose line is of that format; -1: there is none. */
static inline long proc_figure(const char *path, const char *format)
{
	FILE *file = fopen(path, "r");
	char line[256];
	long found = -1;

	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		sscanf(line, format, &found);
	fclose(file);
	return found;
}

/* KiB of this process that are pinned. */
static inline long proc_pinned(void)
{
	return proc_figure("/proc/self/status", "VmPin: %ld");
}

/* KiB of the kernel's in which queues are that have pages of their own; -1: it does not say. */
static inline long proc_vmalloc_used(void)
{
	return proc_figure("/proc/meminfo", "VmallocUsed: %ld");
}

/* KiB that the kernel has to give. */
static inline long proc_available(void)
{
	return proc_figure("/proc/meminfo", "MemAvailable: %ld");
}

#endif
