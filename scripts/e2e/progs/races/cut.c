// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Requests of all kinds are under way in both directions when the connection is cut, by
 * whatever the caller of this program does. Each request completes, once and in order; both
 * ends are told; all can be destroyed.
 */
#include "races.h"

#define MOST 16		/* requests of one side under way */
#define WARM 200	/* completions after which the caller is told that it may cut */
#define BYTES 32768

enum queue { SEND_QUEUE, RECV_QUEUE, QUEUES };

static struct pair p;
static uint64_t posted[SIDES][QUEUES], done[SIDES][QUEUES];
static bool broken;

static uint64_t next_id(enum side side, enum queue queue)
{
	return posted[side][queue]++ << 2 | queue << 1 | side;
}

static bool post_one(enum side side)
{
	static const enum ibv_wr_opcode kinds[] = { IBV_WR_RDMA_WRITE, IBV_WR_SEND,
						    IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD };
	enum ibv_wr_opcode kind = kinds[posted[side][SEND_QUEUE] % 4];

	if (kind == IBV_WR_SEND)
		TRY0(pair_recv(&p, !side, next_id(!side, RECV_QUEUE), BYTES, BYTES));
	if (kind == IBV_WR_ATOMIC_FETCH_AND_ADD)
		TRY0(pair_atomic(&p, side, next_id(side, SEND_QUEUE), kind, 1, 0));
	else
		TRY0(pair_send(&p, side, next_id(side, SEND_QUEUE), kind, BYTES, BYTES,
			       IBV_SEND_SIGNALED));
	return true;
}

static bool post_more(enum side side)
{
	while (posted[side][SEND_QUEUE] - done[side][SEND_QUEUE] < MOST)
		if (!post_one(side))
			return false;
	return true;
}

/* Each in the order of its queue; the first bad one ends the good ones. */
static bool reap_in_order(struct ibv_cq *cq)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(cq, 16, wc);

	errno = EIO;
	CHECK(n >= 0);
	for (int i = 0; i < n; i++) {
		enum side side = wc[i].wr_id & 1;
		enum queue queue = wc[i].wr_id >> 1 & 1;

		errno = EPROTO;
		CHECK(wc[i].wr_id >> 2 == done[side][queue]++);
		if (wc[i].status != IBV_WC_SUCCESS && !broken)
			printf("the first to fail: %s\n", ibv_wc_status_str(wc[i].status));
		broken |= wc[i].status != IBV_WC_SUCCESS;
	}
	return true;
}

static bool reap_both(void)
{
	return reap_in_order(p.send_cq) && reap_in_order(p.recv_cq);
}

static bool outstanding(void)
{
	for (int side = 0; side < SIDES; side++)
		for (int queue = 0; queue < QUEUES; queue++)
			if (posted[side][queue] != done[side][queue])
				return true;
	return false;
}

static bool go_on_until_cut(void)
{
	double limit = now() + seconds + step_timeout();
	bool told = false;

	while (!broken) {
		if (!post_more(CLIENT) || !post_more(SERVER) || !reap_both())
			return false;
		if (!told && done[CLIENT][SEND_QUEUE] > WARM && done[SERVER][SEND_QUEUE] > WARM) {
			printf("under way\n");
			told = true;
		}
		errno = ETIMEDOUT;
		CHECK(now() < limit);
	}
	return told;
}

/* The second end may find out later than the first one. */
static bool nothing_is_lost(void)
{
	double limit = now() + step_timeout();

	while (outstanding()) {
		if (!reap_both())
			return false;
		errno = ETIMEDOUT;
		CHECK(now() < limit);
	}
	return pair_event(&p, RDMA_CM_EVENT_DISCONNECTED, NULL) &&
	       pair_event(&p, RDMA_CM_EVENT_DISCONNECTED, NULL);
}

static bool cut(void)
{
	p.pd = home.pd;
	p.send_cq = ibv_create_cq(home.context, DEPTH * 4, NULL, NULL, 0);
	p.recv_cq = ibv_create_cq(home.context, DEPTH * 4, NULL, NULL, 0);
	TRY(p.send_cq && p.recv_cq);
	if (!pair_join(&p, ACCEPTED) || !go_on_until_cut() || !nothing_is_lost())
		return false;
	printf("completed: %lu and %lu requests, %lu and %lu receives\n", done[CLIENT][0],
	       done[SERVER][0], done[CLIENT][1], done[SERVER][1]);
	count_round();
	if (!pair_part(&p))
		return false;
	TRY0(ibv_destroy_cq(p.send_cq));
	TRY0(ibv_destroy_cq(p.recv_cq));
	return true;
}

const struct activity cut_activities[] = {
	{ .name = "cut", .whole = cut },
	{},
};
