/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A stream put together by hand, with queues and without a socket. What lies above the code
 * under test is counted, what lies below it is played: the functions of net/ and of the
 * engine's path that are defined in stream_world.c instead of copied.
 */
#ifndef WEFT_KUNIT_STREAM_WORLD_H
#define WEFT_KUNIT_STREAM_WORLD_H

#include <kunit/test.h>

#include "engine/life/teardown.h"
#include "engine/path/tx_segment.h"
#include "engine/state/fsm.h"
#include "engine/state/stream.h"
#include "net/tcp_socket.h"
#include "ring/cq.h"
#include "ring/recvq.h"
#include "ring/sendq.h"

#define STREAM_SQES	8U
#define STREAM_RQES	8U
#define STREAM_CQES	64U
#define STREAM_ORD	2U
#define STREAM_QPN	77U

/* Calls of each hook, and the state of the stream in the last of them. */
struct hooks_seen {
	u32 releases;
	u32 teardowns;
	u32 want_tx;
	u32 want_rx;
	u32 defers;
	enum weft_qp_state state;
	u32 todo;
};

/**
 * struct played_net - what is to be played
 * @error: of the socket
 * @fin: of the peer, has come
 * @acked: bytes that the peer has acknowledged, since the connection began
 * @segments: that can still be staged; each is a full batch
 * @segment_bytes: of each
 * @no_context: the next segment takes another context
 * @push_error: of each push
 * @pushes: so far
 * @inside: completion queues that knew of a doorbell in the last of them
 * @mark: another thread posts a segment during the next push
 * @marks_until: jiffies until which one rings the doorbell during each push, 0 for never
 * @fetch: a segment that is staged is the next request of the queue
 */
struct played_net {
	int error;
	bool fin;
	u64 acked;
	u32 segments;
	u32 segment_bytes;
	bool no_context;
	int push_error;
	u32 pushes;
	u32 inside;
	bool mark;
	unsigned long marks_until;
	bool fetch;
};

/**
 * struct stream_world - a stream and all it works on
 * @defer: what the hook of that name says
 * @posts_in_defer: sends that the process posts in there, one in each call
 * @reposts: how often the process still answers an event of a CQ with a send and a receive
 * @told_at: pushes before the last event of a CQ
 * @posted, @received: sends and receives posted so far; also the wr_id of the next
 */
struct stream_world {
	union {
		struct weft_stream st;
		struct weft_stream_life life;
	};
	struct weft_sendq sq;
	struct weft_recvq rq;
	struct weft_cq send_cq;
	struct weft_cq recv_cq;
	struct weft_counters counters;
	struct weft_stream_index index;
	struct weft_sock sock;
	struct hooks_seen seen;
	struct played_net net;
	bool defer;
	u32 posts_in_defer;
	u32 reposts;
	u32 told_at;
	u32 posted;
	u32 received;
	u32 overflows;
	u32 cons_at_overflow;	/* what the send queue had given back by then */
	struct weft_sge receive_sge[2];
};

/* For suites: @priv of each test is a stream in RTS, with an open gate, as a process has it. */
int make_stream(struct kunit *test);
void free_stream(struct kunit *test);

/* As the process that owns the QP does. */
void post_send(struct stream_world *w, u8 opcode, u8 flags);
void post_receive(struct stream_world *w);

/* One end of two on this host, of which @lb is the transport and @peer that of the other. */
void join_loopback(struct stream_world *w, struct weft_loopback *lb, struct weft_loopback *peer);

/* The next request that was posted, planned and staged up to @end. */
struct weft_swr *stage_send(struct kunit *test, struct stream_world *w, u64 end);

/* The completions of the requests from @first to before @end and no others, all with @status. */
void expect_sends(struct kunit *test, struct stream_world *w, u32 first, u32 end, u8 status);

#endif
