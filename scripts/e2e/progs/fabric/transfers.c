// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What a connected endpoint moves: messages, remote memory, atomics. */
#include "fabric.h"

#include <sys/uio.h>

/* A word of the peer's for the atomics, behind what Writes and Reads use. */
#define WORD (4 * MIB)

static uint64_t there(const struct end *e, size_t offset)
{
	return (uint64_t)(uintptr_t)(e->buf + offset);
}

static uint64_t key(const struct end *e)
{
	return fi_mr_key(e->mr);
}

static void receive(struct end *e, size_t offset, size_t size)
{
	OK(fi_recv(e->ep, e->buf + offset, size, e->desc, 0, e->buf + offset));
}

static void check_received(struct end *e, size_t size)
{
	struct fi_cq_data_entry got = done(e->rx);

	CHECK((got.flags & FI_RECV) && (got.flags & FI_MSG));
	CHECK(got.len == size);
}

/* One message; what stands behind it in the buffer stays as it was. */
static void send_one(struct end *from, struct end *to, size_t size, unsigned int seed)
{
	struct fi_cq_data_entry sent;

	memset(to->buf, 0xee, size + 1);
	receive(to, 0, size + 1);
	fill(from->buf + WORD, size, seed);
	OK(fi_send(from->ep, from->buf + WORD, size, from->desc, 0, &sent));
	sent = done(from->tx);
	CHECK((sent.flags & FI_SEND) && (sent.flags & FI_MSG));
	check_received(to, size);
	CHECK(holds(to->buf, size, seed) && to->buf[size] == 0xee);
}

CASE(messages)
{
	unsigned int seed = 0;

	connect_ends();
	send_one(&c, &s, 0, 0);
	for (size_t size = 1; size <= 2 * MIB; size = size * 3 + 1) {
		send_one(&c, &s, size, seed++);
		send_one(&s, &c, size, seed++);
	}
	send_one(&c, &s, 4 * MIB - 1, seed);
}

/* The buffer is ours again at once, there is no completion, and the order is kept. */
CASE(injections)
{
	unsigned char small[4096];
	size_t most;
	const int n = 100;

	connect_ends();
	most = c.info->tx_attr->inject_size;
	CHECK(most >= 16 && most <= sizeof(small));
	for (int i = 0; i < n; i++)
		receive(&s, (size_t)i * most, most);
	for (int i = 0; i < n; i++) {
		size_t size = (size_t)i % most + 1;

		fill(small, size, i);
		OK(fi_inject(c.ep, small, size, 0));
		memset(small, 0, size);
	}
	for (int i = 0; i < n; i++) {
		size_t size = (size_t)i % most + 1;

		check_received(&s, size);
		CHECK(holds(s.buf + i * most, size, i));
	}
	fill(small, most, 7);
	OK(fi_inject_write(c.ep, small, most, 0, there(&s, WORD), key(&s)));
	memset(small, 0, most);
	send_one(&c, &s, 1, 1);
	CHECK(holds(s.buf + WORD, most, 7));
	CHECK(quiet(c.tx));
}

/* As many elements as there may be, at both sides, of all kinds of operations. */
CASE(vectors)
{
	struct iovec out[8], in[8];
	void *ours[8], *theirs[8];
	size_t n, piece = 3001;

	connect_ends();
	n = c.info->tx_attr->iov_limit;
	CHECK(n >= 2 && n <= 8 && s.info->rx_attr->iov_limit >= n);
	for (size_t i = 0; i < n; i++) {
		out[i] = (struct iovec){ c.buf + WORD + i * piece, piece };
		in[i] = (struct iovec){ s.buf + i * 2 * piece, i == n - 1 ? 2 * piece : piece };
		ours[i] = c.desc;
		theirs[i] = s.desc;
	}
	fill(c.buf + WORD, n * piece, 5);
	OK(fi_recvv(s.ep, in, theirs, n, 0, NULL));
	OK(fi_sendv(c.ep, out, ours, n, 0, NULL));
	done(c.tx);
	check_received(&s, n * piece);
	for (size_t i = 0; i < n; i++)
		CHECK(!memcmp(in[i].iov_base, out[i].iov_base, piece));

	OK(fi_writev(c.ep, out, ours, n, 0, there(&s, WORD), key(&s), NULL));
	CHECK(done(c.tx).flags & FI_WRITE);
	send_one(&s, &c, 1, 1);
	send_one(&c, &s, 1, 1);
	fill(c.buf + WORD, n * piece, 5);
	CHECK(!memcmp(s.buf + WORD + 1, c.buf + WORD + 1, n * piece - 1));
	memset(c.buf + WORD, 0, n * piece);
	OK(fi_readv(c.ep, out, ours, n, 0, there(&s, WORD), key(&s), NULL));
	CHECK(done(c.tx).flags & FI_READ);
	CHECK(!memcmp(s.buf + WORD, c.buf + WORD, n * piece));
}

CASE(writes_and_reads)
{
	connect_ends();
	for (size_t size = 1, i = 0; size <= 4 * MIB; size *= 4, i++) {
		fill(c.buf, size, i);
		OK(fi_write(c.ep, c.buf, size, c.desc, 0, there(&s, 3), key(&s), NULL));
		CHECK(done(c.tx).flags & FI_WRITE);
		memset(c.buf, 0, size);
		/* A Read that follows sees what the Write has left. */
		OK(fi_read(c.ep, c.buf, size, c.desc, 0, there(&s, 3), key(&s), NULL));
		CHECK(done(c.tx).flags & FI_READ);
		CHECK(holds(c.buf, size, i) && holds(s.buf + 3, size, i));
	}
	/* Many at once, more Reads than may be under way. */
	for (int i = 0; i < 300; i++)
		OK(fi_read(c.ep, c.buf + WORD + (size_t)i * 1000, 1000, c.desc, 0,
			   there(&s, 3 + (size_t)i * 1000), key(&s), NULL));
	for (int i = 0; i < 300; i++)
		CHECK(done(c.tx).flags & FI_READ);
	CHECK(!memcmp(c.buf + WORD, s.buf + 3, 300 * 1000));
}

/*
 * libfabric offers no remote data on iWARP, whose older cards have none: a program that asks for it
 * finds nothing. A Write that carries it arrives all the same.
 */
CASE(immediate_data)
{
	struct fi_cq_data_entry got;

	wish.data_size = 4;
	CHECK(!ask(address, FI_SOURCE));
	wish.data_size = 0;
	connect_ends();
	CHECK(c.info->domain_attr->cq_data_size == 0);
	for (uint32_t i = 0; i < 50; i++) {
		receive(&s, WORD, 64);
		fill(c.buf, 5000, i);
		OK(fi_writedata(c.ep, c.buf, 5000, c.desc, 0x12340000 + i, 0, there(&s, 0), key(&s),
				NULL));
		CHECK(done(c.tx).flags & FI_WRITE);
		got = done(s.rx);
		CHECK(got.flags & FI_REMOTE_CQ_DATA);
		CHECK(got.data == 0x12340000 + i);
		CHECK(holds(s.buf, 5000, i));
	}
}

/*
 * libfabric 1.17 hands the address of an operand to the card instead of what stands there.
 * So here the two are the same.
 */
static uint64_t operand(uint64_t *at)
{
	return *at = (uintptr_t)at;
}

CASE(atomics)
{
	const int n = 200;
	uint64_t *word, *one, *with, *old, add, before;
	size_t count = 0;

	wish.caps |= FI_ATOMIC;
	connect_ends();
	OK(fi_fetch_atomicvalid(c.ep, FI_UINT64, FI_SUM, &count));
	CHECK(count == 1);
	OK(fi_compare_atomicvalid(c.ep, FI_UINT64, FI_CSWAP, &count));
	CHECK(count == 1);
	word = (uint64_t *)(s.buf + WORD);
	one = (uint64_t *)c.buf;
	with = one + 1;
	old = one + 2;
	*word = 1000;
	add = operand(one);
	for (int i = 0; i < n; i++)
		OK(fi_fetch_atomic(c.ep, one, 1, c.desc, old + i, c.desc, 0, there(&s, WORD),
				   key(&s), FI_UINT64, FI_SUM, NULL));
	for (int i = 0; i < n; i++)
		CHECK(done(c.tx).flags & FI_ATOMIC);
	for (int i = 0; i < n; i++)
		CHECK(old[i] == 1000 + (uint64_t)i * add);
	CHECK(*word == 1000 + (uint64_t)n * add);

	/* The first swap finds what it compares with, the second one what the first one left. */
	*word = operand(with);
	for (int i = 0; i < 2; i++) {
		before = *word;
		OK(fi_compare_atomic(c.ep, one, 1, c.desc, with, c.desc, old, c.desc, 0,
				     there(&s, WORD), key(&s), FI_UINT64, FI_CSWAP, NULL));
		done(c.tx);
		CHECK(*old == before);
		CHECK(*word == (uintptr_t)one);
	}
}

CASE(selective)
{
	struct iovec iov = { NULL, 1000 };
	struct fi_msg msg = { .msg_iov = &iov, .desc = &c.desc, .iov_count = 1 };
	const int n = 2000, batch = 50;

	wish.selective = true;
	connect_ends();
	fill(c.buf, 1000, 9);
	iov.iov_base = c.buf;
	msg.desc = &c.desc;
	for (int i = 0; i < n; i++) {
		receive(&s, WORD, 1000);
		msg.context = c.buf + i;
		OK(fi_sendmsg(c.ep, &msg, i % batch == batch - 1 ? FI_COMPLETION : 0));
		if (i % batch == batch - 1) {
			CHECK(done(c.tx).op_context == c.buf + i);
			CHECK(quiet(c.tx));
		}
		check_received(&s, 1000);
	}
	CHECK(holds(s.buf + WORD, 1000, 9));
}

/* More Writes than the queue holds: those refused are posted again, none is lost. */
CASE(full_queue)
{
	const size_t n = 5000;
	size_t finished = 0;

	connect_ends();
	CHECK(n > 2 * c.info->tx_attr->size);
	for (size_t i = 0; i < n; i++) {
		ssize_t rc;

		fill(c.buf + i * 8, 8, i);
		while ((rc = fi_write(c.ep, c.buf + i * 8, 8, c.desc, 0, there(&s, i * 8), key(&s),
				      c.buf + i)) == -FI_EAGAIN)
			CHECK(done(c.tx).op_context == c.buf + finished++);
		OK(rc);
	}
	while (finished < n)
		CHECK(done(c.tx).op_context == c.buf + finished++);
	CHECK(quiet(c.tx));
	send_one(&s, &c, 1, 1);
	send_one(&c, &s, 1, 1);
	for (size_t i = 1; i < n; i++)
		CHECK(holds(s.buf + i * 8, 8, i));
}
