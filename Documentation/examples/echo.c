// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The client of kernel/rdma_echo.c: each line of standard input is sent, and what comes back is
 * printed.
 *
 *   cc -o echo echo.c -lrdmacm -libverbs
 *   printf 'hello\nagain\n' | ./echo 192.0.2.1
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define PORT "7779"
#define BUFFER_SIZE 4096

static char out[BUFFER_SIZE], in[BUFFER_SIZE];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static struct rdma_cm_id *connect_to(const char *host)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *info;
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
	struct rdma_cm_id *id;

	if (rdma_getaddrinfo(host, PORT, &hints, &info) || rdma_create_ep(&id, info, NULL, &attr))
		die(host);
	rdma_freeaddrinfo(info);
	if (rdma_connect(id, NULL))
		die("connect");
	return id;
}

static void check(const struct ibv_wc *wc, const char *what)
{
	if (wc->status) {
		fprintf(stderr, "%s: %s\n", what, ibv_wc_status_str(wc->status));
		exit(1);
	}
}

/* The receive is posted before the Send to which it is the answer. Returns the answer's length. */
static size_t exchange(struct rdma_cm_id *id, struct ibv_mr *out_mr, struct ibv_mr *in_mr,
		       size_t length)
{
	struct ibv_wc wc;

	if (rdma_post_recv(id, NULL, in, sizeof(in), in_mr) ||
	    rdma_post_send(id, NULL, out, length, out_mr, 0))
		die("post");
	if (rdma_get_send_comp(id, &wc) != 1)
		die("send");
	check(&wc, "send");
	if (rdma_get_recv_comp(id, &wc) != 1)
		die("receive");
	check(&wc, "receive");
	return wc.byte_len;
}

int main(int argc, char **argv)
{
	struct ibv_mr *out_mr, *in_mr;
	struct rdma_cm_id *id;

	if (argc != 2) {
		fprintf(stderr, "usage: echo HOST\n");
		return 2;
	}
	id = connect_to(argv[1]);
	out_mr = rdma_reg_msgs(id, out, sizeof(out));
	in_mr = rdma_reg_msgs(id, in, sizeof(in));
	if (!out_mr || !in_mr)
		die("memory region");
	while (fgets(out, sizeof(out), stdin)) {
		fwrite(in, 1, exchange(id, out_mr, in_mr, strlen(out)), stdout);
		fflush(stdout);
	}
	rdma_disconnect(id);
	rdma_dereg_mr(out_mr);
	rdma_dereg_mr(in_mr);
	rdma_destroy_ep(id);
	return 0;
}
