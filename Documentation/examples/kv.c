// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A key-value store whose server runs no code for a request: clients find, read and change
 * its slots by themselves, with RDMA Reads, Writes and atomics.
 *
 *   cc -o kv kv.c -lrdmacm -libverbs
 *   kv serve 192.0.2.1
 *   kv put 192.0.2.1 colour blue
 *   kv get 192.0.2.1 colour		prints: blue
 *   kv hits 192.0.2.1 colour		prints how often it was asked for
 *
 * The server tells each client where the table is in the private data of its accept. A slot is
 * locked by a compare-and-swap of its first word. A reader takes no lock: a Read may meet a
 * slot that is half written, which the sum in it gives away, and then it reads again.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define PORT "7777"
#define SLOTS 1024
#define PROBES 8 /* a key stands in one of so many slots behind its hash */

struct slot {
	uint64_t lock; /* 0, or its holder; atomics want 8 bytes, aligned */
	uint64_t hits;
	uint64_t sum; /* of key and value */
	char key[40];
	char value[64];
};

struct offer {
	uint64_t addr;
	uint32_t rkey;
} __attribute__((packed));

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* FNV-1a */
static uint64_t hash(const char *data, size_t size)
{
	uint64_t h = 0xcbf29ce484222325;

	while (size--)
		h = (h ^ (unsigned char)*data++) * 0x100000001b3;
	return h;
}

static uint64_t sum_of(const struct slot *s)
{
	return hash(s->key, sizeof(s->key)) ^ hash(s->value, sizeof(s->value)) ^ 1;
}

static struct rdma_addrinfo *resolve(const char *host, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *info;

	return rdma_getaddrinfo(host, PORT, &hints, &info) ? die(host), NULL : info;
}

/* --- server ------------------------------------------------------------------- */

struct server {
	struct slot table[SLOTS];
	struct ibv_pd *pd;
	struct ibv_mr *mr;
};

/* The QP is never posted to: what arrives at it is served by the device. */
static void accept_client(struct server *s, struct rdma_cm_event *event)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct offer offer = { (uintptr_t)s->table, s->mr->rkey };
	struct rdma_conn_param param = {
		.private_data = &offer,
		.private_data_len = sizeof(offer),
		/* Reads and atomics that the client may have under way here. */
		.responder_resources = event->param.conn.responder_resources,
	};

	if (rdma_create_qp(event->id, s->pd, &attr) || rdma_accept(event->id, &param)) {
		perror("accept");
		rdma_reject(event->id, NULL, 0);
	}
}

static void serve(const char *host)
{
	struct server *s = calloc(1, sizeof(*s));
	struct rdma_event_channel *events = rdma_create_event_channel();
	struct rdma_addrinfo *info = resolve(host, RAI_PASSIVE);
	struct rdma_cm_event *event;
	struct rdma_cm_id *listener;

	if (!s || !events || rdma_create_id(events, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, info->ai_src_addr) || rdma_listen(listener, 16))
		die("listen");
	s->pd = ibv_alloc_pd(listener->verbs);
	s->mr = s->pd ? ibv_reg_mr(s->pd, s->table, sizeof(s->table),
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
					   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) :
			NULL;
	if (!s->mr)
		die("memory region");

	while (!rdma_get_cm_event(events, &event)) {
		struct rdma_cm_id *gone = NULL;

		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			accept_client(s, event);
		else if (event->event != RDMA_CM_EVENT_ESTABLISHED && event->id != listener)
			gone = event->id;
		/* An id can only be destroyed when its events are acknowledged. */
		rdma_ack_cm_event(event);
		if (gone && gone->qp)
			rdma_destroy_qp(gone);
		if (gone)
			rdma_destroy_id(gone);
	}
	die("event");
}

/* --- client ------------------------------------------------------------------- */

struct client {
	struct rdma_cm_id *id;
	struct offer offer;
	struct slot slot; /* Reads land here, Writes start here */
	uint64_t old; /* what an atomic has found */
	struct ibv_mr *mr;
};

static void open_client(struct client *c, const char *host)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct rdma_conn_param param = { .initiator_depth = 4 };

	if (rdma_create_ep(&c->id, resolve(host, 0), NULL, &attr))
		die("endpoint");
	/* Over iWARP, where a Read lands must be open to remote writes. */
	c->mr = ibv_reg_mr(c->id->pd, c, sizeof(*c),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!c->mr)
		die("memory region");
	if (rdma_connect(c->id, &param))
		die("connect");
	if (c->id->event->param.conn.private_data_len < sizeof(c->offer)) {
		fprintf(stderr, "that is no server of ours\n");
		exit(1);
	}
	memcpy(&c->offer, c->id->event->param.conn.private_data, sizeof(c->offer));
}

/* One request at a time: post, and wait for its completion. */
static void run(struct client *c, struct ibv_send_wr *wr, void *local, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)local, length, c->mr->lkey };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	errno = ibv_post_send(c->id->qp, wr, &bad);
	if (errno || rdma_get_send_comp(c->id, &wc) != 1)
		die("request");
	if (wc.status) {
		fprintf(stderr, "request: %s\n", ibv_wc_status_str(wc.status));
		exit(1);
	}
}

static uint64_t remote(const struct client *c, unsigned int slot, size_t offset)
{
	return c->offer.addr + slot * sizeof(struct slot) + offset;
}

static void transfer(struct client *c, enum ibv_wr_opcode op, unsigned int slot, size_t offset,
		     size_t size)
{
	struct ibv_send_wr wr = { .opcode = op };

	wr.wr.rdma.remote_addr = remote(c, slot, offset);
	wr.wr.rdma.rkey = c->offer.rkey;
	run(c, &wr, (char *)&c->slot + offset, size);
}

/* Returns what was there before. */
static uint64_t atomic(struct client *c, enum ibv_wr_opcode op, unsigned int slot, size_t offset,
		       uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr wr = { .opcode = op };

	wr.wr.atomic.remote_addr = remote(c, slot, offset);
	wr.wr.atomic.rkey = c->offer.rkey;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	run(c, &wr, &c->old, sizeof(c->old));
	return c->old;
}

/* Find the slot of a key, or a free one for it; it is in c->slot then. Returns -1 if none. */
static int find(struct client *c, const char *key, int or_free)
{
	unsigned int i, first = hash(key, strlen(key)) % SLOTS;

	for (i = 0; i < PROBES; i++) {
		unsigned int at = (first + i) % SLOTS;

		do {
			transfer(c, IBV_WR_RDMA_READ, at, 0, sizeof(c->slot));
		} while (c->slot.sum && c->slot.sum != sum_of(&c->slot));
		if (!c->slot.sum)
			return or_free ? (int)at : -1;
		if (!strncmp(c->slot.key, key, sizeof(c->slot.key)))
			return at;
	}
	return -1;
}

static int put(struct client *c, const char *key, const char *value)
{
	const size_t offset = offsetof(struct slot, sum);
	uint64_t me = (uint64_t)getpid() << 32 | c->id->qp->qp_num;
	int at = find(c, key, 1);

	if (at < 0) {
		fprintf(stderr, "no room for %s\n", key);
		return 1;
	}
	while (atomic(c, IBV_WR_ATOMIC_CMP_AND_SWP, at, offsetof(struct slot, lock), 0, me))
		;
	/* Another client may have taken the free slot before we had its lock. */
	transfer(c, IBV_WR_RDMA_READ, at, 0, sizeof(c->slot));
	if (!c->slot.sum || !strncmp(c->slot.key, key, sizeof(c->slot.key))) {
		memset(c->slot.key, 0, sizeof(c->slot.key));
		memset(c->slot.value, 0, sizeof(c->slot.value));
		strncpy(c->slot.key, key, sizeof(c->slot.key) - 1);
		strncpy(c->slot.value, value, sizeof(c->slot.value) - 1);
		c->slot.sum = sum_of(&c->slot);
		transfer(c, IBV_WR_RDMA_WRITE, at, offset, sizeof(c->slot) - offset);
		value = NULL;
	}
	/* Behind the Write on the same connection, so the next owner of the lock finds it done. */
	atomic(c, IBV_WR_ATOMIC_CMP_AND_SWP, at, offsetof(struct slot, lock), me, 0);
	return value ? put(c, key, value) : 0;
}

static int get(struct client *c, const char *key, int hits)
{
	int at = find(c, key, 0);

	if (at < 0) {
		fprintf(stderr, "%s is not there\n", key);
		return 1;
	}
	if (hits) {
		printf("%llu\n", (unsigned long long)c->slot.hits);
	} else {
		printf("%.*s\n", (int)sizeof(c->slot.value), c->slot.value);
		atomic(c, IBV_WR_ATOMIC_FETCH_AND_ADD, at, offsetof(struct slot, hits), 1, 0);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct client c;
	int ret;

	if (argc == 3 && !strcmp(argv[1], "serve"))
		serve(argv[2]);
	if (argc < 4 || (argc == 4) == !strcmp(argv[1], "put")) {
		fprintf(stderr, "usage: kv serve HOST | put HOST KEY VALUE | get|hits HOST KEY\n");
		return 2;
	}
	open_client(&c, argv[2]);
	ret = argc == 5 ? put(&c, argv[3], argv[4]) : get(&c, argv[3], !strcmp(argv[1], "hits"));
	rdma_disconnect(c.id);
	return ret;
}
