// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A client and a server of librpma: Writes, flushes, Reads, atomic Writes,
 * immediate data and messages. Each side checks every byte that it receives.
 *
 * Usage: rpma server|client ADDRESS PORT plain|rcq|shared|srq
 *
 * The last word says where receives complete: at the one completion queue, at
 * one of their own, at one of their own with the channel shared by both, at that of
 * a shared receive queue (the server's; the client's is then as in "rcq").
 */
#include <errno.h>
#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (256 * 1024)
#define HALF (BYTES / 2)
#define MESSAGE 64
#define MESSAGES 4
#define WORD 4104
#define ROUNDS 50
#define PIECES 32
#define SIZE 1024
#define IMM 0x12345678u

static struct rpma_peer *peer;
static struct rpma_conn_cfg *cfg;
static struct rpma_srq *srq;
static struct rpma_conn *conn;
static struct rpma_cq *sends, *receives;
static struct rpma_mr_local *mr, *letters;
static struct rpma_mr_remote *remote;
static bool shared;
static unsigned char *memory, *mail, *expected;

static void check(bool good, int line, const char *what)
{
	if (good)
		return;
	printf("line %d: %s (errno %s)\n", line, what, strerror(errno));
	exit(1);
}

#define CHECK(what) check(what, __LINE__, #what)

/* A different sequence for every seed; none repeats at a power of two. */
static void fill(unsigned char *to, size_t bytes, unsigned int seed)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (i * 7 + i / 251 + seed * 29) & 0xff;
}

static void *pages(size_t bytes)
{
	void *p = NULL;

	CHECK(!posix_memalign(&p, 4096, bytes));
	memset(p, 0, bytes);
	return p;
}

static void open_peer(const char *address, enum rpma_util_ibv_context_type type)
{
	struct ibv_context *context;
	int odp = -1;

	CHECK(!rpma_utils_get_ibv_context(address, type, &context));
	CHECK(!rpma_utils_ibv_context_is_odp_capable(context, &odp));
	printf("on-demand paging: %d\n", odp);
	CHECK(odp == 1);
	CHECK(!rpma_peer_new(context, &peer));
}

static void register_memory(void)
{
	int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
		    RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
		    RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;

	memory = pages(BYTES);
	mail = pages(2 * MESSAGE * MESSAGES);
	expected = pages(BYTES);
	CHECK(!rpma_mr_reg(peer, memory, BYTES, usage, &mr));
	CHECK(!rpma_mr_reg(peer, mail, 2 * MESSAGE * MESSAGES,
			   RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &letters));
}

static void configure(const char *mode, bool server)
{
	CHECK(!rpma_conn_cfg_new(&cfg));
	CHECK(!rpma_conn_cfg_set_timeout(cfg, 10000));
	CHECK(!rpma_conn_cfg_set_sq_size(cfg, 2 * PIECES));
	CHECK(!rpma_conn_cfg_set_cq_size(cfg, 2 * PIECES));
	if (server && !strcmp(mode, "srq")) {
		CHECK(!rpma_srq_new(peer, NULL, &srq));
		CHECK(!rpma_conn_cfg_set_srq(cfg, srq));
		return;
	}
	if (strcmp(mode, "plain"))
		CHECK(!rpma_conn_cfg_set_rcq_size(cfg, MESSAGES));
	shared = !strcmp(mode, "shared");
	CHECK(!rpma_conn_cfg_set_compl_channel(cfg, shared));
}

/* Posted before there is a connection, so that the first message finds them. */
static void post_receives(struct rpma_conn_req *req)
{
	for (uintptr_t i = 0; i < MESSAGES; i++) {
		if (srq)
			CHECK(!rpma_srq_recv(srq, letters, i * MESSAGE, MESSAGE, (void *)i));
		else
			CHECK(!rpma_conn_req_recv(req, letters, i * MESSAGE, MESSAGE, (void *)i));
	}
}

static void find_queues(void)
{
	CHECK(!rpma_conn_get_cq(conn, &sends));
	if (srq)
		CHECK(!rpma_srq_get_rcq(srq, &receives));
	else
		CHECK(!rpma_conn_get_rcq(conn, &receives));
	if (!receives)
		receives = sends;
}

static void next_event(enum rpma_conn_event wanted)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	CHECK(!rpma_conn_next_event(conn, &event));
	if (event != wanted)
		printf("event %s\n", rpma_utils_conn_event_2str(event));
	CHECK(event == wanted);
}

/* Only one of a kind is under way, and sends without a flag do not complete. */
static struct ibv_wc next_completion(struct rpma_cq *cq, enum ibv_wc_opcode opcode)
{
	struct rpma_cq *any;
	struct ibv_wc wc;
	int rc;

	while ((rc = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION) {
		if (shared)
			CHECK(!rpma_conn_wait(conn, 0, &any, NULL));
		else
			CHECK(!rpma_cq_wait(cq));
	}
	CHECK(!rc);
	if (wc.status || wc.opcode != opcode)
		printf("completed: %s, opcode %d\n", ibv_wc_status_str(wc.status), wc.opcode);
	CHECK(!wc.status && wc.opcode == opcode);
	return wc;
}

static void tell(const char *what)
{
	unsigned char *out = mail + MESSAGE * MESSAGES;

	memset(out, 0, MESSAGE);
	strcpy((char *)out, what);
	CHECK(!rpma_send(conn, letters, MESSAGE * MESSAGES, MESSAGE, RPMA_F_COMPLETION_ON_ERROR,
			 NULL));
}

static void told(const char *what)
{
	struct ibv_wc wc = next_completion(receives, IBV_WC_RECV);

	CHECK(wc.wr_id < MESSAGES && wc.byte_len == MESSAGE);
	CHECK(!strcmp((char *)mail + wc.wr_id * MESSAGE, what));
}

static void told_immediate(unsigned int imm)
{
	struct ibv_wc wc = next_completion(receives, IBV_WC_RECV_RDMA_WITH_IMM);

	CHECK(wc.wc_flags & IBV_WC_WITH_IMM);
	CHECK(be32toh(wc.imm_data) == imm);
}

static void close_all(bool server)
{
	if (!server)
		CHECK(!rpma_conn_disconnect(conn));
	next_event(RPMA_CONN_CLOSED);
	if (server)
		CHECK(!rpma_conn_disconnect(conn));
	CHECK(!rpma_conn_delete(&conn));
	CHECK(!rpma_conn_cfg_delete(&cfg));
	if (srq)
		CHECK(!rpma_srq_delete(&srq));
	if (remote)
		CHECK(!rpma_mr_remote_delete(&remote));
	CHECK(!rpma_mr_dereg(&letters));
	CHECK(!rpma_mr_dereg(&mr));
	CHECK(!rpma_peer_delete(&peer));
}

/* --- The server: it offers memory, and looks at it when it is told to ---------------- */

struct offer {
	unsigned char mr_bytes, cfg_bytes, words[64];
};

static void offer_memory(struct offer *offer)
{
	struct rpma_peer_cfg *direct;
	size_t mr_bytes, cfg_bytes;

	CHECK(!rpma_peer_cfg_new(&direct));
	CHECK(!rpma_peer_cfg_set_direct_write_to_pmem(direct, true));
	CHECK(!rpma_mr_get_descriptor_size(mr, &mr_bytes));
	CHECK(!rpma_peer_cfg_get_descriptor_size(direct, &cfg_bytes));
	CHECK(mr_bytes + cfg_bytes <= sizeof(offer->words));
	CHECK(!rpma_mr_get_descriptor(mr, offer->words));
	CHECK(!rpma_peer_cfg_get_descriptor(direct, offer->words + mr_bytes));
	CHECK(!rpma_peer_cfg_delete(&direct));
	offer->mr_bytes = mr_bytes;
	offer->cfg_bytes = cfg_bytes;
}

static void look(unsigned int first, unsigned int second)
{
	fill(expected, HALF, first);
	memcpy(expected + WORD, "8 bytes!", 8);
	fill(expected + HALF, HALF, second);
	CHECK(!memcmp(memory, expected, BYTES));
}

static void be_server(const char *address, const char *port, const char *mode)
{
	struct rpma_conn_private_data data;
	struct offer offer = { 0 };
	struct rpma_conn_req *req;
	struct rpma_ep *ep;

	open_peer(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
	register_memory();
	configure(mode, true);
	offer_memory(&offer);
	CHECK(!rpma_ep_listen(peer, address, port, &ep));
	CHECK(!rpma_ep_next_conn_req(ep, cfg, &req));
	post_receives(req);
	data.ptr = &offer;
	data.len = sizeof(offer);
	CHECK(!rpma_conn_req_connect(&req, &data, &conn));
	next_event(RPMA_CONN_ESTABLISHED);
	find_queues();

	told_immediate(IMM);
	look(1, 2);
	tell("as written");
	told_immediate(IMM + 1);
	tell("nothing written");
	told("the last");
	look(1, 3);
	tell("all seen");

	close_all(true);
	CHECK(!rpma_ep_shutdown(&ep));
}

/* --- The client ------------------------------------------------------------------------ */

static void flush(enum rpma_flush_type type)
{
	CHECK(!rpma_flush(conn, remote, 0, BYTES, type, RPMA_F_COMPLETION_ALWAYS, NULL));
	next_completion(sends, IBV_WC_RDMA_READ);
}

/* What is there is what was written: read into memory that holds something else. */
static void read_back(size_t offset, const void *wanted, size_t bytes)
{
	memset(memory, 0xee, bytes);
	CHECK(!rpma_read(conn, mr, 0, remote, offset, bytes, RPMA_F_COMPLETION_ALWAYS, NULL));
	next_completion(sends, IBV_WC_RDMA_READ);
	CHECK(!memcmp(memory, wanted, bytes));
}

static void write_half(void)
{
	fill(memory, HALF, 1);
	memcpy(expected, memory, HALF);
	CHECK(!rpma_write(conn, remote, 0, mr, 0, HALF, RPMA_F_COMPLETION_ALWAYS, NULL));
	next_completion(sends, IBV_WC_RDMA_WRITE);
	flush(RPMA_FLUSH_TYPE_VISIBILITY);
	read_back(0, expected, HALF);
}

static void write_word(void)
{
	CHECK(rpma_atomic_write(conn, remote, WORD + 1, "8 bytes!", RPMA_F_COMPLETION_ALWAYS,
				NULL) == RPMA_E_INVAL);
	CHECK(!rpma_atomic_write(conn, remote, WORD, "8 bytes!", RPMA_F_COMPLETION_ALWAYS, NULL));
	next_completion(sends, IBV_WC_RDMA_WRITE);
	memcpy(expected + WORD, "8 bytes!", 8);
	read_back(0, expected, HALF);
}

static void write_with_immediate(void)
{
	fill(memory, HALF, 2);
	CHECK(!rpma_write_with_imm(conn, remote, HALF, mr, 0, HALF, RPMA_F_COMPLETION_ALWAYS, IMM,
				   NULL));
	next_completion(sends, IBV_WC_RDMA_WRITE);
	told("as written");
	CHECK(!rpma_write_with_imm(conn, NULL, 0, NULL, 0, 0, RPMA_F_COMPLETION_ON_ERROR, IMM + 1,
				   NULL));
	told("nothing written");
}

/* Only the flush after it tells that a Write is done. */
static void write_pieces(void)
{
	fill(memory, HALF, 3);
	memcpy(expected, memory, HALF);
	for (int i = 0; i < ROUNDS * PIECES; i++) {
		size_t at = (i * SIZE) % HALF;

		CHECK(!rpma_write(conn, remote, HALF + at, mr, at, SIZE, RPMA_F_COMPLETION_ON_ERROR,
				  NULL));
		if (i % PIECES == PIECES - 1)
			flush(RPMA_FLUSH_TYPE_VISIBILITY);
	}
	read_back(HALF, expected, HALF);
}

/* Persistent flushes are for peers that said what their memory is. */
static void flush_persistently(const struct offer *offer)
{
	struct rpma_peer_cfg *direct;

	CHECK(rpma_flush(conn, remote, 0, BYTES, RPMA_FLUSH_TYPE_PERSISTENT,
			 RPMA_F_COMPLETION_ALWAYS, NULL) == RPMA_E_NOSUPP);
	CHECK(!rpma_peer_cfg_from_descriptor(offer->words + offer->mr_bytes, offer->cfg_bytes,
					     &direct));
	CHECK(!rpma_conn_apply_remote_peer_cfg(conn, direct));
	CHECK(!rpma_peer_cfg_delete(&direct));
	flush(RPMA_FLUSH_TYPE_PERSISTENT);
}

/* No iWARP RFC has Sends with immediate data: refused, and nothing else is harmed. */
static void send_with_immediate(void)
{
	CHECK(rpma_send_with_imm(conn, letters, 0, MESSAGE, RPMA_F_COMPLETION_ALWAYS, IMM, NULL) ==
	      RPMA_E_PROVIDER);
}

static void be_client(const char *address, const char *port, const char *mode)
{
	struct rpma_conn_private_data data;
	struct rpma_conn_req *req;
	struct offer offer;
	size_t size;

	open_peer(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
	register_memory();
	configure(mode, false);
	CHECK(!rpma_conn_req_new(peer, address, port, cfg, &req));
	post_receives(req);
	CHECK(!rpma_conn_req_connect(&req, NULL, &conn));
	next_event(RPMA_CONN_ESTABLISHED);
	find_queues();
	CHECK(!rpma_conn_get_private_data(conn, &data));
	CHECK(data.ptr && data.len >= sizeof(offer));
	memcpy(&offer, data.ptr, sizeof(offer));
	CHECK(!rpma_mr_remote_from_descriptor(offer.words, offer.mr_bytes, &remote));
	CHECK(!rpma_mr_remote_get_size(remote, &size) && size == BYTES);

	write_half();
	write_word();
	write_with_immediate();
	write_pieces();
	flush_persistently(&offer);
	send_with_immediate();
	tell("the last");
	told("all seen");

	close_all(false);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 5)
		return 2;
	if (!strcmp(argv[1], "server"))
		be_server(argv[2], argv[3], argv[4]);
	else
		be_client(argv[2], argv[3], argv[4]);
	printf("done\n");
	return 0;
}
