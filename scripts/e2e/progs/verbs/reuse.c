// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Long messages, and memory that is used again as soon as they complete: nothing completes
 * before its time, however a connection ends.
 */
#include "verbs.h"

#include <unistd.h>

#define AREA (4U << 20)
#define LONGEST (1U << 20)
#define ROUNDS 6
#define ENDS 20
#define WRITES 8

/* Where messages come from, and where they go. */
struct haul {
	struct end *e;
	unsigned char *at;
	struct ibv_mr *mr;
};

/* Lengths and places that are no multiples of anything. */
static const struct {
	uint32_t at, length;
} pieces[] = {
	{ 0, 131072 },	     { 131072 + 3, 131073 },	  { 300001, 262144 - 1 },
	{ 700000, LONGEST }, { 2 * LONGEST + 5, 999999 }, { AREA - 4096 * 64, 4096 * 64 },
};

#define PIECES (sizeof(pieces) / sizeof(pieces[0]))

static void open_haul(struct haul *h, struct end *e)
{
	h->e = e;
	CHECK(!posix_memalign((void **)&h->at, 4096, AREA));
	memset(h->at, 0, AREA);
	h->mr = ibv_reg_mr(e->id->pd, h->at, AREA,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(h->mr);
}

static void close_haul(struct haul *h)
{
	CHECK(!ibv_dereg_mr(h->mr));
	free(h->at);
}

static unsigned char pattern_byte(uint32_t i, uint32_t seed)
{
	return word_of(i, seed) >> 24;
}

static void write_piece(struct haul *h, uint32_t k, uint32_t seed)
{
	for (uint32_t i = 0; i < pieces[k].length; i++)
		h->at[pieces[k].at + i] = pattern_byte(i, seed + k);
}

static void check_piece(const struct haul *h, uint32_t k, uint32_t seed)
{
	for (uint32_t i = 0; i < pieces[k].length; i++)
		CHECK(h->at[pieces[k].at + i] == pattern_byte(i, seed + k));
}

static struct ibv_sge piece(const struct haul *h, uint32_t k)
{
	return sge(h->mr, pieces[k].at, pieces[k].length);
}

/* An end that may reuse its memory does so at once. */
static void done_and_reused(struct haul *from, uint32_t k)
{
	expect(from->e->id->send_cq, k, IBV_WC_SUCCESS);
	memset(from->at + pieces[k].at, 0xee, pieces[k].length);
}

static void sends(struct haul *from, struct haul *to, uint32_t seed)
{
	for (uint32_t k = 0; k < PIECES; k++) {
		CHECK(!recv_sge(to->e, k, piece(to, k)));
		write_piece(from, k, seed);
	}
	for (uint32_t k = 0; k < PIECES; k++)
		CHECK(!send_sge(from->e, k, piece(from, k), 0));
	for (uint32_t k = 0; k < PIECES; k++)
		done_and_reused(from, k);
	for (uint32_t k = 0; k < PIECES; k++) {
		CHECK(expect(to->e->id->recv_cq, k, IBV_WC_SUCCESS).byte_len == pieces[k].length);
		check_piece(to, k, seed);
	}
}

static void writes(struct haul *from, struct haul *to, uint32_t seed)
{
	post_empty_recv(to->e);
	for (uint32_t k = 0; k < PIECES; k++) {
		write_piece(from, k, seed);
		CHECK(!post(from->e, k, IBV_WR_RDMA_WRITE, piece(from, k),
			    (uintptr_t)to->at + pieces[k].at, to->mr->rkey, IBV_SEND_SIGNALED));
	}
	for (uint32_t k = 0; k < PIECES; k++)
		done_and_reused(from, k);
	send_empty(from->e);
	good(to->e->id->recv_cq, 1);
	for (uint32_t k = 0; k < PIECES; k++)
		check_piece(to, k, seed);
}

CASE_WITH("reuse", memory_is_used_again_at_once, "mpa_crc=0")
{
	struct haul a, b;

	open_haul(&a, &c);
	open_haul(&b, &s);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		sends(&a, &b, 4 * PIECES * round);
		writes(&b, &a, (4 * round + 1) * PIECES);
		writes(&a, &b, (4 * round + 2) * PIECES);
		sends(&b, &a, (4 * round + 3) * PIECES);
	}
	close_haul(&a);
	close_haul(&b);
}

/* All of the area, in elements that end within segments. */
static void receive_in_a_list(struct haul *to, uint64_t id)
{
	struct ibv_sge list[] = { sge(to->mr, 0, 100001), sge(to->mr, 100001, 300007),
				  sge(to->mr, 400008, 500009), sge(to->mr, 900017, AREA - 900017) };
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = list, .num_sge = 4 };

	CHECK(!ibv_post_recv(to->e->id->qp, &wr, &bad));
}

/* A list of elements is one message. */
CASE_WITH("reuse", a_list_arrives_whole, "mpa_crc=0")
{
	struct ibv_sge list[4];
	struct ibv_send_wr *bad, wr = { .wr_id = 7,
					.sg_list = list,
					.num_sge = 4,
					.opcode = IBV_WR_SEND,
					.send_flags = IBV_SEND_SIGNALED };
	struct haul a, b;
	uint32_t at = 0;

	open_haul(&a, &c);
	open_haul(&b, &s);
	for (uint32_t k = 0; k < 4; k++) {
		write_piece(&a, k, 0);
		list[k] = piece(&a, k);
	}
	receive_in_a_list(&b, 1);
	CHECK(!ibv_post_send(c.id->qp, &wr, &bad));
	expect(c.id->send_cq, 7, IBV_WC_SUCCESS);
	for (uint32_t k = 0; k < 4; k++)
		memset(a.at + pieces[k].at, 0xee, pieces[k].length);
	expect(s.id->recv_cq, 1, IBV_WC_SUCCESS);
	for (uint32_t k = 0; k < 4; k++)
		for (uint32_t i = 0; i < pieces[k].length; i++, at++)
			CHECK(b.at[at] == pattern_byte(i, k));
	close_haul(&a);
	close_haul(&b);
}

/* What was sent already is the application's again when the request fails. */
CASE_WITH("reuse", a_bad_element_fails_in_its_turn, "mpa_crc=0")
{
	struct ibv_sge list[2];
	struct ibv_send_wr *bad,
		wr = { .wr_id = 7, .sg_list = list, .num_sge = 2, .opcode = IBV_WR_SEND };
	struct haul a, b;

	open_haul(&a, &c);
	open_haul(&b, &s);
	CHECK(!recv_sge(&s, 1, sge(b.mr, 0, AREA)));
	CHECK(!recv_sge(&s, 2, sge(b.mr, 0, AREA)));
	list[0] = sge(a.mr, 0, LONGEST);
	list[1] = sge(a.mr, LONGEST, LONGEST);
	list[1].lkey ^= 0xff;
	CHECK(!send_sge(&c, 6, sge(a.mr, 0, LONGEST), 0));
	CHECK(!ibv_post_send(c.id->qp, &wr, &bad));
	expect(c.id->send_cq, 6, IBV_WC_SUCCESS);
	expect(c.id->send_cq, 7, IBV_WC_LOC_PROT_ERR);
	memset(a.at, 0xee, AREA);
	expect(s.id->recv_cq, 1, IBV_WC_SUCCESS);
	flushes(&c);
	close_haul(&a);
	close_haul(&b);
}

/* Whatever has become of them, they complete in their order, and each once. */
static void all_complete(struct end *e, int count)
{
	enum ibv_wc_status status = IBV_WC_SUCCESS;

	for (int k = 0; k < count; k++) {
		struct ibv_wc wc = next(e->id->send_cq);

		CHECK(wc.wr_id == (uint64_t)k);
		CHECK(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR);
		CHECK(status == IBV_WC_SUCCESS || wc.status == status);
		status = wc.status;
	}
	nothing(e->id->send_cq);
}

/* Writes of the longest message, one behind the other. */
static void write_on(struct haul *a, struct end *client, struct haul *b, struct end *server,
		     int count, int flags)
{
	connect_pair(client, server, NULL);
	open_haul(a, client);
	open_haul(b, server);
	for (int k = 0; k < count; k++)
		CHECK(!post(client, k, IBV_WR_RDMA_WRITE, sge(a->mr, 0, LONGEST), (uintptr_t)b->at,
			    b->mr->rkey, flags));
}

/* Either end disconnects in the middle. */
CASE_WITH("reuse", long_messages_end_with_their_connection, "mpa_crc=0")
{
	for (int i = 0; i < ENDS; i++) {
		struct end client = {}, server = {};
		struct haul a, b;

		write_on(&a, &client, &b, &server, WRITES, IBV_SEND_SIGNALED);
		usleep(i * 200);
		rdma_disconnect(i & 1 ? client.id : server.id);
		all_complete(&client, WRITES);
		memset(a.at, 0xee, AREA);
		close_haul(&a);
		close_haul(&b);
		release(i & 2 ? &server : &client);
		release(i & 2 ? &client : &server);
	}
	works(&c, &s);
}

/* A queue pair goes while it sends, and the memory behind it. */
CASE_WITH("reuse", queue_pairs_go_while_they_write, "mpa_crc=0")
{
	for (int i = 0; i < ENDS; i++) {
		struct end client = {}, server = {};
		struct haul a, b;

		write_on(&a, &client, &b, &server, WRITES, 0);
		usleep(i * 100);
		rdma_destroy_qp(client.id);
		close_haul(&a);
		close_haul(&b);
		release(&client);
		release(&server);
	}
	works(&c, &s);
}
