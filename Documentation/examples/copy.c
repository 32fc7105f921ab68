// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copy a file by RDMA Writes with immediate data: the bytes go straight into the receiver's
 * buffers, and the immediate tells which buffer is full, and how full.
 *
 *   cc -o copy copy.c -lrdmacm -libverbs
 *   copy receive 192.0.2.1 FILE
 *   copy send 192.0.2.1 FILE
 *
 * The receiver tells the address of its buffers in the private data of its accept. Each buffer
 * that it has written to the file it gives back with an empty Send; the sender uses no buffer
 * before. That is all the flow control there is: a Write needs no receive, but an
 * immediate does, so the receiver posts one for each buffer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define PORT "7778"
#define BUFFERS 4
#define SIZE (1 << 20)
/* An immediate is a buffer, and how many bytes of it; 0 bytes are the end of the file. */
#define IMM(buffer, bytes) ((uint32_t)(buffer) << 24 | (bytes))
#define IMM_BUFFER(imm) ((imm) >> 24)
#define IMM_BYTES(imm) ((imm)&0xffffff)

struct offer {
	uint64_t addr;
	uint32_t rkey;
} __attribute__((packed));

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void check(const struct ibv_wc *wc)
{
	if (!wc->status)
		return;
	fprintf(stderr, "transfer: %s\n", ibv_wc_status_str(wc->status));
	exit(1);
}

/* An endpoint with a QP whose buffers, both sides have as many, are registered. */
static struct rdma_cm_id *endpoint(const char *host, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP };
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = 2 * BUFFERS,
			.max_recv_wr = 2 * BUFFERS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct rdma_addrinfo *info;
	struct rdma_cm_id *id;

	if (rdma_getaddrinfo(host, PORT, &hints, &info) || rdma_create_ep(&id, info, NULL, &attr))
		die(host);
	rdma_freeaddrinfo(info);
	return id;
}

static struct ibv_mr *make_buffers(struct rdma_cm_id *id, int access)
{
	void *memory = aligned_alloc(4096, (size_t)BUFFERS * SIZE);
	struct ibv_mr *mr = NULL;

	if (memory)
		mr = ibv_reg_mr(id->pd, memory, (size_t)BUFFERS * SIZE, access);
	if (!mr)
		die("buffers");
	return mr;
}

static void expect_message(struct rdma_cm_id *id)
{
	/* Nothing is placed by it: an immediate and an empty Send have no bytes. */
	if (rdma_post_recvv(id, NULL, NULL, 0))
		die("post a receive");
}

/* --- receiver ----------------------------------------------------------------- */

static void write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n < 0)
			die("write");
		data += n;
		size -= n;
	}
}

static struct rdma_cm_id *await_sender(const char *host, struct ibv_mr **mr)
{
	struct rdma_cm_id *listener = endpoint(host, RAI_PASSIVE), *id;
	struct rdma_conn_param param = { .private_data_len = sizeof(struct offer) };
	struct offer offer;
	int i;

	if (rdma_listen(listener, 1) || rdma_get_request(listener, &id))
		die("listen");
	*mr = make_buffers(id, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	for (i = 0; i < BUFFERS; i++)
		expect_message(id);
	offer.addr = (uintptr_t)(*mr)->addr;
	offer.rkey = (*mr)->rkey;
	param.private_data = &offer;
	if (rdma_accept(id, &param))
		die("accept");
	return id;
}

static void receive(const char *host, const char *name)
{
	struct ibv_mr *mr;
	struct rdma_cm_id *id = await_sender(host, &mr);
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	struct ibv_wc wc;
	uint32_t imm;

	if (fd < 0)
		die(name);
	for (;;) {
		if (rdma_get_recv_comp(id, &wc) != 1)
			die("completion");
		check(&wc);
		if (wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM)
			continue;
		imm = ntohl(wc.imm_data);
		if (!IMM_BYTES(imm))
			break;
		if (IMM_BUFFER(imm) >= BUFFERS || IMM_BYTES(imm) > SIZE) {
			fprintf(stderr, "the sender names a buffer that there is not\n");
			exit(1);
		}
		write_all(fd, (char *)mr->addr + (size_t)IMM_BUFFER(imm) * SIZE, IMM_BYTES(imm));
		/* The next receive first: the sender may go on as soon as it has the Send. */
		expect_message(id);
		if (rdma_post_sendv(id, NULL, NULL, 0, 0) || rdma_get_send_comp(id, &wc) != 1)
			die("give a buffer back");
		check(&wc);
	}
	if (close(fd))
		die(name);
	rdma_disconnect(id);
}

/* --- sender ------------------------------------------------------------------- */

static struct rdma_cm_id *reach_receiver(const char *host, struct ibv_mr **mr, struct offer *offer)
{
	struct rdma_cm_id *id = endpoint(host, 0);
	struct rdma_conn_param param = { 0 };
	int i;

	*mr = make_buffers(id, IBV_ACCESS_LOCAL_WRITE);
	for (i = 0; i < BUFFERS; i++)
		expect_message(id);
	if (rdma_connect(id, &param))
		die("connect");
	if (id->event->param.conn.private_data_len < sizeof(*offer)) {
		fprintf(stderr, "that is no receiver of ours\n");
		exit(1);
	}
	memcpy(offer, id->event->param.conn.private_data, sizeof(*offer));
	return id;
}

static void write_buffer(struct rdma_cm_id *id, struct ibv_mr *mr, const struct offer *to,
			 unsigned int buffer, uint32_t bytes)
{
	size_t at = (size_t)buffer * SIZE;
	struct ibv_sge sge = { (uintptr_t)mr->addr + at, bytes, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.sg_list = &sge,
		.num_sge = bytes ? 1 : 0,
		.imm_data = htonl(IMM(buffer, bytes)),
	};

	wr.wr.rdma.remote_addr = to->addr + at;
	wr.wr.rdma.rkey = to->rkey;
	errno = ibv_post_send(id->qp, &wr, &bad);
	if (errno)
		die("post a Write");
}

/* A buffer of ours may be filled again when its Write is complete and the receiver's is free. */
static void await_buffer(struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	if (rdma_get_send_comp(id, &wc) != 1)
		die("completion");
	check(&wc);
	if (rdma_get_recv_comp(id, &wc) != 1)
		die("completion");
	check(&wc);
	expect_message(id);
}

static void send_file(const char *host, const char *name)
{
	int fd = open(name, O_RDONLY);
	unsigned int buffer = 0, busy = 0;
	struct rdma_cm_id *id;
	struct offer offer;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	ssize_t n;

	if (fd < 0)
		die(name);
	id = reach_receiver(host, &mr, &offer);
	do {
		if (busy == BUFFERS)
			await_buffer(id);
		else
			busy++;
		n = read(fd, (char *)mr->addr + (size_t)buffer * SIZE, SIZE);
		if (n < 0)
			die(name);
		write_buffer(id, mr, &offer, buffer, n);
		buffer = (buffer + 1) % BUFFERS;
	} while (n);
	/* All but the end of the file come back. */
	while (--busy)
		await_buffer(id);
	if (rdma_get_send_comp(id, &wc) != 1)
		die("completion");
	check(&wc);
	rdma_disconnect(id);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "receive")) {
		receive(argv[2], argv[3]);
	} else if (argc == 4 && !strcmp(argv[1], "send")) {
		send_file(argv[2], argv[3]);
	} else {
		fprintf(stderr, "usage: copy receive HOST FILE | send HOST FILE\n");
		return 2;
	}
	return 0;
}
