// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * All of the engine, its queues, memory and framing, in any order of what a peer, a process, a
 * kernel consumer, TCP, timers and workers can do. Input: eight bytes of choices, then a script:
 * a byte for what happens, and what that takes.
 *
 * What must hold at any time is checked by kernel.h (locks, contexts, memory) and by the peer
 * (all it sees is an iWARP stream); at the end everything posted has completed once and in
 * order, unless the QP is destroyed before, cm was told of the end of each connection, and
 * nothing is left.
 */
#include "stream_host.h"

#include "proto/mpa_start.h"

static void choose(struct choices *c, struct input *in)
{
	static const u32 segment_sizes[] = { 1460, 536, 256, 8960, 65532, 1459, 4100, 128 };
	static const u8 rtr_kinds[] = { 0, WEFT_RTR_SEND, WEFT_RTR_WRITE, WEFT_RTR_READ };
	u8 a = take(in, 1), b = take(in, 1), d = take(in, 1), e = take(in, 1);

	take(in, 4);
	*c = (struct choices){
		.initiator = a & 1,
		.crc = a & 2,
		.markers_tx = a & 4,
		.markers_rx = a & 8,
		.kernel = a & 16,
		.direct = a & 32,
		.limit_access = a & 64,
		.rtr = rtr_kinds[b & 3],
		.ird = b >> 2 & 3,
		.ord = b >> 4 & 3,
		.mss = segment_sizes[d & 7],
		.rnr_timeout = d & 8 ? 1000 : 0,
		.sq_poll = d & 16 ? 250 : 0,
		.atomics = e & 1,
		.doorbells = e & 2,
		.defers = e & 4,
		.sudden = e & 8,
	};
	/* A responder takes any of a mask, an initiator sends the one agreed on. */
	if (!c->initiator && b & 64 && c->rtr)
		c->rtr = WEFT_RTR_SEND | WEFT_RTR_WRITE | WEFT_RTR_READ;
}

/* --- the application --- */

static void fill_sges(struct world *w, struct weft_sge *sge, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++) {
		sge[i].lkey = region_stag(w, take(&w->in, 1));
		sge[i].addr = IOVA + (s16)take(&w->in, 2);
		sge[i].length = take(&w->in, 1) * 64;
	}
}

static void fill_bind(struct world *w, struct weft_sqe *sqe)
{
	u32 window = region_stag(w, 4 + take(&w->in, 1) % 2);

	sqe->bind.mw_rkey = window;
	sqe->rkey = (window & ~0xffU) | take(&w->in, 1);
	sqe->bind.mr_lkey = region_stag(w, take(&w->in, 1));
	sqe->bind.addr = IOVA + take(&w->in, 1);
	sqe->bind.length = take(&w->in, 1) * 16;
	sqe->bind.access = take(&w->in, 1);
}

/* Byte 1: the opcode; byte 2: flags; byte 3: elements, or inline bytes. */
static void fill_sqe(struct world *w, struct weft_sqe *sqe)
{
	u8 count;

	sqe->opcode = take(&w->in, 1) & 15;
	sqe->flags = take(&w->in, 1) & 15;
	count = take(&w->in, 1);
	sqe->wr_id = w->posted;
	if (sqe->opcode == WEFT_WR_BIND_MW) {
		fill_bind(w, sqe);
		return;
	}
	sqe->rkey = region_stag(w, count >> 4);
	sqe->remote_addr = 0x2000;
	sqe->imm_or_inv = 0x01020304;
	sqe->atomic.compare_add = 5;
	if (sqe->flags & WEFT_WRF_INLINE)
		sqe->inline_len = count;
	else
		sqe->num_sge = count & 3;
	if (sqe->flags & WEFT_WRF_INLINE)
		memset(sqe + 1, 0x77, min_t(u32, sqe->inline_len, INLINE_MAX));
	else
		fill_sges(w, (struct weft_sge *)(sqe + 1), min_t(u32, sqe->num_sge, SGES));
	if (sqe->opcode == WEFT_WR_ATOMIC_FADD || sqe->opcode == WEFT_WR_ATOMIC_CSWAP)
		((struct weft_sge *)(sqe + 1))->length = 8;
}

static void post_kernel(struct world *w)
{
	unsigned long flags = weft_ring_lock(&w->sq.post_lock, false);
	struct weft_sqe *sqe = weft_sendq_reserve(&w->sq);
	bool tx_needed;

	if (sqe) {
		fill_sqe(w, sqe);
		/* What verbs/post.c lets a kernel consumer post. */
		if (sqe->opcode < WEFT_WR_OP_COUNT && sqe->opcode != WEFT_WR_BIND_MW &&
		    sqe->num_sge <= SGES && sqe->inline_len <= INLINE_MAX) {
			if (sqe->opcode == WEFT_WR_REG_MR && w->regions[2])
				weft_sendq_attach(&w->sq, w->regions[2]);
			if (sqe->opcode == WEFT_WR_REG_MR)
				sqe->bind.access = 0xf;
			weft_sendq_commit(&w->sq);
			w->posted++;
		}
	}
	weft_ring_unlock(&w->sq.post_lock, false, flags);
	tx_needed = weft_sendq_needs_doorbell(&w->sq);
	if (tx_needed)
		weft_tx_schedule(w->st);
}

static void post_send(struct world *w)
{
	struct weft_sq_ctl *ctl = weft_sendq_ctl(&w->sq);
	struct weft_sqe *sqe;

	if (w->choice.kernel) {
		post_kernel(w);
		return;
	}
	if (w->posted - READ_ONCE(ctl->cons) >= SQES)
		return;
	sqe = weft_ring_entry(&w->sq.ring, w->posted);
	memset(sqe, 0, w->sq.ring.stride);
	fill_sqe(w, sqe);
	/* as the provider does */
	smp_store_release(&ctl->prod, ++w->posted);
	w->owes_doorbell |= READ_ONCE(ctl->state) == WEFT_SQ_NEED_DOORBELL;
}

static void fill_rqe(struct world *w, struct weft_rqe *rqe)
{
	rqe->wr_id = w->received;
	rqe->num_sge = take(&w->in, 1) & 3;
	fill_sges(w, (struct weft_sge *)(rqe + 1), min_t(u32, rqe->num_sge, SGES));
}

static void ring_doorbell(struct world *w)
{
	weft_rnr_doorbell(w->st);
	weft_doorbell(w->st);
	w->owes_doorbell = false;
}

static void post_receive_kernel(struct world *w)
{
	unsigned long flags = weft_ring_lock(&w->rq.lock, false);
	struct weft_rqe *rqe = weft_recvq_reserve(&w->rq);

	if (rqe) {
		memset(rqe, 0, w->rq.ring.stride);
		fill_rqe(w, rqe);
		rqe->num_sge = min_t(u32, rqe->num_sge, SGES);
		weft_recvq_commit(&w->rq);
		w->received++;
		weft_recvq_grant(&w->rq);
	}
	weft_ring_unlock(&w->rq.lock, false, flags);
	if (weft_recvq_needs_doorbell(&w->rq))
		weft_tx_schedule(w->st);
}

static void post_receive(struct world *w)
{
	struct weft_rq_ctl *ctl = w->rq.ctl;
	struct weft_rqe *rqe;

	if (w->choice.kernel) {
		post_receive_kernel(w);
		return;
	}
	if (w->received - READ_ONCE(ctl->cons) >= RQES)
		return;
	rqe = weft_ring_entry(&w->rq.ring, w->received);
	memset(rqe, 0, w->rq.ring.stride);
	fill_rqe(w, rqe);
	/* as the provider does */
	smp_store_release(&ctl->prod, ++w->received);
	w->owes_doorbell |= READ_ONCE(ctl->state) == WEFT_RQ_NEED_DOORBELL;
}

/* A process writes where it likes. */
static void overwrite(struct world *w)
{
	struct weft_ring *rings[] = { &w->sq.ring, &w->rq.ring, &w->send_cq.ring,
				      &w->recv_cq.ring };
	struct weft_ring *ring = rings[take(&w->in, 1) % ARRAY_SIZE(rings)];
	u32 at = take(&w->in, 2) % (weft_ring_bytes(ring) / 4);

	if (w->choice.kernel)
		return;
	((u32 *)ring->mem)[at] = take(&w->in, 4);
	w->overwritten = true;
}

static void poll_and_arm(struct world *w)
{
	u8 what = take(&w->in, 1);

	world_poll(w);
	if (what & 1)
		WRITE_ONCE(w->send_cq.ctl->arm, what >> 2 & 3);
	if (what & 2)
		WRITE_ONCE(w->recv_cq.ctl->arm, what >> 4 & 3);
	weft_cq_moderate(&w->send_cq, what >> 6, 1000);
}

/* --- memory keys --- */

static void change_memory(struct world *w)
{
	u8 what = take(&w->in, 1);
	u32 which = (what & 15) % REGIONS;
	struct weft_mem_region *busy = NULL;
	struct weft_mem_ref ref;

	switch (what >> 4 & 7) {
	case 0:
		/* A kernel consumer keeps what it has attached to a request. */
		if (!w->choice.kernel || which != 2 || w->sent_done == w->posted)
			region_destroy(w, which);
		break;
	case 1:
		if (!w->regions[which])
			region_make(w, which);
		break;
	case 2:
		weft_mem_get(&w->reader, region_stag(w, which), IOVA, 8, WEFT_MEM_REMOTE_READ,
			     &ref);
		break;
	case 3:
		weft_mem_release(&w->reader);
		break;
	case 4:
		weft_mem_invalidate(&w->reader, region_stag(w, which), true, &busy);
		weft_mem_quiesce(busy);
		break;
	default:
		weft_stream_set_access(w->st, what);
	}
}

/* --- the peer and TCP --- */

static void deliver(struct world *w, const u8 *bytes, u32 len)
{
	u8 shape = take(&w->in, 1);
	u32 first = shape & 1 ? 1 + take(&w->in, 1) : len;

	if (!len)
		return;
	first = min(first, len);
	wire_deliver(w, host_skb(bytes, first, shape));
	if (first < len && wire_is_up(w))
		wire_deliver(w, host_skb(bytes + first, len - first, shape));
}

static void peer_sends(struct world *w)
{
	static u8 fpdu[FPDU_MAX + 256];
	u32 len = peer_make(w, fpdu);

	if (wire_is_up(w) && !w->wire.fin_received)
		deliver(w, fpdu, len);
}

/* Some FPDUs in a buffer. */
static void peer_sends_many(struct world *w)
{
	static u8 fpdus[8 * (FPDU_MAX + 256)];
	u32 count = 1 + take(&w->in, 1) % 8, len = 0;

	while (count--)
		len += peer_make(w, fpdus + len);
	if (wire_is_up(w) && !w->wire.fin_received)
		deliver(w, fpdus, len);
}

static void peer_sends_raw(struct world *w)
{
	u32 len = min_t(size_t, take(&w->in, 1), w->in.left);
	u8 *bytes = exact(w->in.at, len);

	w->in.at += len;
	w->in.left -= len;
	w->peer.first |= len > 0;
	w->peer.sent_pos += len;
	if (wire_is_up(w) && !w->wire.fin_received)
		deliver(w, bytes, len);
	free(bytes);
}

/* Comes while a process has the socket lock. */
static void peer_sends_meanwhile(struct world *w)
{
	static u8 fpdu[FPDU_MAX + 256];
	u32 len = peer_make(w, fpdu);

	if (!wire_is_up(w) || w->wire.fin_received || w->wire.backlog)
		return;
	w->wire.backlog = host_skb(fpdu, len, take(&w->in, 1));
	w->wire.received += len;
}

/* What was queued because the lock was held. */
static void flush_backlog(struct world *w)
{
	struct sk_buff *skb = w->wire.backlog;

	w->wire.backlog = NULL;
	if (skb)
		wire_deliver(w, skb);
}

static void peer_closes(struct world *w)
{
	if (!wire_is_up(w) || w->wire.fin_received)
		return;
	flush_backlog(w);
	w->wire.fin_received = true;
	wire_changed(w);
}

static void connection_breaks(struct world *w)
{
	static const int errors[] = { ECONNRESET, ETIMEDOUT, EPIPE, EHOSTUNREACH };
	u8 which = take(&w->in, 1);

	if (!wire_is_up(w))
		return;
	flush_backlog(w);
	w->wire.reset = true;
	w->wire.error = errors[which % ARRAY_SIZE(errors)];
	w->wire.sk.unacked = 0;
	wire_changed(w);
}

/* --- the QP --- */

static void settle(struct world *w)
{
	u32 turns = 0;

	flush_backlog(w);
	while (host_run_work())
		PROMISE(turns++ < 10000);
}

/* And connected again, or for the first time. */
static void reset(struct world *w)
{
	if (READ_ONCE(w->st->state) != WEFT_QP_IDLE)
		weft_stream_abort_wait(w->st);
	world_poll(w);
	peer_look(w);
	if (weft_stream_reset(w->st))
		return;
	/* What was posted goes without a completion. */
	world_poll(w);
	w->sent_done = w->posted;
	w->received_done = w->received;
	world_start(w);
}

static void inspect(struct world *w)
{
	struct weft_stream_details details;

	weft_stream_inspect(w->st, &details);
	weft_stream_count_tcp_all(&w->index, 0);
	PROMISE(weft_stream_waits(w->st) || w->overwritten || w->sq.cons == w->posted);
}

static void end_it(struct world *w)
{
	switch (take(&w->in, 1) & 3) {
	case 0:
		weft_stream_close(w->st);
		break;
	case 1:
		weft_stream_abort(w->st);
		break;
	case 2:
		weft_stream_unreachable(w->st);
		break;
	default:
		if (w->started && !w->choice.initiator) {
			w->peer.first = true; /* as far as the gate goes */
			weft_stream_enable_tx(w->st);
		}
	}
}

static void run_work(struct world *w)
{
	host_run_work();
}

static void pass_time(struct world *w)
{
	host_pass_time(1UL << (take(&w->in, 1) & 13));
}

static void ack(struct world *w)
{
	u32 bytes = take(&w->in, 1) * 100;

	if (wire_is_up(w))
		wire_ack(w, bytes);
}

static void set_space(struct world *w)
{
	w->wire.sk.space = take(&w->in, 1) * 40;
}

static void fail_allocation(struct world *w)
{
	host.fail_after = take(&w->in, 1) & 15;
}

static void limit_ord(struct world *w)
{
	weft_stream_limit_ord(w->st, take(&w->in, 1) & 3);
}

static void set_user_timeout(struct world *w)
{
	weft_stream_set_user_timeout(w->st, take(&w->in, 1));
}

static void kill_process(struct world *w)
{
	host.killed = take(&w->in, 1) & 1;
}

static void set_mss(struct world *w)
{
	w->wire.sk.mss = 128 + take(&w->in, 1) * 20;
}

/* clang-format off */

#define EVENT(f)	{ f, #f }

/* By the byte of the script; what happens often stands more than once. */
static const struct {
	void (*run)(struct world *w);
	const char *name;
} events[32] = {
	EVENT(peer_sends), EVENT(peer_sends), EVENT(peer_sends_many), EVENT(peer_sends_raw),
	EVENT(peer_sends_meanwhile), EVENT(post_send), EVENT(post_send), EVENT(post_receive),
	EVENT(ring_doorbell), EVENT(ring_doorbell), EVENT(run_work), EVENT(settle),
	EVENT(pass_time), EVENT(ack), EVENT(set_space), EVENT(peer_closes),
	EVENT(connection_breaks), EVENT(end_it), EVENT(change_memory), EVENT(change_memory),
	EVENT(overwrite), EVENT(poll_and_arm), EVENT(fail_allocation), EVENT(reset),
	EVENT(limit_ord), EVENT(inspect), EVENT(set_user_timeout), EVENT(ring_doorbell),
	EVENT(kill_process), EVENT(set_mss), EVENT(ack), EVENT(post_receive),
};

/* clang-format on */

/* FUZZ_TRACE in the environment: the script is printed. */
static void happen(struct world *w)
{
	u32 which = take(&w->in, 1) & 31;
	static int traced = -1;

	if (traced < 0)
		traced = !!getenv("FUZZ_TRACE");
	if (traced)
		fprintf(stderr, "%zu bytes left, %s: %s\n", w->in.left,
			weft_qp_state_name(w->st->state), events[which].name);
	events[which].run(w);
}

/* What was posted completes, each request once, unless the QP is destroyed first. */
static void fail(struct world *w)
{
	u32 turns = 0;

	weft_stream_abort(w->st);
	if (w->owes_doorbell)
		ring_doorbell(w);
	settle(w);
	/* a worker may wait for memory */
	while (host_next_timer() >= 0) {
		PROMISE(turns++ < 1000);
		host_pass_time(host_next_timer());
		settle(w);
	}
	world_check(w);
}

int fuzz_one(const u8 *data, size_t size)
{
	struct world *w = &world;

	memset(w, 0, offsetof(struct world, peer));
	memset(&w->regions, 0, sizeof(*w) - offsetof(struct world, regions));
	w->in = (struct input){ data, size };
	host_reset();
	choose(&w->choice, &w->in);
	weft_stream_module_init();
	peer_connect(w);
	world_make(w);
	if (take(&w->in, 1) & 1)
		world_start(w);
	while (w->in.left) {
		happen(w);
		PROMISE(!host.atomic && !host.rcu && !host.non_block && !host.mutexes &&
			!w->wire.sk.owned);
		peer_look(w);
		world_poll(w);
		host_grace_period();
	}
	flush_backlog(w);
	host.fail_after = 0;
	host.killed = false;
	if (!w->choice.sudden)
		fail(w);
	world_end(w);
	weft_stream_module_exit();
	PROMISE(host_is_clean());
	return 0;
}
