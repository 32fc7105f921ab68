// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Endpoints without connections that ofi_rxm makes of connected ones. */
#include "fabric.h"

#define BUF (6 * MIB)

static struct node {
	struct fi_info *info;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_mr *mr;
	void *desc;
	unsigned char *buf;
	fi_addr_t peer;
} a, b;

static void start_node(struct node *n)
{
	struct fi_info *h = fi_allocinfo();
	struct fi_av_attr av = { .type = FI_AV_UNSPEC };
	struct fi_cq_attr cq = { .size = 1024, .format = FI_CQ_FORMAT_DATA };

	h->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
	h->addr_format = strchr(address, ':') ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	h->ep_attr->type = FI_EP_RDM;
	h->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	h->fabric_attr->prov_name = strdup("verbs;ofi_rxm");
	OK(fi_getinfo(API, address, NULL, FI_SOURCE, h, &n->info));
	fi_freeinfo(h);
	if (!fabric)
		OK(fi_fabric(n->info->fabric_attr, &fabric, NULL));
	OK(fi_domain(fabric, n->info, &n->domain, NULL));
	OK(fi_av_open(n->domain, &av, &n->av, NULL));
	OK(fi_cq_open(n->domain, &cq, &n->cq, NULL));
	OK(fi_endpoint(n->domain, n->info, &n->ep, NULL));
	OK(fi_ep_bind(n->ep, &n->av->fid, 0));
	OK(fi_ep_bind(n->ep, &n->cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(n->ep));
	n->buf = calloc(1, BUF);
	CHECK(n->buf);
	OK(fi_mr_reg(n->domain, n->buf, BUF,
		     FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
		     0, 0, &n->mr, NULL));
	n->desc = fi_mr_desc(n->mr);
}

static void meet(struct node *n, struct node *other)
{
	char name[128];
	size_t size = sizeof(name);

	OK(fi_getname(&other->ep->fid, name, &size));
	CHECK(fi_av_insert(n->av, name, 1, &n->peer, 0, NULL) == 1);
}

static void stop_node(struct node *n)
{
	OK(fi_close(&n->ep->fid));
	OK(fi_close(&n->mr->fid));
	OK(fi_close(&n->cq->fid));
	OK(fi_close(&n->av->fid));
	OK(fi_close(&n->domain->fid));
	fi_freeinfo(n->info);
	free(n->buf);
}

/* turn: a completion of that kind at n, if there is one; n makes progress by being asked. */
static void turn(struct node *n, uint64_t kind, int *left)
{
	struct fi_cq_data_entry entry;
	ssize_t got = fi_cq_read(n->cq, &entry, 1);

	if (got == -FI_EAGAIN)
		return;
	OK(got);
	CHECK(entry.flags & kind);
	--*left;
}

/* both_done: so many completions of those kinds at a and at b. */
static void both_done(int at_a, uint64_t kind_a, int at_b, uint64_t kind_b)
{
	double until = now() + 20;

	while (at_a > 0 || at_b > 0) {
		turn(&a, kind_a, &at_a);
		turn(&b, kind_b, &at_b);
		CHECK(now() < until);
	}
}

/* again: the call is made once more as long as it would have to wait. */
#define AGAIN(call)                                   \
	do {                                          \
		long rc;                              \
		double until = now() + 20;            \
		while ((rc = (call)) == -FI_EAGAIN) { \
			fi_cq_read(a.cq, NULL, 0);    \
			fi_cq_read(b.cq, NULL, 0);    \
			CHECK(now() < until);         \
		}                                     \
		OK(rc);                               \
	} while (0)

static void exchange(size_t size, unsigned int tag)
{
	memset(b.buf, 0xee, size + 1);
	fill(a.buf, size, tag);
	AGAIN(fi_trecv(b.ep, b.buf, size + 1, b.desc, FI_ADDR_UNSPEC, tag, 0, NULL));
	AGAIN(fi_tsend(a.ep, a.buf, size, a.desc, a.peer, tag, NULL));
	both_done(1, FI_SEND, 1, FI_RECV);
	CHECK(holds(b.buf, size, tag) && b.buf[size] == 0xee);
}

static void far_memory(void)
{
	uint64_t at = (uintptr_t)b.buf, key = fi_mr_key(b.mr), one = 1, *old = (uint64_t *)a.buf;

	fill(a.buf, MIB, 3);
	AGAIN(fi_write(a.ep, a.buf, MIB, a.desc, a.peer, at, key, NULL));
	both_done(1, FI_WRITE, 0, 0);
	memset(a.buf, 0, MIB);
	AGAIN(fi_read(a.ep, a.buf, MIB, a.desc, a.peer, at, key, NULL));
	both_done(1, FI_READ, 0, 0);
	CHECK(holds(a.buf, MIB, 3) && holds(b.buf, MIB, 3));

	memset(b.buf, 0, 8);
	for (uint64_t i = 0; i < 100; i++) {
		AGAIN(fi_fetch_atomic(a.ep, &one, 1, NULL, old, a.desc, a.peer, at, key, FI_UINT64,
				      FI_SUM, NULL));
		both_done(1, FI_ATOMIC, 0, 0);
		CHECK(*old == i);
	}
	CHECK(*(uint64_t *)b.buf == 100);
}

CASE(reliable_datagrams)
{
	unsigned int tag = 1;

	start_node(&a);
	start_node(&b);
	meet(&a, &b);
	meet(&b, &a);
	for (size_t size = 0; size <= 5 * MIB; size = size * 3 + 1)
		exchange(size, tag++);
	far_memory();
	stop_node(&a);
	stop_node(&b);
}
