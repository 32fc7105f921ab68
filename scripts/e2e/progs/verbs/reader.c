// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Connections to processes that keep a target, and what is read over them. */
#include "reader.h"

#include <stddef.h>

void reader_listens(struct reader *r)
{
	r->at_mr = ibv_reg_mr(r->e.id->pd, &r->at, sizeof(r->at), IBV_ACCESS_LOCAL_WRITE);
	CHECK(r->at_mr);
	CHECK(!recv_sge(&r->e, 0, sge(r->at_mr, 0, sizeof(r->at))));
}

/* It has its receives from the start. */
static void make_reader(struct end *e)
{
	make_qp(e);
	reader_listens((void *)((char *)e - offsetof(struct reader, e)));
}

void reader_meets(struct reader *r)
{
	accept_end(&r->e, make_reader);
	good(r->e.id->recv_cq, 1);
}

void reader_starts(struct reader *r, const char *name, int port)
{
	r->pid = start_case(name, port);
	reader_meets(r);
}

void reader_leaves(struct reader *r)
{
	CHECK(!ibv_dereg_mr(r->at_mr));
	release(&r->e);
}

void reader_ends(struct reader *r)
{
	rdma_disconnect(r->e.id);
	ends_well(r->pid);
	reader_leaves(r);
}

void post_read(struct reader *r, uint32_t i)
{
	CHECK(!post(&r->e, i, IBV_WR_RDMA_READ, sge(r->e.own, 0, 4),
		    r->at.to + offsetof(struct target, words[i]), r->at.rkey, IBV_SEND_SIGNALED));
}

void read_one(struct reader *r, uint32_t i)
{
	volatile uint32_t *got = r->e.own->addr;
	struct ibv_wc wc;

	*got = 0;
	post_read(r, i);
	wc = polled(r->e.id->send_cq);
	CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == i && *got == word_of(i, TARGET_SEED));
}

void read_words(struct reader *r)
{
	for (uint32_t i = 0; i < READER_WORDS; i++)
		read_one(r, i);
}

void read_for(struct reader *r, double seconds)
{
	double until = now() + seconds;

	for (uint32_t i = 0; i % 16 || now() < until; i++)
		read_one(r, i % TARGET_WORDS);
}

void add_up(struct reader *r)
{
	uint64_t sum = offsetof(struct target, sum);
	volatile uint64_t *got = r->e.own->addr;

	for (uint64_t i = 1; i <= READER_WORDS; i++) {
		*got = ~0;
		CHECK(!post_atomic(&r->e, i, IBV_WR_ATOMIC_FETCH_AND_ADD, sge(r->e.own, 0, 8),
				   r->at.to + sum, r->at.rkey, i, 0));
		good(r->e.id->send_cq, 1);
		CHECK(*got == r->sum);
		r->sum += i;
	}
}

void read_by_event(struct reader *r, uint32_t i)
{
	CHECK(!ibv_req_notify_cq(r->e.id->send_cq, 0));
	post_read(r, i);
	CHECK(event_within(r->e.id->send_cq_channel, SECONDS * 1000));
	good(r->e.id->send_cq, 1);
}
