// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The world of stream_host.h: what lies above the engine is observed, what lies below is simulated.
 */
#include "stream_host.h"

#include "net/loopback.h"
#include "proto/direct.h"
#include "ring/mmap.h"

struct world world;

/* --- memory of queues: each an allocation of its own --- */

struct weft_ring_map {
	u32 bytes;
};

struct weft_ring_map *weft_ring_map_get(struct weft_ring_space *space, u32 bytes, void **mem)
{
	struct weft_ring_map *map = kmalloc(sizeof(*map), GFP_KERNEL);

	if (!map)
		return ERR_PTR(-ENOMEM);
	map->bytes = bytes;
	*mem = kzalloc(bytes, GFP_KERNEL);
	if (*mem)
		return map;
	kfree(map);
	return ERR_PTR(-ENOMEM);
}

void weft_ring_map_put(struct weft_ring_map *map, void *mem, u32 bytes)
{
	PROMISE(map->bytes == bytes);
	kfree(mem);
	kfree(map);
}

/* --- TCP --- */

static struct world *world_of(const struct sock *sk)
{
	return container_of(sk, struct world, wire.sk);
}

/* A callback, with the socket locked. */
static void call(struct wire *wire, void (*fn)(void *owner))
{
	PROMISE(wire->sk.owned);
	if (fn)
		fn(wire->s.owner);
}

static void softirq(struct wire *wire, size_t event)
{
	void (*fn)(void *owner) = NULL;

	PROMISE(!wire->sk.owned);
	host_softirq_enter();
	wire->sk.owned = true;
	if (wire->s.events)
		fn = *(void (**)(void *))((const char *)wire->s.events + event);
	call(wire, fn);
	wire->sk.owned = false;
	host_softirq_leave();
}

static void append(struct sk_buff **at, struct sk_buff *skb)
{
	while (*at)
		at = &(*at)->next;
	*at = skb;
}

/* In process context, but nothing may sleep. */
static void work_off_backlog(struct wire *wire)
{
	struct sk_buff *skb = wire->backlog;

	wire->backlog = NULL;
	if (!skb)
		return;
	append(&wire->sk.queue, skb);
	host.atomic++;
	if (wire->s.events)
		call(wire, wire->s.events->readable);
	host.atomic--;
}

void lock_sock(struct sock *sk)
{
	might_sleep();
	HOST_CHECK(!sk->owned);
	sk->owned = true;
}

void release_sock(struct sock *sk)
{
	HOST_CHECK(sk->owned);
	work_off_backlog(&world_of(sk)->wire);
	sk->owned = false;
}

int tcp_sendmsg_locked(struct sock *sk, struct msghdr *msg, size_t bytes)
{
	struct world *w = world_of(sk);
	struct wire *wire = &w->wire;
	const struct bio_vec *vec = msg->msg_iter.vec;
	u32 taken = min3((u32)bytes, sk->space, OUT_MAX - w->peer.len), left = taken, i;

	HOST_CHECK(sk->owned && bytes == msg->msg_iter.bytes);
	if (wire->reset || wire->fin_sent)
		return wire->error ? -wire->error : -EPIPE;
	if (!taken || (host.fail_after && !--host.fail_after)) {
		wire->nospace = true;
		return -EAGAIN;
	}
	for (i = 0; left; i++) {
		u32 n = min(vec[i].bv_len, left);

		HOST_CHECK(i < msg->msg_iter.count);
		memcpy(w->peer.out + w->peer.len, vec[i].bv_page->address + vec[i].bv_offset, n);
		w->peer.len += n;
		left -= n;
	}
	sk->space -= taken;
	sk->unacked += taken;
	sk->tail.len += taken;
	sk->write_seq += taken;
	wire->written += taken;
	if (!host.in_softirq && !host.atomic)
		work_off_backlog(wire); /* as it does between two buffers */
	return taken;
}

bool weft_tcp_await_space(struct sock *sk)
{
	if (!sk->unacked)
		return false;
	world_of(sk)->wire.nospace = true;
	return true;
}

static struct wire *wire_of(const struct weft_sock *s)
{
	return container_of(s, struct wire, s);
}

int weft_sock_error(const struct weft_sock *s)
{
	return -wire_of(s)->error;
}

enum weft_sock_state weft_sock_state(const struct weft_sock *s)
{
	const struct wire *wire = wire_of(s);

	if (wire->reset || (wire->fin_sent && wire->fin_received && !wire->sk.unacked))
		return WEFT_SOCK_LOST;
	return wire->fin_received ? WEFT_SOCK_PEER_CLOSED : WEFT_SOCK_UP;
}

int weft_sock_local(const struct weft_sock *s, struct sockaddr_storage *out)
{
	return 0;
}

int weft_sock_peer(const struct weft_sock *s, struct sockaddr_storage *out)
{
	return -ENOTCONN;
}

/* The peer is never on this host. */

bool weft_loopback_may_find(const struct weft_sock *sock, u8 mode)
{
	return false;
}

void weft_loopback_join(struct weft_loopback_end *end, struct weft_sock *sock, void *owner)
{
	HOST_CHECK(false);
}

void weft_loopback_leave(struct weft_loopback_end *end)
{
	HOST_CHECK(false);
}

void weft_loopback_put(struct weft_loopback_end *end)
{
	HOST_CHECK(false);
}

bool weft_loopback_lock(struct weft_loopback_end *end)
{
	HOST_CHECK(false);
	return true;
}

void weft_loopback_unlock(struct weft_loopback_end *end, bool slow)
{
	HOST_CHECK(false);
}

void weft_sock_set_user_timeout(struct weft_sock *s, unsigned int ms)
{
	might_sleep();
}

void weft_sock_set_memalloc(struct weft_sock *s)
{
	might_sleep();
	s->sk->memalloc = true;
}

void weft_sock_attach(struct weft_sock *s, const struct weft_sock_events *events, void *owner)
{
	lock_sock(s->sk);
	s->events = events;
	s->owner = owner;
	release_sock(s->sk);
}

void weft_sock_detach(struct weft_sock *s)
{
	lock_sock(s->sk);
	s->events = NULL;
	release_sock(s->sk);
}

void weft_sock_lock(struct weft_sock *s)
{
	lock_sock(s->sk);
}

void weft_sock_unlock(struct weft_sock *s)
{
	release_sock(s->sk);
}

/* Only a burst calls it, and weft_tcp_in_burst() finds none here. */
bool weft_sock_call(struct weft_sock *s, void (*callback)(void *owner))
{
	HOST_CHECK(!s);
	return true;
}

void weft_sock_half_close(struct weft_sock *s)
{
	might_sleep();
	PROMISE(!wire_of(s)->released);
	wire_of(s)->fin_sent = true;
}

void weft_sock_reset(struct weft_sock *s)
{
	might_sleep();
	wire_of(s)->reset = true;
}

static void drop_queue(struct sk_buff **at)
{
	struct sk_buff *skb;

	while ((skb = *at)) {
		*at = skb->next;
		host_skb_free(skb);
	}
}

void weft_sock_release(struct weft_sock *s)
{
	struct wire *wire = wire_of(s);

	might_sleep();
	PROMISE(!wire->released && !s->events && !wire->sk.owned);
	wire->released = true;
	drop_queue(&wire->sk.queue);
	drop_queue(&wire->backlog);
	wire->sk.read = 0;
}

u64 weft_tcp_bytes_acked(const struct weft_sock *s)
{
	return wire_of(s)->written - s->sk->unacked;
}

bool weft_tcp_all_acked(const struct weft_sock *s)
{
	return !s->sk->unacked;
}

u64 weft_tcp_bytes_received(const struct weft_sock *s)
{
	return wire_of(s)->received;
}

void weft_tcp_get_info(struct weft_sock *s, struct weft_tcp_info *out)
{
	might_sleep();
	memset(out, 0, sizeof(*out));
}

void weft_mem_reserve_check(struct sock *sk)
{
	HOST_CHECK(sk->owned);
}

void weft_mem_reserve_module_exit(void)
{
}

/* --- what the peer does to the connection --- */

bool wire_is_up(const struct world *w)
{
	return w->started && !w->wire.released && !w->wire.reset;
}

void wire_connect(struct world *w)
{
	struct wire *wire = &w->wire;

	memset(wire, 0, sizeof(*wire));
	wire->sk.mss = w->choice.mss;
	wire->sk.gso_segs = 3;
	wire->sk.space = 20000;
	wire->sk.write_seq = 0xfffff000U;
	wire->s.sk = &wire->sk;
	wire->s.allocation = GFP_KERNEL;
}

void wire_deliver(struct world *w, struct sk_buff *skb)
{
	struct wire *wire = &w->wire;

	wire->received += skb->len;
	append(&wire->sk.queue, skb);
	softirq(wire, offsetof(struct weft_sock_events, readable));
}

void wire_ack(struct world *w, u32 bytes)
{
	struct wire *wire = &w->wire;
	u32 n = min(bytes, wire->sk.unacked);

	wire->sk.unacked -= n;
	wire->sk.space += n;
	if (!wire->sk.unacked)
		wire->sk.tail.len = 0;
	if (wire->nospace && wire->sk.space && !wire->released) {
		wire->nospace = false;
		softirq(wire, offsetof(struct weft_sock_events, writable));
	}
	if (wire->fin_sent && wire->fin_received && !wire->sk.unacked && !wire->released)
		wire_changed(w);
}

void wire_changed(struct world *w)
{
	softirq(&w->wire, offsetof(struct weft_sock_events, changed));
}

/* --- above the engine --- */

static void cm_ready(void *cm)
{
	PROMISE(!((struct world *)cm)->choice.initiator);
}

static void cm_lost(void *cm)
{
	PROMISE(((struct world *)cm)->choice.direct);
}

static void cm_closing(void *cm, int error)
{
	struct world *w = cm;

	might_sleep();
	PROMISE(error <= 0);
	w->closings++;
	PROMISE(w->closings == w->started && w->closeds == w->closings - 1);
}

static void cm_closed(void *cm)
{
	struct world *w = cm;

	might_sleep();
	w->closeds++;
	PROMISE(w->closeds == w->closings && w->wire.released);
}

static const struct weft_stream_cm_events cm_events = {
	.ready = cm_ready,
	.lost = cm_lost,
	.closing = cm_closing,
	.closed = cm_closed,
};

static void qp_async(void *owner, enum weft_stream_event event)
{
	struct world *w = owner;

	might_sleep();
	PROMISE(++w->asyncs[event] <= w->started);
}

static const struct weft_stream_qp_events qp_events = { .async = qp_async };

static void cq_completion(void *owner)
{
	(void)owner;
}

static void cq_overflow(void *owner)
{
	((struct world *)owner)->overflowed = true;
}

static const struct weft_cq_events cq_events = { cq_completion, cq_overflow };

/* Completions come in order, each once. */
static void take_completion(struct world *w, const struct weft_cqe *cqe, u32 *done)
{
	if (!w->overwritten)
		PROMISE(cqe->wr_id == *done && cqe->qp_num == w->st->qpn);
	PROMISE(cqe->vendor_err < WEFT_FAULT_COUNT);
	PROMISE(!cqe->status == !cqe->vendor_err);
	++*done;
}

static void poll_one(struct world *w, struct weft_cq *cq, u32 *cons, u32 *done)
{
	struct weft_cqe cqe;

	if (!cq->user) {
		while (weft_cq_poll(cq, &cqe, 1))
			take_completion(w, &cqe, done);
		return;
	}
	for (; *cons != cq->prod; ++*cons)
		take_completion(w, weft_ring_entry(&cq->ring, *cons), done);
	WRITE_ONCE(cq->ctl->cons, *cons);
}

void world_poll(struct world *w)
{
	poll_one(w, &w->send_cq, &w->send_cons, &w->sent_done);
	poll_one(w, &w->recv_cq, &w->recv_cons, &w->received_done);
}

/* --- memory --- */

/* Access rights of the regions; a peer never gets to the fourth, which is another domain's. */
static const struct {
	u8 kind;
	u32 pd;
	u32 access;
} kinds[REGIONS] = {
	/* clang-format off */
	{ WEFT_STAG_REGION, OUR_PD, 0x1f },
	{ WEFT_STAG_REGION, OUR_PD, IB_ACCESS_LOCAL_WRITE },
	{ WEFT_STAG_FASTREG, OUR_PD, 0xf },
	{ WEFT_STAG_REGION, OTHER_PD, 0x1f },
	{ WEFT_STAG_WINDOW2, OUR_PD, 0 },
	{ WEFT_STAG_WINDOW1, OUR_PD, 0 },
	/* clang-format on */
};

static struct weft_backing *make_backing(void)
{
	struct ib_umem *umem = malloc(sizeof(*umem));
	struct page **pages = malloc(REGION_PAGES * sizeof(*pages));
	struct weft_backing *b;
	u32 i;

	for (i = REGION_PAGES; i--;) {	/* in no order that an address would show */
		pages[i] = host_pages(1, GFP_KERNEL);
		HOST_CHECK(pages[i]);
		memset(pages[i]->address, REGION_FILL, PAGE_SIZE);
	}
	*umem = (struct ib_umem){
		.sgt_append.sgt = { pages, REGION_PAGES },
		.offset = REGION_FIRST,
	};
	b = weft_backing_from_umem(umem);
	HOST_CHECK(!IS_ERR(b));
	return b;
}

struct weft_mem_region *region_make(struct world *w, u32 which)
{
	struct weft_mem_region *mr;
	struct weft_stag_grant grant = {
		.access = kinds[which].access,
		.iova = IOVA,
		.length = REGION_LEN,
	};
	u32 failing = host.fail_after;

	host.fail_after = 0;
	mr = weft_stag_alloc(&w->stags, kinds[which].kind, kinds[which].pd);
	HOST_CHECK(!IS_ERR(mr));
	if (which < 4) {
		grant.stag = mr->grant.stag;
		grant.backing = make_backing();
		HOST_CHECK(!weft_stag_enable(mr, &grant));
	}
	if (mr->kind == WEFT_STAG_FASTREG)
		mr->next.backing = weft_backing_pages(1);
	host.fail_after = failing;
	w->regions[which] = mr;
	return mr;
}

static bool is_filled(const struct weft_backing *b, u32 from, u32 to)
{
	for (; from < to; from++) {
		const u8 *page = b->vec[from / PAGE_SIZE].bv_page->address;

		if (page[from % PAGE_SIZE] != REGION_FILL)
			return false;
	}
	return true;
}

/* Nothing was written in front of a region or behind it, nor to another's. */
static void check_backing(const struct weft_backing *b, bool untouched)
{
	u32 end = REGION_PAGES * PAGE_SIZE, i;

	if (!b || b->count != REGION_PAGES)
		return;
	PROMISE(is_filled(b, 0, REGION_FIRST));
	PROMISE(is_filled(b, REGION_FIRST + REGION_LEN, end));
	/* Of the whole, some bytes will do. */
	for (i = 0; untouched && i < end; i += 61)
		PROMISE(is_filled(b, i, i + 1));
}

/* As deregistration does; it is refused while windows are bound. */
void region_destroy(struct world *w, u32 which)
{
	struct weft_mem_region *mr = w->regions[which];

	if (!mr || weft_stag_revoke(mr, true))
		return;
	w->regions[which] = NULL;
	if (mr->kind == WEFT_STAG_REGION || mr->kind == WEFT_STAG_FASTREG) {
		check_backing(mr->grant.backing, mr->pd == OTHER_PD);
		weft_backing_free(mr->grant.backing);
		weft_backing_free(mr->next.backing);
	}
	weft_stag_free(&w->stags, mr);
}

u32 region_stag(const struct world *w, u32 which)
{
	const struct weft_mem_region *mr = w->regions[which % REGIONS];

	return mr ? mr->grant.stag : 0x7700;
}

/* --- birth and end --- */

static void make_queues(struct world *w)
{
	struct weft_ring_space *space = w->choice.kernel ? NULL : (void *)w;

	HOST_CHECK(!weft_sendq_init(&w->sq, SQES, SGES, INLINE_MAX, space));
	HOST_CHECK(!weft_recvq_init(&w->rq, RQES, SGES, space));
	HOST_CHECK(!weft_cq_init(&w->send_cq, CQES, space, &cq_events, w, &w->counters));
	HOST_CHECK(!weft_cq_init(&w->recv_cq, CQES, space, &cq_events, w, &w->counters));
	w->rq.has_doorbell = w->choice.doorbells || w->choice.kernel;
	weft_sendq_ctl(&w->sq)->defer_doorbell = w->choice.defers;
}

/* The rest of the world: another stream gets done with its copy, the peer reads. */
static bool outside(void)
{
	bool copied = world.reader.held, acks = world.wire.sk.unacked && wire_is_up(&world);

	weft_mem_release(&world.reader);
	if (acks && !world.wire.sk.owned)
		wire_ack(&world, OUT_MAX);
	return copied || acks;
}

void world_make(struct world *w)
{
	struct weft_stream_config cfg = {
		.pd = OUR_PD,
		.rq_pd = OUR_PD,
		.kernel = w->choice.kernel,
		.signal_all = true,
		.sq = &w->sq,
		.rq = &w->rq,
		.send_cq = &w->send_cq,
		.recv_cq = &w->recv_cq,
		.stags = &w->stags,
		.counters = &w->counters,
		.db_stat = w->choice.kernel ? NULL : &w->db,
		.events = &qp_events,
		.owner = w,
	};
	u32 i;

	host.outside = outside;
	HOST_CHECK(!weft_counters_init(&w->counters));
	weft_stag_table_init(&w->stags);
	weft_stream_index_init(&w->index);
	w->index.rnr_timeout = w->choice.rnr_timeout;
	w->index.sq_poll_interval = w->choice.sq_poll;
	w->index.atomics = w->choice.atomics;
	make_queues(w);
	for (i = 0; i < REGIONS; i++)
		region_make(w, i);
	w->reader = (struct weft_mem_user){ .table = &w->stags, .pd = OUR_PD, .qpn = 99 };
	w->st = weft_stream_create(&w->index, &cfg);
	HOST_CHECK(!IS_ERR(w->st));
	weft_stream_set_access(w->st, w->choice.limit_access ? IB_ACCESS_REMOTE_READ : 0xf);
}

void world_start(struct world *w)
{
	const struct choices *c = &w->choice;
	const struct weft_mpa_result mpa = {
		.revision = 2,
		.crc = c->crc,
		.markers_tx = c->markers_tx,
		.markers_rx = c->markers_rx,
		.enhanced = true,
		.rtr = c->rtr,
		.direct = c->direct,
		.extensions = c->direct ? WEFT_DIRECT_EXTENSIONS : 0,
		.ird = c->ird,
		.ord = c->ord,
	};
	int err;

	if (weft_stream_reserve(w->st))
		return;
	wire_connect(w);
	peer_connect(w);
	w->started++;
	err = weft_stream_start(w->st, &w->wire.s, &mpa, c->initiator, &cm_events, w);
	if (!err)
		return;
	PROMISE(err == -ENOMEM);
	w->started--;
	w->wire.released = true;
	weft_stream_unreserve(w->st);
}

/* What was posted has completed, each request once, whatever happened. */
void world_check(struct world *w)
{
	world_poll(w);
	if (w->overwritten || w->overflowed)
		return;
	PROMISE(w->sent_done == w->posted);
	PROMISE(w->received_done == w->received);
}

void world_end(struct world *w)
{
	u32 i, turns;

	weft_stream_end(w->st);
	PROMISE(w->closeds == w->started && w->closings == w->started);
	world_poll(w);
	peer_look(w);
	weft_stream_put(w->st);
	weft_mem_release(&w->reader);
	for (turns = 0; turns < 2; turns++)	/* windows first, then what they borrow */
		for (i = REGIONS; i--;)
			region_destroy(w, i);
	host_grace_period();
	PROMISE(xa_empty(&w->stags.xa));
	weft_stag_table_destroy(&w->stags);
	weft_stream_index_destroy(&w->index);
	weft_cq_free(&w->send_cq);
	weft_cq_free(&w->recv_cq);
	weft_sendq_free(&w->sq);
	weft_recvq_free(&w->rq);
	weft_counters_free(&w->counters);
}
