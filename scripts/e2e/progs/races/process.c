// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Processes that may crash or be killed: what counts is that they are gone then, and what others see. */
#define _GNU_SOURCE
#include "races.h"

#include <grp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROMPT 2 /* seconds that a process may take to end without being asked why */
#define UNPRIVILEGED 65534
#define PINNED (64UL << 20)

/*
 * Where a process that does not end is stuck; needs root. Not for one that is about to end:
 * User-Mode Linux walks its stack without holding it, and KASAN reports that.
 */
static void show_stack(pid_t pid)
{
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stack", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		fputs(line, stdout);
	if (f)
		fclose(f);
}

static pid_t start(const char *activity, unsigned int with_seed, unsigned int for_seconds,
		   const char *options)
{
	char number[16], time[16];
	char *args[] = { "races", (char *)options,     "-s",
			 number,  (char *)device_name, (char *)address,
			 time,	  (char *)activity,    NULL };
	posix_spawn_file_actions_t quiet;
	pid_t pid;

	snprintf(number, sizeof(number), "%u", with_seed);
	snprintf(time, sizeof(time), "%u", for_seconds);
	CHECK(!posix_spawn_file_actions_init(&quiet));
	CHECK(!posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", 1, 0));
	CHECK(!posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", 1, 0));
	CHECK(!posix_spawn(&pid, "/proc/self/exe", &quiet, NULL, args, environ));
	posix_spawn_file_actions_destroy(&quiet);
	return pid;
}

static bool ends_within(pid_t pid, double limit, int *status)
{
	double until = now() + limit;

	while (!waitpid(pid, status, WNOHANG)) {
		if (now() > until)
			return false;
		usleep(1000);
	}
	return true;
}

bool live_and_die(const char *activity, const char *options, unsigned int with_seed,
		  double lifetime)
{
	pid_t pid = start(activity, with_seed, lifetime + 1, options);
	double began = now();
	int status;

	if (ends_within(pid, lifetime, &status))
		return !WIFEXITED(status) || WEXITSTATUS(status) != NEVER_BEGAN;
	CHECK(!kill(pid, SIGKILL));
	if (ends_within(pid, PROMPT, &status))
		return true;
	if (ends_within(pid, step_timeout(), &status)) {
		printf("%s with seed %u, killed after %.1f s, took %.1f s in all\n", activity,
		       with_seed, lifetime, now() - began);
		return true;
	}
	printf("%s with seed %u, killed after %.1f s, does not end:\n", activity, with_seed,
	       lifetime);
	show_stack(pid);
	die(__FILE__, __LINE__, "a process that was killed ends");
}

bool live_often(const char *activity, const char *options, double lifetime)
{
	static __thread unsigned int lives, failures;

	if (live_and_die(activity, options, draw(), lifetime))
		lives++;
	else
		failures++;
	errno = 0;
	CHECK(failures <= lives + 3);
	return true;
}

void drop_privileges(void)
{
	struct rlimit pinned = { PINNED, PINNED };

	CHECK(!setrlimit(RLIMIT_MEMLOCK, &pinned));
	CHECK(!setgroups(0, NULL));
	CHECK(!setresgid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED) &&
	      !setresuid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED));
	/* It looks at its own mappings. */
	CHECK(!prctl(PR_SET_DUMPABLE, 1));
}
