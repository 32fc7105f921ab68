/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Socket buffers and a socket, as far as net/ looks into them. What TCP does is up to the
 * program (struct sock).
 */
#ifndef WEFT_HOST_NET_H
#define WEFT_HOST_NET_H

#define MAX_SKB_FRAGS	17

typedef struct {
	const u8 *address;	/* NULL: it cannot be read where it is */
	u32 size;
} skb_frag_t;

struct skb_shared_info {
	u8 nr_frags;
	skb_frag_t frags[MAX_SKB_FRAGS];
	struct sk_buff *frag_list;
};

/**
 * struct sk_buff - a socket buffer
 * @next: the one behind it, in a queue or in a fragment list
 * @data: the bytes of the head
 * @len: bytes in all; @data_len: of these behind the head
 */
struct sk_buff {
	struct sk_buff *next;
	u8 *data;
	u32 len;
	u32 data_len;
	struct skb_shared_info shinfo;
};

struct skb_seq_state {
	struct sk_buff *skb;
	u32 lower, upper;
};

#define skb_shinfo(skb)		(&(skb)->shinfo)
#define skb_frag_size(f)	((f)->size)
#define skb_frag_address_safe(f) ((f)->address)
#define skb_headlen(skb)	((skb)->len - (skb)->data_len)
#define skb_has_frag_list(skb)	(!!(skb)->shinfo.frag_list)
#define skb_walk_frags(skb, part) \
	for ((part) = (skb)->shinfo.frag_list; (part); (part) = (part)->next)
#define skb_abort_seq_read(st)	((void)(st))

u32 skb_pagelen(const struct sk_buff *skb);
int skb_copy_bits(const struct sk_buff *skb, int offset, void *to, int len);
void skb_prepare_seq_read(struct sk_buff *skb, u32 from, u32 to, struct skb_seq_state *st);
u32 skb_seq_read(u32 consumed, const u8 **data, struct skb_seq_state *st);

/* A buffer of exactly these bytes, cut as @cuts says; see net.c. */
struct sk_buff *host_skb(const u8 *bytes, u32 len, u32 cuts);
void host_skb_free(struct sk_buff *skb);

struct iov_iter {
	const struct bio_vec *vec;
	u32 count;
	u32 bytes;
};

struct msghdr {
	int msg_flags;
	struct iov_iter msg_iter;
};

#define ITER_SOURCE		1
#define MSG_DONTWAIT		0x40
#define MSG_NOSIGNAL		0x4000
#define MSG_MORE		0x8000
#define MSG_SPLICE_PAGES	0x8000000
#define iov_iter_bvec(iter, dir, v, n, len) \
	(*(iter) = (struct iov_iter){ .vec = (v), .count = (n), .bytes = (len) })

enum {
	SOCK_MEMALLOC,
};

struct sockaddr_storage {
	char unused;
};

struct net;
struct socket;

/**
 * struct sock - a connection of TCP
 * @owned: its lock is held
 * @sk_allocation: how TCP allocates
 * @memalloc: it may take from the reserves
 * @mss, @gso_segs: how TCP cuts
 * @write_seq: sequence number of the next byte written
 * @space: bytes that it takes
 * @unacked: bytes that the peer has not acknowledged
 * @tail: the buffer that is appended to, for its length
 * @queue: received and not read
 * @read: bytes of the first of these
 * @charged: bytes that are counted as if they were in @queue
 */
struct sock {
	bool owned;
	gfp_t sk_allocation;
	bool memalloc;
	u32 mss, gso_segs;
	u32 write_seq;
	u32 space;
	u32 unacked;
	struct sk_buff tail;
	struct sk_buff *queue;
	u32 read;
	u32 charged;
};

typedef struct {
	struct {
		void *data;
	} arg;
	size_t count;
} read_descriptor_t;

typedef int (*sk_read_actor_t)(read_descriptor_t *desc, struct sk_buff *skb, unsigned int offset,
			       size_t len);

#define sock_flag(sk, flag)	((sk)->memalloc)
#define sock_owned_by_me(sk)	HOST_CHECK((sk)->owned)
#define sk_stream_wspace(sk)	((int)(sk)->space)

int tcp_read_sock(struct sock *sk, read_descriptor_t *desc, sk_read_actor_t actor);

/* The program's. */
void lock_sock(struct sock *sk);
void release_sock(struct sock *sk);
int tcp_sendmsg_locked(struct sock *sk, struct msghdr *msg, size_t bytes);

#endif
