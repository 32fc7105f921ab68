// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The private data of directly connected QPs, untrusted. Input: bytes 0 to 15 are our
 * end, byte 16 its PSN flag, then what the peer sent.
 */
#include "fuzz.h"
#include "proto/direct.h"

static struct weft_direct_hello own_end(struct input *in)
{
	return (struct weft_direct_hello){
		.qpn = take(in, 4) & 0xffffff,
		.peer_qpn = take(in, 4) & 0xffffff,
		.rq_psn = take(in, 4) & 0xffffff,
		.sq_psn = take(in, 4) & 0xffffff,
		.has_sq_psn = take(in, 1) & 1,
		.extensions = WEFT_DIRECT_EXTENSIONS,
	};
}

/* What one end says the other reads, and both judge alike. */
static void judge(const struct weft_direct_hello *own, const struct weft_direct_hello *peer)
{
	u8 *wire = malloc(WEFT_DIRECT_LEN);
	struct weft_direct_hello again;
	enum weft_direct_reason reason;

	weft_direct_build(peer, wire);
	PROMISE(weft_direct_parse(wire, WEFT_DIRECT_LEN, &again) == WEFT_DIRECT_OK);
	PROMISE(again.qpn == peer->qpn && again.peer_qpn == peer->peer_qpn);
	PROMISE(again.rq_psn == peer->rq_psn && again.has_sq_psn == peer->has_sq_psn);
	PROMISE(!again.has_sq_psn || again.sq_psn == peer->sq_psn);
	PROMISE(!(again.extensions & ~WEFT_DIRECT_EXTENSIONS));
	reason = weft_direct_match(own, peer);
	PROMISE(reason == weft_direct_match(peer, own));
	PROMISE(reason || (own->qpn == peer->peer_qpn && own->peer_qpn == peer->qpn));
	say(" %s", weft_direct_reason_name(reason));
	free(wire);
}

/* Two GIDs, and numbers of ours: exactly one end connects. */
static void roles(const u8 *bytes, size_t len, const struct weft_direct_hello *own)
{
	const u8 *here = bytes, *there = bytes + WEFT_DIRECT_GID_LEN;
	enum weft_direct_role a, b;

	if (len < 2 * WEFT_DIRECT_GID_LEN)
		return;
	a = weft_direct_role(here, own->qpn, there, own->peer_qpn);
	b = weft_direct_role(there, own->peer_qpn, here, own->qpn);
	PROMISE((a == WEFT_DIRECT_ITSELF) == (b == WEFT_DIRECT_ITSELF));
	PROMISE(a == WEFT_DIRECT_ITSELF || a != b);
}

int fuzz_one(const u8 *data, size_t size)
{
	struct input in = { data, size };
	struct weft_direct_hello own = own_end(&in), peer;
	u8 *wire = exact(in.at, in.left);
	enum weft_direct_reason reason = weft_direct_parse(wire, in.left, &peer);
	u8 reject[WEFT_DIRECT_REJECT_LEN];

	PROMISE(reason < WEFT_DIRECT_REASONS);
	say("%s", weft_direct_reason_name(reason));
	if (reason == WEFT_DIRECT_OK) {
		say(" qpn=%x peer=%x rq=%x sq=%x/%u ext=%x", peer.qpn, peer.peer_qpn, peer.rq_psn,
		    peer.sq_psn, peer.has_sq_psn, peer.extensions);
		PROMISE(!((peer.qpn | peer.peer_qpn | peer.rq_psn | peer.sq_psn) >> 24));
		judge(&own, &peer);
	} else {
		weft_direct_build_reject(reason, reject);
		PROMISE(weft_direct_parse_reject(reject, sizeof(reject)) == reason);
	}
	reason = weft_direct_parse_reject(wire, in.left);
	PROMISE(reason > WEFT_DIRECT_OK && reason < WEFT_DIRECT_REASONS);
	say(" reject=%s", weft_direct_reason_name(reason));
	roles(wire, in.left, &own);
	PROMISE(weft_direct_retry_ns(own.qpn, own.peer_qpn) < ~(u64)0 >> 8);
	free(wire);
	return 0;
}
