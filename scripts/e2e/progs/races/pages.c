// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Random writes to every mapped page of the device, while the engine works on the queues
 * there and while their objects are destroyed. The process that does it may crash.
 */
#define _GNU_SOURCE
#include "../mappings.h"
#include "races.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../../drivers/weft/uapi/weft-abi.h"

#define REGIONS 64
#define PAIRS 3
#define WRITERS 2
#define BLOCK (WEFT_CTL_BYTES / 4) /* words */

/* A mapping of our own: those of the library go with the objects. */
static struct region {
	volatile uint32_t *at;
	unsigned int words;
} region[REGIONS];

static int regions;
static struct pair pair[PAIRS];
static volatile bool stop;
static __thread unsigned int dice;

static void map_all(void)
{
	struct mapping m[REGIONS];
	int found = find_mappings(m, REGIONS);

	for (int i = 0; i < found; i++) {
		size_t bytes = m[i].end - m[i].begin;
		void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
				home.context->cmd_fd, m[i].offset);

		CHECK(at != MAP_FAILED);
		region[regions++] = (struct region){ at, bytes / 4 };
	}
	CHECK(regions > 0);
}

static unsigned int roll(unsigned int sides)
{
	return rand_r(&dice) % sides;
}

/* Half of them are control words: a control block begins at every multiple of its size. */
static volatile uint32_t *some_word(void)
{
	struct region *r = &region[roll(regions)];
	unsigned int block = roll(r->words / BLOCK) * BLOCK;

	if (roll(2))
		return &r->at[roll(r->words)];
	if (roll(2))
		block = 0;
	return &r->at[block + (roll(2) ? roll(2) : roll(2) * 16 + roll(2))];
}

/* What a word may be made to say: nonsense, a limit, a neighbour of what it says, a state. */
static uint32_t some_value(uint32_t before)
{
	static const uint32_t limits[] = { 0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0xffff };

	switch (roll(6)) {
	case 0:
		return rand_r(&dice) ^ (uint32_t)rand_r(&dice) << 16;
	case 1:
		return limits[roll(6)];
	case 2:
		return before + roll(2 * DEPTH);
	case 3:
		return before - roll(2 * DEPTH);
	case 4:
		return *some_word();
	}
	return roll(4);
}

static struct weft_sge some_element(void)
{
	struct pair *p = &pair[roll(PAIRS)];
	enum side side = roll(SIDES);

	return (struct weft_sge){
		.addr = (uintptr_t)p->buf[side] + roll(PAIR_BYTES),
		.length = roll(3) ? roll(70000) : rand_r(&dice),
		.lkey = roll(8) ? p->mr[side]->lkey : (uint32_t)rand_r(&dice),
	};
}

/* An entry of a send queue that means something, wherever the next one may be taken from. */
static void write_entry(void)
{
	struct region *r = &region[roll(regions)];
	unsigned int at = roll(r->words / 16) * 16;
	struct pair *p = &pair[roll(PAIRS)];
	struct weft_sge sge[4] = { some_element(), some_element(), some_element(), some_element() };
	struct weft_sqe e = {
		.wr_id = rand_r(&dice),
		.opcode = roll(WEFT_WR_OP_COUNT + 2),
		.flags = roll(16),
		.num_sge = roll(6),
		.inline_len = roll(2) ? roll(100) : rand_r(&dice),
		.remote_addr = (uintptr_t)p->buf[roll(SIDES)] + roll(PAIR_BYTES),
		.rkey = roll(8) ? p->mr[roll(SIDES)]->rkey : (uint32_t)rand_r(&dice),
		.imm_or_inv = roll(2) ? p->mr[roll(SIDES)]->rkey : (uint32_t)rand_r(&dice),
	};

	e.bind.addr = e.remote_addr;
	e.bind.length = roll(70000);
	e.bind.mr_lkey = p->mr[roll(SIDES)]->lkey;
	if (at + (sizeof(e) + sizeof(sge)) / 4 > r->words)
		return;
	memcpy((void *)&r->at[at], &e, sizeof(e));
	memcpy((void *)&r->at[at + sizeof(e) / 4], sge, sizeof(sge));
}

static void *write_at_random(void *arg)
{
	dice = seed * WRITERS + (intptr_t)arg;
	while (!stop) {
		volatile uint32_t *word = some_word();

		*word = some_value(*word);
		if (roll(16) == 0)
			write_entry();
		/* There are times of rest, in which the engine can come to an end. */
		if (roll(4096) == 0)
			usleep(roll(300));
	}
	return NULL;
}

/* Everything is posted; the results do not matter. */
static void use(struct pair *p, unsigned int nth)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						  IBV_WR_RDMA_READ };
	enum side side = roll(SIDES);
	struct ibv_wc wc[8];

	pair_recv(p, !side, nth, roll(1000), 70000);
	pair_send(p, side, nth, ops[roll(3)], roll(1000), roll(70000),
		  roll(3) ? IBV_SEND_SIGNALED : 0);
	if (!roll(4))
		ibv_poll_cq(p->send_cq, 8, wc);
	if (!roll(8))
		ibv_req_notify_cq(p->send_cq, 0);
}

static bool set_up(struct pair *p, bool with_srq)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = DEPTH, .max_sge = 2 } };

	p->pd = home.pd;
	p->send_cq = home.cq[0];
	p->recv_cq = home.cq[1];
	if (with_srq) {
		p->srq = ibv_create_srq(home.pd, &attr);
		TRY(p->srq);
	}
	return pair_join(p, ACCEPTED);
}

/* Changes of an object that is in use; they may fail. */
static void change(struct pair *p)
{
	struct ibv_qp_attr attr = { .qp_state = roll(2) ? IBV_QPS_ERR : IBV_QPS_SQD };
	struct ibv_srq_attr srq = { .max_wr = 32 << roll(4), .srq_limit = roll(32) };

	switch (roll(4)) {
	case 0:
		ibv_resize_cq(home.cq[roll(2)], 16 << roll(9));
		break;
	case 1:
		if (p->srq)
			ibv_modify_srq(p->srq, &srq, roll(2) ? IBV_SRQ_MAX_WR : IBV_SRQ_LIMIT);
		break;
	case 2:
		if (!roll(4))
			ibv_modify_qp(p->id[roll(SIDES)]->qp, &attr, IBV_QP_STATE);
		break;
	case 3:
		ibv_dereg_mr(ibv_reg_mr(home.pd, p->buf[0], 4096, 0));
		break;
	}
}

/* The life of a process that writes everywhere; the last of it is to destroy all it has. */
static bool writes_everywhere(void)
{
	pthread_t writer[WRITERS];

	dice = seed;
	for (int i = 0; i < PAIRS; i++)
		if (!set_up(&pair[i], i % 2))
			return false;
	for (int i = 0; i < 50; i++)
		use(&pair[i % PAIRS], i);
	map_all();
	for (intptr_t i = 0; i < WRITERS; i++)
		CHECK(!pthread_create(&writer[i], NULL, write_at_random, (void *)i));
	for (unsigned int nth = 0, most = roll(4000); nth < most; nth++) {
		use(&pair[roll(PAIRS)], nth);
		if (!roll(50))
			change(&pair[roll(PAIRS)]);
	}
	for (int i = 0; i < PAIRS; i++) {
		usleep(roll(1000));
		for (int side = 0; side < SIDES; side++)
			ibv_destroy_qp(pair[i].id[side]->qp);
		if (pair[i].srq)
			ibv_destroy_srq(pair[i].srq);
	}
	usleep(roll(2000));
	ibv_destroy_cq(home.cq[0]);
	ibv_destroy_cq(home.cq[1]);
	usleep(1000);
	_exit(0);
}

/* Some of them are killed in the middle of it. */
static bool pages(unsigned int nth)
{
	return live_often("writes_everywhere", draw() % 2 ? "-x" : "-xu",
			  nth % 4 ? 3 : 0.1 + draw() % 100 * 0.004);
}

const struct activity page_activities[] = {
	{ .name = "pages", .round = pages },
	{ .name = "writes_everywhere", .whole = writes_everywhere },
	{},
};
