// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "stream_world.h"

#include <linux/jiffies.h>

#include "engine/ops/op.h"
#include "engine/ops/rnr.h"
#include "engine/state/claim.h"
#include "engine/state/loopback.h"
#include "net/mpa_tx.h"
#include "net/tcp_info.h"
#include "net/tcp_internals.h"

static struct stream_world *world_of(struct weft_stream *st)
{
	return container_of(st, struct stream_world, st);
}

/* Played: net/. */
int weft_sock_error(const struct weft_sock *s)
{
	return container_of(s, struct stream_world, sock)->net.error;
}

enum weft_sock_state weft_sock_state(const struct weft_sock *s)
{
	return container_of(s, struct stream_world, sock)->net.fin ? WEFT_SOCK_PEER_CLOSED :
								     WEFT_SOCK_UP;
}

u64 weft_tcp_bytes_acked(const struct weft_sock *s)
{
	return container_of(s, struct stream_world, sock)->net.acked;
}

void weft_sock_lock(struct weft_sock *s)
{
	if (s->sk)
		lock_sock(s->sk);
}

void weft_sock_unlock(struct weft_sock *s)
{
	if (s->sk)
		release_sock(s->sk);
}

bool weft_sock_call(struct weft_sock *s, void (*callback)(void *owner))
{
	return false;
}

u32 weft_tcp_charge(struct sock *sk, u32 charged, u32 bytes)
{
	return bytes;
}

/* Of a stream that has a socket to write to something is unacknowledged. */
bool weft_tcp_await_space(struct sock *sk)
{
	return sk;
}

bool weft_mpa_tx_is_accepted(const struct weft_mpa_tx *tx, u64 pos)
{
	return pos <= tx->pushed;
}

void weft_mpa_tx_refresh(struct weft_mpa_tx *tx)
{
}

int weft_mpa_tx_push(struct weft_mpa_tx *tx, bool more)
{
	struct stream_world *w = container_of(tx, struct stream_world, st.tx.sock);

	w->net.pushes++;
	w->net.inside = w->send_cq.doorbells.inside + w->recv_cq.doorbells.inside;
	if (w->net.push_error)
		return w->net.push_error;
	tx->pushed = tx->pos;
	tx->count = 0;
	if (w->net.mark) {
		w->net.mark = false;
		w->net.segments++;
		weft_tx_mark(&w->st.tx.claim);
	}
	if (w->net.marks_until && time_before(jiffies, w->net.marks_until))
		weft_tx_mark(&w->st.tx.claim);
	return 0;
}

/* Played: the engine's path. */
enum weft_segment_result weft_segment_next(struct weft_stream *st)
{
	struct stream_world *w = world_of(st);

	if (w->net.no_context)
		return WEFT_SEGMENT_LATER;
	if (!w->net.segments)
		return WEFT_SEGMENT_NONE;
	if (w->net.fetch)
		weft_sendq_fetch(&w->sq);
	st->tx.msgs = --w->net.segments > 0; /* in hand */
	st->tx.sock.pos += w->net.segment_bytes;
	st->tx.sock.count = 1;
	return WEFT_SEGMENT_STAGED;
}

void weft_segment_drop(struct weft_tx *tx)
{
	tx->msgs = 0;
	tx->cur = 0;
}

static void saw(struct stream_world *w, u32 *calls)
{
	++*calls;
	w->seen.state = READ_ONCE(w->st.state);
	w->seen.todo = READ_ONCE(w->st.todo);
}

static void saw_release(struct kref *ref)
{
	struct stream_world *w = container_of(ref, struct stream_world, st.ref);

	saw(w, &w->seen.releases);
}

static void saw_teardown(struct weft_stream *st)
{
	saw(world_of(st), &world_of(st)->seen.teardowns);
}

static void saw_want_tx(struct weft_stream *st)
{
	saw(world_of(st), &world_of(st)->seen.want_tx);
}

static void saw_want_rx(struct weft_stream *st)
{
	saw(world_of(st), &world_of(st)->seen.want_rx);
}

static bool saw_defer(struct weft_stream *st)
{
	struct stream_world *w = world_of(st);

	saw(w, &w->seen.defers);
	if (w->posts_in_defer) {
		w->posts_in_defer--;
		w->net.segments++;
		post_send(w, WEFT_WR_SEND, 0);
	}
	return w->defer;
}

static const struct weft_stream_hooks counting_hooks = {
	.release = saw_release,
	.teardown = saw_teardown,
	.want_tx = saw_want_tx,
	.want_rx = saw_want_rx,
	.defer = saw_defer,
};

/* A process that asks for an event each time, and posts whenever it gets one. */
static void completion(void *owner)
{
	struct stream_world *w = owner;

	w->told_at = w->net.pushes;
	if (!w->reposts)
		return;
	w->reposts--;
	w->send_cq.ctl->arm = WEFT_ARM_NEXT;
	w->recv_cq.ctl->arm = WEFT_ARM_NEXT;
	post_send(w, WEFT_WR_SEND, 0);
	post_receive(w);
}

static void overflow(void *owner)
{
	struct stream_world *w = owner;

	w->overflows++;
	w->cons_at_overflow = weft_sendq_ctl(&w->sq)->cons;
}

static const struct weft_cq_events cq_events = { completion, overflow };

static void make_cq(struct kunit *test, struct stream_world *w, struct weft_cq *cq)
{
	int err = weft_cq_init(cq, STREAM_CQES, NULL, &cq_events, w, &w->counters);

	KUNIT_ASSERT_EQ(test, err, 0);
}

static void make_queues(struct kunit *test, struct stream_world *w)
{
	KUNIT_ASSERT_EQ(test, weft_sendq_init(&w->sq, STREAM_SQES, 1, 0, NULL), 0);
	KUNIT_ASSERT_EQ(test, weft_recvq_init(&w->rq, STREAM_RQES, 1, NULL), 0);
	w->sq.user = true;
	w->rq.user = true;
	w->st.rx.rwr.sge = w->receive_sge;
	make_cq(test, w, &w->send_cq);
	make_cq(test, w, &w->recv_cq);
}

int make_stream(struct kunit *test)
{
	struct stream_world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	struct weft_stream *st = &w->st;

	KUNIT_ASSERT_NOT_NULL(test, w);
	KUNIT_ASSERT_EQ(test, weft_counters_init(&w->counters), 0);
	make_queues(test, w);
	kref_init(&st->ref);
	spin_lock_init(&st->lock);
	spin_lock_init(&st->complete_lock);
	st->qpn = STREAM_QPN;
	st->state = WEFT_QP_RTS;
	st->gate_open = true;
	st->hooks = &counting_hooks;
	st->index = &w->index;
	weft_rnr_init(st);
	weft_counters_redirect(&st->counters, &w->counters);
	st->cfg = (struct weft_stream_config){
		.sq = &w->sq,
		.rq = &w->rq,
		.send_cq = &w->send_cq,
		.recv_cq = &w->recv_cq,
		.counters = &st->counters,
		.signal_all = true,
	};
	st->readq_mem = kunit_kzalloc(test, weft_readq_bytes(STREAM_ORD, 1), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, st->readq_mem);
	weft_readq_init(&st->readq, st->readq_mem, STREAM_ORD, 1);
	test->priv = w;
	return 0;
}

void free_stream(struct kunit *test)
{
	struct stream_world *w = test->priv;

	if (!w)
		return;
	weft_rnr_cancel(&w->st);
	weft_rnr_end(&w->st);
	weft_cq_free(&w->send_cq);
	weft_cq_free(&w->recv_cq);
	weft_sendq_free(&w->sq);
	weft_recvq_free(&w->rq);
	weft_counters_free(&w->counters);
}

void post_send(struct stream_world *w, u8 opcode, u8 flags)
{
	struct weft_sqe *sqe = weft_ring_entry(&w->sq.ring, w->posted);

	memset(sqe, 0, w->sq.ring.stride);
	sqe->wr_id = w->posted;
	sqe->opcode = opcode;
	sqe->flags = flags;
	WRITE_ONCE(weft_sendq_ctl(&w->sq)->prod, ++w->posted);
}

void post_receive(struct stream_world *w)
{
	struct weft_rqe *rqe = weft_ring_entry(&w->rq.ring, w->received);

	memset(rqe, 0, w->rq.ring.stride);
	rqe->wr_id = w->received;
	WRITE_ONCE(w->rq.ctl->prod, ++w->received);
}

struct weft_swr *stage_send(struct kunit *test, struct stream_world *w, u64 end)
{
	struct weft_swr *swr = weft_sendq_fetch(&w->sq);

	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(swr));
	swr->tx_end = end;
	swr->awaits_response = weft_tx_op(swr->wqe.opcode)->flags & WEFT_TXF_RESPONSE;
	return swr;
}

void expect_sends(struct kunit *test, struct stream_world *w, u32 first, u32 end, u8 status)
{
	struct weft_cqe cqe;

	for (; first != end; first++) {
		KUNIT_ASSERT_EQ(test, weft_cq_poll(&w->send_cq, &cqe, 1), 1U);
		KUNIT_ASSERT_EQ(test, cqe.wr_id, (u64)first);
		KUNIT_ASSERT_EQ(test, cqe.status, status);
		KUNIT_ASSERT_EQ(test, cqe.qp_num, STREAM_QPN);
	}
	KUNIT_ASSERT_EQ(test, weft_cq_poll(&w->send_cq, &cqe, 1), 0U);
}

void join_loopback(struct stream_world *w, struct weft_loopback *lb, struct weft_loopback *peer)
{
	lb->end.owner = &w->st;
	lb->end.peer = &peer->end;
	lb->end.mode = WEFT_LOOPBACK_NETNS;
	atomic_set(&lb->end.users, 1);
	w->st.loopback = lb;
	w->index.loopback = WEFT_LOOPBACK_NETNS;
}
