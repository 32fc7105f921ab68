// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The agent's loop: reads commands, handles events and completions.
 *
 * A command is a word and key=value pairs; the answer is one line "ok ..." or
 * "err NUMBER ...". Lines "event", "wc", "cqevent" and "async" come when they do.
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ibv_context *device;
struct rdma_event_channel *cm_channel;
static jmp_buf next_command;

/* --- answers ---------------------------------------------------------------- */

static void say(const char *prefix, const char *format, va_list list)
{
	printf("%s", prefix);
	vprintf(format, list);
	putchar('\n');
}

void ok(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	say("ok ", format, list);
	va_end(list);
}

void err(int number, const char *format, ...)
{
	char prefix[64];
	va_list list;

	snprintf(prefix, sizeof(prefix), "err %d ", number);
	va_start(list, format);
	say(prefix, format, list);
	va_end(list);
	longjmp(next_command, 1);
}

/* The libraries return a number, or -1 with one in errno. */
void answer(int number, const char *what)
{
	if (number)
		err(number < 0 ? errno : number, "%s", what);
	ok("%s", what);
}

void line(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	say("", format, list);
	va_end(list);
}

int from_hex(const char *hex, uint8_t *out, size_t space)
{
	size_t len = strlen(hex) / 2, i;
	unsigned int byte;

	if (len > space)
		return -1;
	for (i = 0; i < len; i++) {
		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			return -1;
		out[i] = byte;
	}
	return len;
}

void print_hex(const void *data, size_t len)
{
	const uint8_t *byte = data;

	while (len--)
		printf("%02x", *byte++);
}

/* --- commands --------------------------------------------------------------- */

const char *arg_str(const struct args *a, const char *key, const char *missing)
{
	for (int i = 0; i < a->count; i++)
		if (!strcmp(a->key[i], key))
			return a->value[i];
	return missing;
}

uint64_t arg_num(const struct args *a, const char *key, uint64_t missing)
{
	const char *text = arg_str(a, key, NULL);

	return text ? strtoull(text, NULL, 0) : missing;
}

/* dev name=: take the device of that name; tells what it can do. */
COMMAND(dev, a)
{
	struct ibv_context **list = rdma_get_devices(NULL);
	const char *name = arg_str(a, "name", "");
	const struct ibv_device_attr *attr;
	struct ibv_device_attr_ex ex;

	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]->device), name))
			device = list[i];
	if (!device)
		err(ENODEV, "no device %s", name);
	if (ibv_query_device_ex(device, NULL, &ex)) /* not what the core remembers */
		err(errno, "query");
	attr = &ex.orig_attr;
	fcntl(device->async_fd, F_SETFL, O_NONBLOCK);
	ok("rd_atom=%d init_rd_atom=%d atomic_cap=%d flags=%#x sge=%d qp_wr=%d",
	   attr->max_qp_rd_atom, attr->max_qp_init_rd_atom, attr->atomic_cap,
	   attr->device_cap_flags, attr->max_sge, attr->max_qp_wr);
}

static bool async_event(void)
{
	struct ibv_async_event event;
	struct conn *c = NULL;

	if (!device || ibv_get_async_event(device, &event))
		return false;
	switch (event.event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		c = conn_of_qp(event.element.qp->qp_num);
		break;
	default:
		break;
	}
	line("async type=%d k=%d name=%s", event.event_type, c ? c->k : 0,
	     ibv_event_type_str(event.event_type));
	ibv_ack_async_event(&event);
	return true;
}

/* sync: everything there is to report by now is reported before the answer. */
COMMAND(sync, a)
{
	(void)a;
	poll_queues();
	conn_event();
	poll_queues();
	while (async_event())
		;
	ok("sync");
}

extern const struct command *const __start_commands[], *const __stop_commands[];

static void run_line(char *text)
{
	struct args a = { 0 };
	char *save, *word, *verb = strtok_r(text, " ", &save);

	if (!verb)
		return;
	while ((word = strtok_r(NULL, " ", &save)) && a.count < MAX_ARGS) {
		char *sign = strchr(word, '=');

		if (!sign)
			continue;
		*sign = '\0';
		a.key[a.count] = word;
		a.value[a.count++] = sign + 1;
	}
	if (setjmp(next_command))
		return;
	for (const struct command *const *c = __start_commands; c < __stop_commands; c++) {
		if (!strcmp((*c)->name, verb)) {
			(*c)->run(&a);
			return;
		}
	}
	err(ENOSYS, "%s", verb);
}

/* Returns false at the end of the input. */
static bool read_commands(void)
{
	static char buf[1 << 18];
	static size_t fill;
	ssize_t got = read(0, buf + fill, sizeof(buf) - fill - 1);
	char *start = buf, *end;

	if (got <= 0)
		return got < 0 && errno == EINTR;
	fill += got;
	buf[fill] = '\0';
	while ((end = strchr(start, '\n'))) {
		*end = '\0';
		run_line(start);
		fflush(stdout);
		start = end + 1;
	}
	fill -= start - buf;
	memmove(buf, start, fill);
	return true;
}

/* --- events ----------------------------------------------------------------- */

static int gather(struct pollfd *fds, struct queue **owners)
{
	int n = 0;

	fds[n++] = (struct pollfd){ .fd = 0, .events = POLLIN };
	fds[n++] = (struct pollfd){ .fd = cm_channel->fd, .events = POLLIN };
	fds[n++] = (struct pollfd){ .fd = device ? device->async_fd : -1, .events = POLLIN };
	for (int i = 0; i < MAX_OBJECTS; i++) {
		if (!queues[i].channel)
			continue;
		owners[n] = &queues[i];
		fds[n++] = (struct pollfd){ .fd = queues[i].channel->fd, .events = POLLIN };
	}
	return n;
}

/* Completions come without an event, so they are looked for: less often when none has come lately. */
static int pause_after(int idle)
{
	return idle < 200 ? 1 : 5;
}

int main(void)
{
	struct queue *owners[MAX_OBJECTS + 3];
	struct pollfd fds[MAX_OBJECTS + 3];
	int idle = 0;

	cm_channel = rdma_create_event_channel();
	if (!cm_channel) {
		line("err %d no rdma_cm", errno);
		return 1;
	}
	fcntl(cm_channel->fd, F_SETFL, O_NONBLOCK);
	for (;;) {
		int n = gather(fds, owners);

		idle = poll(fds, n, pause_after(idle)) > 0 ? 0 : idle + 1;
		if (fds[1].revents)
			conn_event();
		if (fds[2].revents)
			async_event();
		for (int i = 3; i < n; i++)
			if (fds[i].revents)
				queue_event(owners[i]);
		if (poll_queues())
			idle = 0;
		fflush(stdout);
		if (fds[0].revents && !read_commands())
			return 0;
	}
}
