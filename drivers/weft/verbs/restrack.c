// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What `rdma resource show -dd` says about our objects: name and value, one after
 * the other, in a nest of the driver's. Documentation/operating.md explains them.
 *
 * An object that is being destroyed (verbs/tracked.h) is answered for with -EAGAIN, at which
 * the core leaves it out of a dump.
 */
#include "verbs/restrack.h"

#include <net/netlink.h>
#include <rdma/rdma_cm.h>
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>

#include "cm/inspect.h"
#include "engine/life/introspect.h"
#include "engine/life/stream.h"
#include "mem/stag.h"
#include "verbs/cq.h"
#include "verbs/device.h"
#include "verbs/mr.h"
#include "verbs/qp.h"
#include "verbs/srq.h"

/* A message being filled: the first value that does not fit spoils it. */
struct table {
	struct sk_buff *msg;
	struct nlattr *nest;
	int err;
};

static struct table begin_nest(struct sk_buff *msg)
{
	struct table t = { .msg = msg, .nest = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER) };

	t.err = t.nest ? 0 : -EMSGSIZE;
	return t;
}

static int end_nest(struct table *t)
{
	if (!t->nest)
		return t->err;
	if (t->err)
		nla_nest_cancel(t->msg, t->nest);
	else
		nla_nest_end(t->msg, t->nest);
	return t->err;
}

static void put_u32(struct table *t, const char *name, u32 value)
{
	if (!t->err && rdma_nl_put_driver_u32(t->msg, name, value))
		t->err = -EMSGSIZE;
}

static void put_u64(struct table *t, const char *name, u64 value)
{
	if (!t->err && rdma_nl_put_driver_u64(t->msg, name, value))
		t->err = -EMSGSIZE;
}

static void put_str(struct table *t, const char *name, const char *value)
{
	if (!t->err && rdma_nl_put_driver_string(t->msg, name, value))
		t->err = -EMSGSIZE;
}

static void put_addr(struct table *t, const char *name, const struct sockaddr_storage *addr)
{
	char text[64];

	snprintf(text, sizeof(text), "%pISpc", addr);
	put_str(t, name, text);
}

/* --- QP ------------------------------------------------------------------ */

static void put_terms(struct table *t, const struct weft_mpa_result *mpa)
{
	/* clang-format off */
	static const char *const rtr_names[] = {
		"none", "send", "write", "send,write", "read", "send,read", "write,read",
		"send,write,read",
	};

	/* clang-format on */
	put_u32(t, "mpa_revision", mpa->revision);
	put_u32(t, "mpa_enhanced", mpa->enhanced);
	put_u32(t, "mpa_crc", mpa->crc);
	put_u32(t, "mpa_tx_markers", mpa->markers_tx);
	put_u32(t, "mpa_rx_markers", mpa->markers_rx);
	put_str(t, "mpa_rtr_types", mpa->rtr < ARRAY_SIZE(rtr_names) ? rtr_names[mpa->rtr] : "?");
	put_u32(t, "ird", mpa->ird);
	put_u32(t, "ord", mpa->ord);
}

/* One row per untagged queue: 0 Send, 1 requests, 2 Terminate, 3 atomic responses. */
static void put_msns(struct table *t, const struct weft_stream_details *d)
{
	static const char *const tx[] = { "tx_msn_send", "tx_msn_request", "tx_msn_terminate",
					  "tx_msn_atomic" };
	static const char *const rx[] = { "rx_msn_send", "rx_msn_request", "rx_msn_terminate",
					  "rx_msn_atomic" };
	u32 i;

	static_assert(ARRAY_SIZE(tx) == WEFT_STREAM_QUEUES);
	static_assert(ARRAY_SIZE(rx) == WEFT_STREAM_QUEUES);
	for (i = 0; i < WEFT_STREAM_QUEUES; i++) {
		put_u32(t, tx[i], d->tx_msn[i]);
		put_u32(t, rx[i], d->rx_msn[i]);
	}
}

static void put_stream(struct table *t, const struct weft_stream_details *d, u32 mulpdu)
{
	put_str(t, "mpa_role", d->initiator ? "initiator" : "responder");
	put_terms(t, &d->mpa);
	put_u32(t, "mulpdu", mulpdu);
	put_u32(t, "tx_enabled", d->gate_open);
	put_u32(t, "rnr_waiting", d->rnr_waits);
	put_u32(t, "ord_used", d->ord_used);
	put_u32(t, "ird_used", d->ird_used);
	put_msns(t, d);
	put_u64(t, "tx_staged_bytes", d->staged);
	put_u64(t, "tx_sent_bytes", d->pushed);
	if (!d->connected)
		return;
	put_addr(t, "tcp_local", &d->local);
	put_addr(t, "tcp_peer", &d->peer);
	put_u32(t, "tcp_mss", d->tcp.mss);
	put_u32(t, "tcp_rtt_us", d->tcp.rtt_us);
	put_u32(t, "tcp_cwnd", d->tcp.cwnd);
	put_u64(t, "tcp_retransmits", d->tcp.counts.retrans);
	put_u32(t, "tcp_unsent", d->tcp.unsent);
	put_u32(t, "tcp_unacked", d->tcp.unacked);
}

/**
 * weft_fill_res_qp - a QP, its stream and the TCP connection below
 * @msg: netlink message
 * @ib: kept alive by the core
 *
 * Context: process. Return: 0, -ENOMEM, -EMSGSIZE, or -EAGAIN while it is being destroyed.
 */
int weft_fill_res_qp(struct sk_buff *msg, struct ib_qp *ib)
{
	struct weft_qp *qp = to_weft_qp(ib);
	const struct weft_sendq *sq = &qp->sq;
	struct weft_stream_details *d;
	struct weft_stream_info info;
	int ret = -ENOMEM;
	struct table t;

	if (!weft_tracked_get(&qp->tracked))
		return -EAGAIN;
	d = kmalloc(sizeof(*d), GFP_KERNEL);
	if (!d)
		goto put;
	weft_stream_query(qp->stream, &info);
	weft_stream_inspect(qp->stream, d);
	t = begin_nest(msg);
	put_str(&t, "stream_state", weft_qp_state_name(info.state));
	put_u32(&t, "sq_entries", sq->ring.entries);
	put_u32(&t, "sq_pending", weft_sendq_waiting(sq));
	put_u32(&t, "sq_inflight", READ_ONCE(sq->fetched) - READ_ONCE(sq->cons));
	if (!ib->srq) {
		put_u32(&t, "rq_entries", qp->rq.ring.entries);
		put_u32(&t, "rq_posted", weft_recvq_depth(&qp->rq));
	}
	if (d->end.fault != WEFT_FAULT_NONE)
		put_str(&t, "fault", weft_fault_info(d->end.fault)->name);
	if (d->end.peer_terminated)
		put_str(&t, "peer_fault", weft_fault_info(d->end.peer_fault)->name);
	if (d->started)
		put_stream(&t, d, info.mulpdu);
	kfree(d);
	ret = end_nest(&t);
put:
	weft_tracked_put(&qp->tracked);
	return ret;
}

/* --- CQ, SRQ --------------------------------------------------------------- */

int weft_fill_res_cq(struct sk_buff *msg, struct ib_cq *ib)
{
	static const char *const arm_names[] = {
		[WEFT_ARM_NONE] = "no",
		[WEFT_ARM_NEXT] = "next",
		[WEFT_ARM_SOLICITED] = "solicited",
	};
	struct weft_ibcq *cq = to_weft_cq(ib);
	struct weft_cq_details d;
	struct table t;

	if (!weft_tracked_get(&cq->tracked))
		return -EAGAIN;
	weft_cq_inspect(&cq->cq, &d);
	weft_tracked_put(&cq->tracked);
	t = begin_nest(msg);
	put_u32(&t, "entries", d.entries);
	put_u32(&t, "produced", d.prod);
	put_u32(&t, "unpolled", d.waiting);
	put_str(&t, "armed", d.arm < ARRAY_SIZE(arm_names) ? arm_names[d.arm] : "?");
	put_u32(&t, "overflowed", d.overflowed);
	put_u32(&t, "mapped", cq->cq.user);
	return end_nest(&t);
}

int weft_fill_res_srq(struct sk_buff *msg, struct ib_srq *ib)
{
	struct weft_srq *srq = to_weft_srq(ib);
	struct weft_recvq_details d;
	struct table t;

	if (!weft_tracked_get(&srq->tracked))
		return -EAGAIN;
	weft_recvq_inspect(&srq->rq, &d);
	weft_tracked_put(&srq->tracked);
	t = begin_nest(msg);
	put_u32(&t, "entries", d.entries);
	put_u32(&t, "max_sge", d.max_sge);
	put_u32(&t, "posted", d.waiting);
	put_u32(&t, "consumed", d.consumed);
	put_u32(&t, "limit", d.limit);
	return end_nest(&t);
}

/* --- MR -------------------------------------------------------------------- */

static const char *const kind_names[] = {
	[WEFT_STAG_REGION] = "region",
	[WEFT_STAG_FASTREG] = "fast-register",
	[WEFT_STAG_WINDOW1] = "window-1",
	[WEFT_STAG_WINDOW2] = "window-2",
};

static const char *const stag_states[] = {
	[WEFT_STAG_IDLE] = "invalid",
	[WEFT_STAG_VALID] = "valid",
	[WEFT_STAG_DRAINING] = "draining",
};

/* Five letters, a dash for each right that is not given. */
static void put_access(struct table *t, u32 access)
{
	char text[6] = "-----";

	if (access & IB_ACCESS_LOCAL_WRITE)
		text[0] = 'l';
	if (access & IB_ACCESS_REMOTE_WRITE)
		text[1] = 'w';
	if (access & IB_ACCESS_REMOTE_READ)
		text[2] = 'r';
	if (access & IB_ACCESS_REMOTE_ATOMIC)
		text[3] = 'a';
	if (access & IB_ACCESS_MW_BIND)
		text[4] = 'b';
	put_str(t, "access", text);
}

/* The core tells keys and addresses of a region to privileged processes only. */
int weft_fill_res_mr(struct sk_buff *msg, struct ib_mr *ib)
{
	struct table t = begin_nest(msg);
	struct weft_stag_details region;

	rcu_read_lock();
	weft_stag_inspect(READ_ONCE(to_weft_mr(ib)->region), &region);
	rcu_read_unlock();
	put_str(&t, "kind", kind_names[region.kind]);
	put_str(&t, "state", stag_states[region.state]);
	put_access(&t, region.access);
	put_u64(&t, "bytes", region.length);
	put_u32(&t, "pin_count", region.pins);
	put_u32(&t, "windows", region.windows);
	return end_nest(&t);
}

/**
 * weft_fill_stat_mr - pages of a region that is paged on demand
 * @msg: netlink message
 * @ib: kept alive by the core
 *
 * A region that is being changed, or is pinned, has none to tell of. Context: process. Return: 0
 * or -EMSGSIZE.
 */
int weft_fill_stat_mr(struct sk_buff *msg, struct ib_mr *ib)
{
	struct weft_odp_stats stats;
	struct nlattr *nest;

	if (!weft_mr_query_odp(ib, &stats))
		return 0;
	nest = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	if (!nest)
		return -EMSGSIZE;
	if (rdma_nl_stat_hwcounter_entry(msg, "page_faults", stats.faulted) ||
	    rdma_nl_stat_hwcounter_entry(msg, "page_invalidations", stats.invalidated) ||
	    rdma_nl_stat_hwcounter_entry(msg, "page_prefetch", stats.prefetched)) {
		nla_nest_cancel(msg, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, nest);
	return 0;
}

/* --- connection identifiers --------------------------------------------------- */

/**
 * weft_fill_res_cm_id - a connection or a listener
 * @msg: netlink message
 * @id: of rdma_cm; kept alive by the core
 *
 * Ids that have begun neither have nothing of ours. Context: process. Return: 0 or
 * -EMSGSIZE.
 */
int weft_fill_res_cm_id(struct sk_buff *msg, struct rdma_cm_id *id)
{
	struct weft_cm *cm = &to_weft_dev(id->device)->cm;
	struct weft_listener_details listener;
	struct weft_conn_details conn;
	struct table t;

	if (weft_cm_inspect_conn(cm, id, &conn)) {
		t = begin_nest(msg);
		put_str(&t, "kind", "connection");
		put_u32(&t, "handle", conn.handle);
		put_str(&t, "state", weft_conn_state_name(conn.state));
		put_str(&t, "mpa_role", conn.initiator ? "initiator" : "responder");
		if (conn.deadline_ms)
			put_u32(&t, "deadline_ms", conn.deadline_ms);
		if (conn.settled)
			put_terms(&t, &conn.mpa);
		return end_nest(&t);
	}
	if (weft_cm_inspect_listener(cm, id, &listener)) {
		t = begin_nest(msg);
		put_str(&t, "kind", "listener");
		put_u32(&t, "backlog", listener.backlog);
		put_u32(&t, "pending_mpa_request", listener.waiting);
		put_u32(&t, "queued", listener.queued);
		put_u32(&t, "pending_accept", listener.undecided);
		return end_nest(&t);
	}
	return 0;
}
