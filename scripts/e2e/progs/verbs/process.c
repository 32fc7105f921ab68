// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Where this process runs, another one like it, and memory that it has. */
#define _GNU_SOURCE
#include "../proc.h"
#include "verbs.h"

#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		printf("there is one CPU only\n");
}

pid_t child(void (*run)(void))
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid)
		return pid;
	alarm(30);
	run();
	exit(0);
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

	CHECK((pid = waitpid(pid, &status, 0)) > 0);
	if (WIFSIGNALED(status))
		printf("process %d: %s\n", (int)pid, strsignal(WTERMSIG(status)));
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
}

long pinned(void)
{
	long kib = proc_pinned();

	CHECK(kib >= 0);
	return kib;
}

/* The first half is for what the kernel keeps for the next time. */
void leaves_no_pages(void (*round)(void))
{
	const int rounds = 2048;
	const long page = sysconf(_SC_PAGESIZE) / 1024;
	long before = 0;
	double end;

	for (int i = 0; i < 2 * rounds; i++) {
		if (i == rounds)
			before = proc_available();
		round();
	}
	end = now() + SECONDS;
	while (before - proc_available() > rounds * page / 2)
		CHECK(now() < end && !usleep(10000));
}
