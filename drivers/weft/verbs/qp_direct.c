// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A modify to RTR or RTS that names a peer: what has to be given, and what it means to
 * cm/direct.c.
 */
#include "verbs/qp.h"

#include <linux/err.h>
#include <linux/mutex.h>
#include <rdma/ib_cache.h>

#include "cm/direct.h"
#include "verbs/device.h"

#define refuse(qp, why) \
	ibdev_info_ratelimited((qp)->ib.device, "QP %u: %s\n", (qp)->ib.qp_num, (why))

static int fill_config(struct weft_qp *qp, const struct weft_qp_attrs *attrs,
		       struct weft_direct_config *cfg)
{
	const struct ib_global_route *grh = &attrs->av.grh;
	union ib_gid local;
	int ret;

	if (!(attrs->av.ah_flags & IB_AH_GRH)) {
		refuse(qp, "a peer has no LID here: name it by a GID (ibv_rc_pingpong -g 1)");
		return -EINVAL;
	}
	if (!grh->sgid_index) {
		refuse(qp, "GID 0 is no address: use the index of one (ibv_rc_pingpong -g 1)");
		return -EINVAL;
	}
	ret = weft_query_gid(qp->ib.device, 1, grh->sgid_index, &local);
	if (ret || rdma_is_zero_gid(&local))
		return -EINVAL;
	memcpy(&cfg->local, local.raw, sizeof(cfg->local));
	memcpy(&cfg->peer, grh->dgid.raw, sizeof(cfg->peer));
	cfg->stream = qp->stream;
	cfg->peer_qpn = attrs->dest_qp_num;
	cfg->rq_psn = attrs->rq_psn;
	cfg->ird = attrs->max_dest_rd_atomic;
	cfg->min_rnr_timer = attrs->min_rnr_timer;
	cfg->traffic_class = grh->traffic_class;
	return 0;
}

/**
 * weft_qp_direct_rtr - a modify to RTR names a peer
 * @qp: in INIT, without a connection
 * @attrs: as they will be
 *
 * Context: process, modify_lock held. Return: 0 or -errno.
 */
int weft_qp_direct_rtr(struct weft_qp *qp, const struct weft_qp_attrs *attrs)
	__must_hold(&qp->modify_lock)
{
	struct weft_direct_config cfg = {};
	struct weft_direct *direct;
	int ret;

	lockdep_assert_held(&qp->modify_lock);
	ret = fill_config(qp, attrs, &cfg);
	if (ret)
		return ret;
	direct = weft_direct_begin(&to_weft_dev(qp->ib.device)->cm, &cfg);
	if (!IS_ERR(direct)) {
		qp->direct = direct;
		return 0;
	}
	ret = PTR_ERR(direct);
	if (ret == -EOPNOTSUPP)
		refuse(qp, "direct_port is 0: no QP is connected by a modify");
	else if (ret == -EADDRINUSE)
		refuse(qp, "another socket has the direct_port of its address");
	else
		refuse(qp, "its GID and that of its peer are no addresses that reach each other");
	return ret;
}

/**
 * weft_qp_direct_rts - a QP that a modify has connected may send
 * @qp: in RTR
 * @attrs: as they will be
 *
 * Context: process, modify_lock held. Return: 0 or -EINVAL.
 */
int weft_qp_direct_rts(struct weft_qp *qp, const struct weft_qp_attrs *attrs)
	__must_hold(&qp->modify_lock)
{
	const struct weft_direct_send send = {
		.sq_psn = attrs->sq_psn,
		.ord = attrs->max_rd_atomic,
		.timeout = attrs->timeout,
		.retry_cnt = attrs->retry_cnt,
		.rnr_retry = attrs->rnr_retry,
	};
	int ret;

	lockdep_assert_held(&qp->modify_lock);
	if (!qp->direct)
		return -EINVAL;
	ret = weft_direct_may_send(qp->direct, &send);
	if (ret)
		refuse(qp, "sq_psn is not what its peer expects");
	return ret;
}

/**
 * weft_qp_direct_end - the QP has no peer any more
 * @qp: connected by a modify or not
 *
 * Context: process, may sleep, modify_lock held.
 */
void weft_qp_direct_end(struct weft_qp *qp) __must_hold(&qp->modify_lock)
{
	lockdep_assert_held(&qp->modify_lock);
	if (!qp->direct)
		return;
	weft_direct_end(qp->direct);
	qp->direct = NULL;
}
