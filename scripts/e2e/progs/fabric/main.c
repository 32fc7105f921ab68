// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A program of libfabric: its verbs provider's endpoints, connected to ourselves,
 * and ofi_rxm's upon them.
 *
 * Usage: fabric ADDRESS CASE	status 0: as expected
 *        fabric --list
 */
#include "fabric.h"

#include <time.h>

#define SECONDS 20

const char *address;
struct fid_fabric *fabric;
struct fid_eq *eq;
struct fid_pep *listener;
struct wish wish = { .caps = FI_MSG | FI_RMA, .wait = FI_WAIT_UNSPEC };
struct end s, c;

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

void fill(unsigned char *p, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i++)
		p[i] = (unsigned char)(seed * 101 + i * 7 + (i >> 8) * 13 + (i >> 16) * 29);
}

bool holds(const unsigned char *p, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i++) {
		if (p[i] != (unsigned char)(seed * 101 + i * 7 + (i >> 8) * 13 + (i >> 16) * 29)) {
			printf("byte %zu of %zu is %02x\n", i, size, p[i]);
			return false;
		}
	}
	return true;
}

static struct fi_info *hints(void)
{
	struct fi_info *h = fi_allocinfo();

	CHECK(h);
	h->caps = wish.caps;
	h->addr_format = strchr(address, ':') ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	h->mode = FI_RX_CQ_DATA;
	h->ep_attr->type = FI_EP_MSG;
	h->ep_attr->rx_ctx_cnt = wish.shared ? FI_SHARED_CONTEXT : 0;
	h->domain_attr->cq_data_size = wish.data_size;
	h->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	h->fabric_attr->prov_name = strdup("verbs");
	return h;
}

/* ask: what there is of the kind that is wished for; NULL: nothing. */
struct fi_info *ask(const char *node, uint64_t flags)
{
	struct fi_info *h = hints(), *found = NULL;
	int rc = fi_getinfo(API, node, "7590", flags, h, &found);

	fi_freeinfo(h);
	CHECK(rc == 0 || rc == -FI_ENODATA);
	return rc ? NULL : found;
}

void listen_there(void)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_info *info = ask(address, FI_SOURCE);

	CHECK(info && info->ep_attr->protocol == FI_PROTO_IWARP);
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_eq_open(fabric, &attr, &eq, NULL));
	OK(fi_passive_ep(fabric, info, &listener, NULL));
	OK(fi_pep_bind(listener, &eq->fid, 0));
	OK(fi_listen(listener));
	fi_freeinfo(info);
}

void stop_listening(void)
{
	OK(fi_close(&listener->fid));
	listener = NULL;
}

/*
 * event: the one of that kind and source. Both ends share a queue, since the end that
 * connects takes its steps only while its queue is read; the events of the other wait.
 */
struct event event(uint32_t what, struct fid *fid)
{
	static struct event waiting[8];
	struct event got = { 0 };
	ssize_t n;

	for (int i = 0; i < COUNT(waiting); i++) {
		if (waiting[i].what != what || waiting[i].entry.fid != fid)
			continue;
		got = waiting[i];
		waiting[i] = (struct event){ 0 };
		return got;
	}
	for (int i = 0; i < COUNT(waiting); i++) {
		n = fi_eq_sread(eq, &got.what, &got.entry, sizeof(got.entry) + sizeof(got.data),
				SECONDS * 1000, 0);
		if (n == -FI_EAVAIL)
			printf("instead of an event: %s\n", fi_strerror(refused().err));
		OK(n);
		got.got = (size_t)n - sizeof(got.entry);
		if (got.what == what && got.entry.fid == fid)
			return got;
		waiting[i] = got;
	}
	CHECK(!"too many events");
	return got;
}

/* refused: the error that stands in for an event. */
struct fi_eq_err_entry refused(void)
{
	static char data[256];
	struct fi_eq_err_entry error = { .err_data = data, .err_data_size = sizeof(data) };

	OK(fi_eq_readerr(eq, &error, 0));
	return error;
}

static void open_cq(struct end *e, struct fid_cq **cq, uint64_t direction)
{
	struct fi_cq_attr attr = { .size = 1024,
				   .format = FI_CQ_FORMAT_DATA,
				   .wait_obj = wish.wait };

	OK(fi_cq_open(e->domain, &attr, cq, NULL));
	if (direction == FI_TRANSMIT && wish.selective)
		direction |= FI_SELECTIVE_COMPLETION;
	OK(fi_ep_bind(e->ep, &(*cq)->fid, direction));
}

/* start_end: all of an endpoint, up to being enabled. */
void start_end(struct end *e)
{
	const uint64_t access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |
				FI_REMOTE_WRITE;

	if (!e->domain)
		OK(fi_domain(fabric, e->info, &e->domain, NULL));
	OK(fi_endpoint(e->domain, e->info, &e->ep, NULL));
	OK(fi_ep_bind(e->ep, &eq->fid, 0));
	open_cq(e, &e->tx, FI_TRANSMIT);
	open_cq(e, &e->rx, FI_RECV);
	if (e->srx)
		OK(fi_ep_bind(e->ep, &e->srx->fid, 0));
	OK(fi_enable(e->ep));
	e->buf = calloc(1, BYTES);
	CHECK(e->buf);
	OK(fi_mr_reg(e->domain, e->buf, BYTES, access, 0, 0, 0, &e->mr, NULL));
	e->desc = fi_mr_desc(e->mr);
}

void call_there(struct end *e, const char *data)
{
	e->info = ask(address, 0);
	CHECK(e->info);
	start_end(e);
	OK(fi_connect(e->ep, e->info->dest_addr, data, strlen(data)));
}

static bool carries(const struct event *e, const char *data)
{
	return e->got >= strlen(data) && !memcmp(e->entry.data, data, strlen(data));
}

/* asked_by: a request for a connection, which carries that data. */
struct fi_info *asked_by(const char *data)
{
	struct event e = event(FI_CONNREQ, &listener->fid);

	CHECK(carries(&e, data));
	return e.entry.info;
}

void answer(struct end *e, struct fi_info *request, const char *data)
{
	e->info = request;
	start_end(e);
	OK(fi_accept(e->ep, data, strlen(data)));
}

void connected(struct end *e, const char *data)
{
	struct event got = event(FI_CONNECTED, &e->ep->fid);

	CHECK(carries(&got, data));
}

void connect_ends(void)
{
	listen_there();
	call_there(&c, "who is there?");
	answer(&s, asked_by("who is there?"), "it is me");
	connected(&c, "it is me");
	connected(&s, "");
}

/* done: the next completion; it is a good one. */
struct fi_cq_data_entry done(struct fid_cq *cq)
{
	struct fi_cq_data_entry entry;
	double until = now() + SECONDS;
	ssize_t n;

	do
		n = fi_cq_read(cq, &entry, 1);
	while (n == -FI_EAGAIN && now() < until);
	if (n == -FI_EAVAIL) {
		struct fi_cq_err_entry error = broken(cq);

		printf("completion with %s, of the provider: %d\n", fi_strerror(error.err),
		       error.prov_errno);
	}
	OK(n);
	return entry;
}

/* broken: the next completion is a bad one. */
struct fi_cq_err_entry broken(struct fid_cq *cq)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry error = { 0 };
	double until = now() + SECONDS;
	ssize_t n;

	do
		n = fi_cq_read(cq, &entry, 1);
	while (n == -FI_EAGAIN && now() < until);
	CHECK(n == -FI_EAVAIL);
	CHECK(fi_cq_readerr(cq, &error, 0) == 1);
	return error;
}

/* quiet: there is no completion. */
bool quiet(struct fid_cq *cq)
{
	struct fi_cq_data_entry entry;

	return fi_cq_read(cq, &entry, 1) == -FI_EAGAIN;
}

void end_over(struct end *e)
{
	if (e->ep)
		OK(fi_close(&e->ep->fid));
	if (e->tx) {
		OK(fi_close(&e->tx->fid));
		OK(fi_close(&e->rx->fid));
		OK(fi_close(&e->mr->fid));
	}
	if (e->info)
		fi_freeinfo(e->info);
	free(e->buf);
}

/* Nothing may refuse to be closed, however the case has ended. */
static void close_all(void)
{
	end_over(&c);
	end_over(&s);
	if (s.srx)
		OK(fi_close(&s.srx->fid));
	if (c.domain)
		OK(fi_close(&c.domain->fid));
	if (s.domain)
		OK(fi_close(&s.domain->fid));
	if (listener)
		stop_listening();
	if (eq)
		OK(fi_close(&eq->fid));
	if (fabric)
		OK(fi_close(&fabric->fid));
}

extern const struct test_case *const __start_test_cases[], *const __stop_test_cases[];

int main(int argc, char **argv)
{
	bool list = argc == 2 && !strcmp(argv[1], "--list");
	const struct test_case *const *t;

	CHECK(list || argc == 3);
	for (t = __start_test_cases; t < __stop_test_cases; t++) {
		if (list)
			printf("%s\n", (*t)->name);
		if (list || strcmp((*t)->name, argv[2]))
			continue;
		address = argv[1];
		(*t)->run();
		close_all();
		return 0;
	}
	if (list)
		return 0;
	printf("no case %s\n", argv[2]);
	return 2;
}
