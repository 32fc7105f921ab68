// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Activities that go on at once on one device, a thread each, for some time.
 *
 * Usage: races [-gxu] [-s SEED] DEVICE ADDRESS SECONDS ACTIVITY...
 *   -g  the device may go and come back meanwhile
 *   -x  whatever calls answer, and how this ends, says nothing
 *   -u  without privileges
 * Prints how many rounds each has made. Status 0: nothing failed that may not fail, no thread
 * hung, and each activity has made a round; one of them, if the device comes and goes.
 */
#define _GNU_SOURCE
#include "races.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 32

const char *device_name, *address;
unsigned int seconds, seed = 1;
bool may_go, anything_goes;
__thread bool may_lack;
struct home home;
char doing[128];

/* Survives the processes: how many rounds an activity has made. */
static volatile unsigned long *rounds;
static const struct activity *chosen[THREADS];
static int threads;
static double end;
static __thread int self;

static const struct activity *const tables[] = {
	look_activities,       object_activities,  queue_activities, call_activities,
	connection_activities, traffic_activities, page_activities,  mutation_activities,
	cut_activities,	       shortage_activities,
};

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

unsigned int step_timeout(void)
{
	const char *slow = getenv("E2E_SLOW");

	if (anything_goes)
		return 1;
	return STEP_TIMEOUT * (slow ? atoi(slow) : 1);
}

bool going(void)
{
	return now() < end;
}

void count_round(void)
{
	rounds[self]++;
}

unsigned int draw(void)
{
	static __thread unsigned int state;

	if (!state)
		state = seed * 7919 + self * 104729 + 1;
	return rand_r(&state);
}

void die(const char *file, int line, const char *what)
{
	printf("%s:%d: %s (%s), in round %lu of %s%s%s\n", file, line, what, strerror(errno),
	       rounds[self], chosen[self]->name, *doing ? ": " : "", doing);
	fflush(stdout);
	_exit(1);
}

/* What a call answers, or librdmacm, when the device has gone or is about to. */
static bool tells_of_removal(int err)
{
	static const int errors[] = { ENODEV,	    EIO,	  ENXIO,       EINVAL,
				      EBADF,	    ENOENT,	  ECONNREFUSED, ECONNRESET,
				      ENETUNREACH,  EHOSTUNREACH, ENOTCONN,    EADDRNOTAVAIL,
				      ECONNABORTED, ESHUTDOWN,	  EPIPE,       ETIMEDOUT };

	for (unsigned int i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (err == errors[i])
			return true;
	return false;
}

bool failed(const char *file, int line, const char *what)
{
	/* ENFILE: what the kernel says for want of memory for a socket. */
	if (anything_goes || (may_lack && (errno == ENOMEM || errno == EAGAIN || errno == ENFILE)))
		return false;
	if (!may_go || !tells_of_removal(errno))
		die(file, line, what);
	return false;
}

static const struct activity *find(const char *name)
{
	for (unsigned int i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct activity *a = tables[i]; a->name; a++)
			if (!strcmp(a->name, name))
				return a;
	fprintf(stderr, "races: no activity is called %s\n", name);
	exit(2);
}

static bool open_home(void)
{
	struct ibv_device_attr attr;
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct rdma_event_channel *events;

	CHECK(inet_pton(AF_INET, address, &at.sin_addr) == 1);
	events = rdma_create_event_channel();
	TRY(events);
	TRY(!rdma_create_id(events, &home.anchor, NULL, RDMA_PS_TCP));
	TRY(!rdma_bind_addr(home.anchor, (struct sockaddr *)&at));
	home.context = home.anchor->verbs;
	errno = ENODEV;
	TRY(home.context);
	TRY0(ibv_query_device(home.context, &attr));
	home.pd = ibv_alloc_pd(home.context);
	TRY(home.pd);
	home.channel = ibv_create_comp_channel(home.context);
	TRY(home.channel);
	for (int i = 0; i < 2; i++) {
		home.cq[i] = ibv_create_cq(home.context, 4096, NULL, home.channel, 0);
		TRY(home.cq[i]);
	}
	return true;
}

static bool close_home(void)
{
	for (int i = 0; i < 2; i++)
		TRY0(ibv_destroy_cq(home.cq[i]));
	TRY0(ibv_destroy_comp_channel(home.channel));
	TRY0(ibv_dealloc_pd(home.pd));
	TRY(!rdma_destroy_id(home.anchor));
	return true;
}

static void leave(void)
{
	_exit(anything_goes ? NEVER_BEGAN : 0);
}

/* One thread that finds the device gone ends all, in whatever they are. */
static void *act(void *arg)
{
	const struct activity *a;
	bool there = true;

	self = (intptr_t)arg;
	a = chosen[self];
	if (a->whole)
		there = a->whole();
	for (unsigned int nth = 0; !a->whole && there && (!nth || going()); nth++) {
		there = a->round(nth);
		if (there)
			count_round();
	}
	if (!there)
		leave();
	return NULL;
}

/* The process that does it; it has one life of the device. */
static void child(void)
{
	pthread_t thread[THREADS];

	CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
	if (!open_home())
		leave();
	for (intptr_t i = 0; i < threads; i++)
		CHECK(!pthread_create(&thread[i], NULL, act, (void *)i));
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	if (!close_home())
		_exit(0);
	exit(0);
}

/* It has ended in time, and as it should. */
static void watch(pid_t pid)
{
	double limit = end + step_timeout() + 10;
	int status;

	while (!waitpid(pid, &status, WNOHANG)) {
		if (now() > limit) {
			printf("hangs: the process has not ended %u s after its time\n",
			       step_timeout() + 10);
			kill(pid, SIGKILL);
			exit(1);
		}
		usleep(10000);
	}
	if (WIFSIGNALED(status)) {
		printf("killed by signal %d, %s\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
		exit(1);
	}
	if (WEXITSTATUS(status))
		exit(WEXITSTATUS(status));
}

static void parse(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "gxus:")) != -1) {
		switch (option) {
		case 'g':
			may_go = true;
			break;
		case 'x':
			anything_goes = true;
			break;
		case 'u':
			drop_privileges();
			break;
		case 's':
			seed = strtoul(optarg, NULL, 0);
			break;
		default:
			exit(2);
		}
	}
	if (argc - optind < 4 || argc - optind > THREADS) {
		fprintf(stderr,
			"usage: races [-gxu] [-s SEED] DEVICE ADDRESS SECONDS ACTIVITY...\n");
		exit(2);
	}
	device_name = argv[optind];
	address = argv[optind + 1];
	seconds = atoi(argv[optind + 2]);
	for (int i = optind + 3; i < argc; i++)
		chosen[threads++] = find(argv[i]);
}

static bool all_worked(void)
{
	int idle = 0;

	for (int i = 0; i < threads; i++) {
		printf("%s: %lu rounds\n", chosen[i]->name, rounds[i]);
		idle += !rounds[i];
	}
	return may_go ? idle < threads : !idle;
}

/* A device that comes and goes may not have stayed for a round: what comes last does stay. */
static bool goes_on(double last)
{
	if (going())
		return true;
	for (int i = 0; i < threads; i++)
		if (rounds[i])
			return false;
	end = now() + 1;
	return end < last;
}

int main(int argc, char **argv)
{
	unsigned int lives = 0;
	double last;
	pid_t pid;

	setvbuf(stdout, NULL, _IOLBF, 0);
	parse(argc, argv);
	rounds = mmap(NULL, THREADS * sizeof(*rounds), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(rounds != MAP_FAILED);
	end = now() + seconds;
	last = end + 30;
	if (anything_goes)
		child();
	do {
		lives++;
		pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			child();
		watch(pid);
	} while (may_go && goes_on(last) && !usleep(5000));
	if (may_go)
		printf("the device was opened %u times\n", lives);
	return all_worked() ? 0 : 1;
}
