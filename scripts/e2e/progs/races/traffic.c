// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* A good neighbour: messages of all kinds on a connection of its own, whose data are compared. */
#include "races.h"

static struct pair p;
static uint32_t turn;

static bool set_up(void)
{
	p.pd = ibv_alloc_pd(home.context);
	TRY(p.pd);
	p.send_cq = ibv_create_cq(home.context, DEPTH * 4, NULL, NULL, 0);
	p.recv_cq = ibv_create_cq(home.context, DEPTH * 4, NULL, NULL, 0);
	TRY(p.send_cq && p.recv_cq);
	return pair_join(&p, ACCEPTED);
}

static bool tear_down(void)
{
	if (!pair_part(&p))
		return false;
	TRY0(ibv_destroy_cq(p.send_cq));
	TRY0(ibv_destroy_cq(p.recv_cq));
	TRY0(ibv_dealloc_pd(p.pd));
	return true;
}

static bool came_over(const unsigned char *buf, uint32_t length, const char *how)
{
	bool same = is_filled(buf, length, turn);

	errno = 0;
	if (!same)
		printf("%s of %u bytes, turn %u: the data differ\n", how, length, turn);
	CHECK(same);
	return true;
}

static bool send_message(enum side from, uint32_t length)
{
	fill(p.buf[from], length, ++turn);
	TRY0(pair_recv(&p, !from, 1, 0, length));
	TRY0(pair_send(&p, from, 2, IBV_WR_SEND, 0, length, IBV_SEND_SIGNALED));
	if (!completed(p.recv_cq, 1) || !completed(p.send_cq, 1))
		return false;
	return came_over(p.buf[!from], length, "a Send");
}

/* The Read is behind the Write, so what it brings is what was written. */
static bool write_and_read(enum side from, uint32_t length)
{
	fill(p.buf[from], length, ++turn);
	TRY0(pair_send(&p, from, 3, IBV_WR_RDMA_WRITE, 0, length, IBV_SEND_SIGNALED));
	TRY0(pair_send(&p, from, 4, IBV_WR_RDMA_READ, 0, length, IBV_SEND_SIGNALED));
	if (!completed(p.send_cq, 2))
		return false;
	return came_over(p.buf[from], length, "a Read") &&
	       came_over(p.buf[!from], length, "a Write");
}

/* What was there comes back, and the sum is there: it is compared at both ends. */
static bool atomic_word(enum side from)
{
	uint64_t *there = (uint64_t *)p.buf[!from], *back = (uint64_t *)p.buf[from];
	uint64_t before = turn * 0x100000001ULL, add = draw();
	bool same;

	*there = before;
	*back = 0;
	TRY0(pair_atomic(&p, from, 5, IBV_WR_ATOMIC_FETCH_AND_ADD, add, 0));
	if (!completed(p.send_cq, 1))
		return false;
	same = *back == before && *there == before + add;
	errno = 0;
	CHECK(same);
	TRY0(pair_atomic(&p, from, 6, IBV_WR_ATOMIC_CMP_AND_SWP, before + add, turn));
	if (!completed(p.send_cq, 1))
		return false;
	same = *back == before + add && *there == turn;
	errno = 0;
	CHECK(same);
	return true;
}

static uint32_t some_length(void)
{
	static const uint32_t most[] = { 64, 4096, 70000, PAIR_BYTES };

	return 1 + draw() % most[draw() % 4];
}

static bool traffic(void)
{
	if (!set_up())
		return false;
	do {
		enum side from = draw() % SIDES;

		if (!send_message(from, some_length()) || !write_and_read(from, some_length()) ||
		    !atomic_word(from))
			return false;
		count_round();
	} while (going());
	return tear_down();
}

const struct activity traffic_activities[] = {
	{ .name = "traffic", .whole = traffic },
	{},
};
