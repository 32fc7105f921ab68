// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Connections that share, wait, break, end, and never come to be. */
#include "fabric.h"

#include <poll.h>

static void receive(struct end *e, size_t size)
{
	OK(fi_recv(e->ep, e->buf, size, e->desc, 0, NULL));
}

/* What both clients send comes out at the queue of the endpoint it was sent to. */
static void check_shared(struct end *one, struct end *two, struct end *other, int n)
{
	for (int i = 0; i < 2 * n; i++)
		OK(fi_recv(s.srx, s.buf + (size_t)i * 100, 100, s.desc, 0,
			   s.buf + (size_t)i * 100));
	fill(one->buf, 100, 1);
	fill(two->buf, 100, 2);
	for (int i = 0; i < n; i++) {
		OK(fi_send(one->ep, one->buf, 100, one->desc, 0, NULL));
		OK(fi_send(two->ep, two->buf, 100, two->desc, 0, NULL));
	}
	for (int i = 0; i < n; i++) {
		done(one->tx);
		done(two->tx);
		CHECK(holds(done(s.rx).op_context, 100, 1));
		CHECK(holds(done(other->rx).op_context, 100, 2));
	}
}

/* Two endpoints take their receives from one queue. */
CASE(shared_receives)
{
	struct end more = { 0 }, other = { 0 };
	struct fi_info *request;

	wish.shared = true;
	listen_there();
	wish.shared = false;
	call_there(&c, "first");
	request = asked_by("first");
	OK(fi_domain(fabric, request, &s.domain, NULL));
	OK(fi_srx_context(s.domain, request->rx_attr, &s.srx, NULL));
	answer(&s, request, "");
	connected(&c, "");
	connected(&s, "");
	more.domain = c.domain;
	call_there(&more, "second");
	other.domain = s.domain;
	other.srx = s.srx;
	answer(&other, asked_by("second"), "");
	connected(&more, "");
	connected(&other, "");
	check_shared(&c, &more, &other, 50);
	end_over(&more);
	end_over(&other);
}

static int descriptor(struct fid *fid)
{
	int fd = -1;

	OK(fi_control(fid, FI_GETWAIT, &fd));
	CHECK(fd >= 0);
	return fd;
}

/* sleeps: nothing wakes a waiter on the descriptor, for so many milliseconds. */
static bool sleeps(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 0;
}

/* A descriptor to poll, and the sleep of libfabric's own. */
CASE(wait_for_completions)
{
	struct fi_cq_data_entry entry;
	struct fid *fids[1];
	double began;
	int fd;

	wish.wait = FI_WAIT_FD;
	connect_ends();
	fd = descriptor(&s.rx->fid);
	fids[0] = &s.rx->fid;
	for (int i = 0; i < 200; i++) {
		receive(&s, 64);
		OK(fi_trywait(fabric, fids, 1));
		CHECK(i % 50 || sleeps(fd, 50));
		OK(fi_send(c.ep, c.buf, 64, c.desc, 0, NULL));
		CHECK(!sleeps(fd, 20000));
		CHECK(done(s.rx).len == 64);
		done(c.tx);
	}
	/* One that came before is not slept upon. */
	receive(&s, 64);
	OK(fi_send(c.ep, c.buf, 64, c.desc, 0, NULL));
	done(c.tx);
	began = now();
	CHECK(fi_cq_sread(s.rx, &entry, 1, NULL, 20000) == 1);
	CHECK(now() - began < 15);
	began = now();
	CHECK(fi_cq_sread(s.rx, &entry, 1, NULL, 300) == -FI_EAGAIN);
	CHECK(now() - began > 0.25);
}

static void told_of_the_end(struct end *e)
{
	event(FI_SHUTDOWN, &e->ep->fid);
}

/* A message that does not fit is an error of its receive, and ends the connection. */
CASE(too_long)
{
	struct fi_cq_err_entry error;

	connect_ends();
	receive(&s, 64);
	receive(&s, 64);
	OK(fi_send(c.ep, c.buf, 65, c.desc, 0, NULL));
	error = broken(s.rx);
	CHECK(error.err != FI_ECANCELED && error.err != 0);
	CHECK(broken(s.rx).err == FI_ECANCELED);
	told_of_the_end(&c);
}

/* Memory that is not offered is not read. */
CASE(wrong_key)
{
	struct fi_cq_err_entry error;

	connect_ends();
	memset(s.buf, 1, 100);
	OK(fi_read(c.ep, c.buf, 100, c.desc, 0, (uintptr_t)s.buf, fi_mr_key(s.mr) ^ 0x100, NULL));
	error = broken(c.tx);
	CHECK(error.err && error.err != FI_ECANCELED);
	CHECK(c.buf[0] == 0);
	told_of_the_end(&s);
}

CASE(shutdown_flushes)
{
	const int n = 10;

	connect_ends();
	for (int i = 0; i < n; i++)
		receive(&s, 64);
	OK(fi_shutdown(c.ep, 0));
	told_of_the_end(&s);
	for (int i = 0; i < n; i++)
		CHECK(broken(s.rx).err == FI_ECANCELED);
	CHECK(quiet(s.rx));
}

static void connect_fails(const char *reason)
{
	struct fi_eq_err_entry error;
	struct fi_eq_cm_entry entry;
	uint32_t what;

	CHECK(fi_eq_sread(eq, &what, &entry, sizeof(entry), 20000, 0) == -FI_EAVAIL);
	error = refused();
	CHECK(error.fid == &c.ep->fid && error.err == FI_ECONNREFUSED);
	CHECK(error.err_data_size >= strlen(reason));
	CHECK(!memcmp(error.err_data, reason, strlen(reason)));
}

/* The reason given reaches the initiator. */
CASE(rejection)
{
	struct fi_info *request;

	listen_there();
	call_there(&c, "please");
	request = asked_by("please");
	OK(fi_reject(listener, request->handle, "no, thank you", 13));
	connect_fails("no, thank you");
	fi_freeinfo(request);
}

CASE(no_listener)
{
	listen_there();
	stop_listening();
	call_there(&c, "");
	connect_fails("");
}

/* One after the other, each with a message, and closed by either side. */
CASE(many_connections)
{
	listen_there();
	for (int i = 0; i < 20; i++) {
		call_there(&c, "again");
		answer(&s, asked_by("again"), "yes");
		connected(&c, "yes");
		connected(&s, "");
		receive(&s, 64);
		OK(fi_send(c.ep, c.buf, 64, c.desc, 0, NULL));
		done(c.tx);
		CHECK(done(s.rx).len == 64);
		OK(fi_shutdown(i % 2 ? s.ep : c.ep, 0));
		told_of_the_end(i % 2 ? &c : &s);
		end_over(&c);
		end_over(&s);
		c = (struct end){ .domain = c.domain };
		s = (struct end){ .domain = s.domain };
	}
}
