// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Socket buffers in every shape in which TCP hands them over: bytes in the head, in fragments
 * that are contiguous or apart or cannot be read in place, in a fragment list.
 */
#include "kernel.h"

struct stretch {
	const u8 *address;
	u32 size;
};

/* What is at @offset; contiguous as far as the buffer says so. */
static struct stretch at(const struct sk_buff *skb, u32 offset)
{
	const struct sk_buff *part;
	const skb_frag_t *f;
	u32 i;

	if (offset < skb_headlen(skb))
		return (struct stretch){ skb->data + offset, skb_headlen(skb) - offset };
	offset -= skb_headlen(skb);
	for (i = 0; i < skb->shinfo.nr_frags; i++) {
		f = &skb->shinfo.frags[i];
		if (offset < f->size)
			return (struct stretch){ f->address + offset, f->size - offset };
		offset -= f->size;
	}
	skb_walk_frags(skb, part) {
		if (offset < part->len)
			return at(part, offset);
		offset -= part->len;
	}
	return (struct stretch){};
}

u32 skb_pagelen(const struct sk_buff *skb)
{
	u32 len = skb_headlen(skb), i;

	for (i = 0; i < skb->shinfo.nr_frags; i++)
		len += skb->shinfo.frags[i].size;
	return len;
}

int skb_copy_bits(const struct sk_buff *skb, int offset, void *to, int len)
{
	struct stretch from;

	if (offset < 0 || len < 0 || (u32)offset + (u32)len > skb->len)
		return -EFAULT;
	while (len) {
		u32 n;

		from = at(skb, offset);
		n = min_t(u32, from.size, len);
		memcpy(to, from.address, n);
		to = (u8 *)to + n;
		offset += n;
		len -= n;
	}
	return 0;
}

void skb_prepare_seq_read(struct sk_buff *skb, u32 from, u32 to, struct skb_seq_state *st)
{
	*st = (struct skb_seq_state){ skb, from, to };
}

u32 skb_seq_read(u32 consumed, const u8 **data, struct skb_seq_state *st)
{
	struct stretch from;

	if (st->lower + consumed >= st->upper)
		return 0;
	from = at(st->skb, st->lower + consumed);
	*data = from.address;
	return from.size;
}

static u8 *copy_of(const u8 *bytes, u32 len)
{
	u8 *copy = malloc(len);

	memcpy(copy, bytes, len);
	return copy;
}

/* Bits of @cuts of host_skb(). */
enum {
	CUT_HEAD = 3,		/* quarters of it in the head */
	CUT_ROW = 1 << 2,	/* fragments are contiguous */
	CUT_LIST = 1 << 3,	/* the second half is a buffer of a fragment list */
	CUT_PIECE = 0xf0,	/* size of a fragment: 16 bytes each, 0: all */
};

static void add_frags(struct sk_buff *skb, const u8 *bytes, u32 len, u32 cuts)
{
	u32 piece = cuts & CUT_PIECE ?: len;
	u8 *row = cuts & CUT_ROW ? copy_of(bytes, len) : NULL;
	u32 done, n;

	for (done = 0; done < len; done += n) {
		skb_frag_t *f = &skb->shinfo.frags[skb->shinfo.nr_frags++];
		bool last = skb->shinfo.nr_frags == MAX_SKB_FRAGS;

		n = last ? len - done : min(piece, len - done);
		*f = (skb_frag_t){ row ? row + done : copy_of(bytes + done, n), n };
	}
	skb->len += len;
	skb->data_len += len;
}

/**
 * host_skb - a socket buffer
 * @bytes: copied
 * @len: how many, one at least
 * @cuts: its shape
 *
 * Each piece is an allocation of its own, so that one byte too far is seen.
 */
struct sk_buff *host_skb(const u8 *bytes, u32 len, u32 cuts)
{
	struct sk_buff *skb = calloc(1, sizeof(*skb));
	u32 own = cuts & CUT_LIST ? DIV_ROUND_UP(len, 2) : len;
	u32 head = own * (3 - (cuts & CUT_HEAD)) / 3;

	skb->data = copy_of(bytes, head);
	skb->len = head;
	if (own > head)
		add_frags(skb, bytes + head, own - head, cuts);
	if (len > own) {
		skb->shinfo.frag_list = host_skb(bytes + own, len - own, cuts & ~CUT_LIST);
		skb->len += len - own;
		skb->data_len += len - own;
	}
	return skb;
}

void host_skb_free(struct sk_buff *skb)
{
	const u8 *end = NULL;
	u32 i;

	if (skb->shinfo.frag_list)
		host_skb_free(skb->shinfo.frag_list);
	for (i = 0; i < skb->shinfo.nr_frags; i++) {
		skb_frag_t *f = &skb->shinfo.frags[i];

		if (f->address != end)
			free((void *)f->address);
		end = f->address + f->size;
	}
	free(skb->data);
	free(skb);
}

/* As the kernel's: buffer by buffer, until the actor takes nothing. */
int tcp_read_sock(struct sock *sk, read_descriptor_t *desc, sk_read_actor_t actor)
{
	struct sk_buff *skb;
	int copied = 0, used;

	sock_owned_by_me(sk);
	while ((skb = sk->queue)) {
		used = actor(desc, skb, sk->read, skb->len - sk->read);
		if (used <= 0)
			return copied ?: used;
		HOST_CHECK(used <= (int)(skb->len - sk->read));
		copied += used;
		sk->read += used;
		if (sk->read < skb->len)
			continue;
		sk->queue = skb->next;
		sk->read = 0;
		host_skb_free(skb);
	}
	return copied;
}
