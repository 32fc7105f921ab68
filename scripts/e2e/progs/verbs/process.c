// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* This process: what it shares with the device, what it calls; another one like it. */
#define _GNU_SOURCE
#include "verbs.h"

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../../drivers/weft/uapi/weft-abi.h"

#define BLOCKS 32 /* of the first page of a region */
#define POLLS 1000

int find_regions(volatile uint32_t **regions, int room)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	CHECK(f);
	while (n < room && fgets(line, sizeof(line), f))
		if (strstr(line, "uverbs"))
			regions[n++] = (void *)strtoul(line, NULL, 16);
	fclose(f);
	return n;
}

pid_t start_case(const char *name, int port)
{
	char *args[] = { "verbs", (char *)address, (char *)name, NULL };
	char text[16];
	pid_t pid;

	snprintf(text, sizeof(text), "%d", port);
	setenv("VERBS_PORT", text, 1);
	CHECK(!posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, environ));
	unsetenv("VERBS_PORT"); /* we listen where we did */
	return pid;
}

void ends_well(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
}

/* What counts when we poll in vain. */
struct weft_ctx_ctl *control_block(void)
{
	uint32_t before[64][BLOCKS];
	struct weft_ctx_ctl *found = NULL;
	volatile uint32_t *at[64];
	int n = find_regions(at, 64);

	for (int i = 0; i < n; i++)
		for (int k = 0; k < BLOCKS; k++)
			before[i][k] = at[i][k * (WEFT_CTL_BYTES / 4)];
	for (int i = 0; i < POLLS; i++)
		CHECK(!ibv_poll_cq(c.id->recv_cq, 1, &(struct ibv_wc){}));
	for (int i = 0; i < n; i++)
		for (int k = 0; k < BLOCKS; k++)
			if (at[i][k * (WEFT_CTL_BYTES / 4)] - before[i][k] == POLLS)
				found = (void *)&at[i][k * (WEFT_CTL_BYTES / 4)];
	CHECK(found);
	return found;
}

void help_unasked(void)
{
	struct ib_uverbs_ioctl_hdr request = {
		.length = sizeof(request),
		.object_id = UVERBS_OBJECT_DEVICE,
		.method_id = WEFT_METHOD_HELP,
		.driver_id = WEFT_DRIVER_ID,
	};

	CHECK(!ioctl(c.id->verbs->cmd_fd, RDMA_VERBS_IOCTL, &request));
}
