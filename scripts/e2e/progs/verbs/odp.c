// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory that is paged on demand: it is registered before it is there, comes when it is accessed,
 * and may go, move and be copied on write meanwhile.
 */
#define _GNU_SOURCE
#include "odp.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Page sizes of the tests' guests are those of the program. */
void *map_at(void *at, size_t bytes, int fd)
{
	int flags = (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED) | (at ? MAP_FIXED : 0);
	void *got = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

	CHECK(got != MAP_FAILED);
	return got;
}

/* A domain of the end's, whose QP it is used on. */
struct ibv_mr *reg_odp(struct end *e, void *at, size_t bytes, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(e->id->pd, at, bytes, access | IBV_ACCESS_ON_DEMAND);

	if (!mr && errno == EOPNOTSUPP)
		SKIP("this kernel has no on-demand paging");
	CHECK(mr);
	return mr;
}

struct ibv_mr *implicit(struct end *e)
{
	return reg_odp(e, NULL, SIZE_MAX, RIGHTS);
}

/* All memory of an implicit region is at its address. */
struct ibv_sge at(struct ibv_mr *mr, void *where, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)where, length, mr->lkey };
}

void write_to(void *to, uint32_t rkey, struct ibv_sge from)
{
	CHECK(!post(&c, 1, IBV_WR_RDMA_WRITE, from, (uintptr_t)to, rkey, IBV_SEND_SIGNALED));
	expect(c.id->send_cq, 1, IBV_WC_SUCCESS);
}

void read_from(void *from, uint32_t rkey, struct ibv_sge to)
{
	CHECK(!post(&c, 2, IBV_WR_RDMA_READ, to, (uintptr_t)from, rkey, IBV_SEND_SIGNALED));
	expect(c.id->send_cq, 2, IBV_WC_SUCCESS);
}

/* What was written before is there: a Read comes behind it. */
void written(struct end *e)
{
	read_from(e->buf, e->open->rkey, sge(c.own, 0, 8));
}

void make_words(void *to, size_t bytes, uint32_t seed)
{
	uint32_t *word = to;

	for (uint32_t i = 0; i < bytes / 4; i++)
		word[i] = word_of(i, seed);
}

int has_words(const void *at_, size_t bytes, uint32_t seed)
{
	const uint32_t *word = at_;

	for (uint32_t i = 0; i < bytes / 4; i++) {
		if (word[i] == word_of(i, seed))
			continue;
		printf("word %u of seed %u is %08x, not %08x\n", i, seed, word[i],
		       word_of(i, seed));
		return 0;
	}
	return 1;
}

/* --- what the device says ------------------------------------------------------------------ */

CASE("on demand", odp_capabilities)
{
	struct ibv_device_attr_ex attr;
	uint32_t rc = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
		      IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;

	CHECK(!ibv_query_device_ex(c.id->verbs, NULL, &attr));
	CHECK(attr.odp_caps.general_caps == (IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT));
	CHECK(attr.odp_caps.per_transport_caps.rc_odp_caps == rc);
	CHECK(!attr.odp_caps.per_transport_caps.uc_odp_caps);
	CHECK(!attr.odp_caps.per_transport_caps.ud_odp_caps);
}

static void refused(struct end *e, void *start, size_t bytes, int access, int err)
{
	errno = 0;
	CHECK(!ibv_reg_mr(e->id->pd, start, bytes, access | IBV_ACCESS_ON_DEMAND));
	CHECK(errno == err);
}

/* No memory is looked for, but addresses have an end. */
CASE("on demand", odp_registration)
{
	struct ibv_device_attr dev;

	refused(&c, (void *)PAGE, 0, 0, EINVAL);
	refused(&c, (void *)PAGE, SIZE_MAX, 0, EINVAL);
	refused(&c, (void *)(SIZE_MAX - PAGE), 2 * PAGE, 0, EINVAL);
	refused(&c, NULL, SIZE_MAX, IBV_ACCESS_REMOTE_WRITE, EINVAL);
	/* All of memory is where it is, and nowhere else. */
	errno = 0;
	CHECK(!ibv_reg_mr_iova(c.id->pd, NULL, SIZE_MAX, PAGE, RIGHTS | IBV_ACCESS_ON_DEMAND));
	CHECK(errno == EINVAL);
	/* Behind the last address there is none, whatever it is called. */
	errno = 0;
	CHECK(!ibv_reg_mr_iova(c.id->pd, (void *)-(uintptr_t)PAGE, 2 * PAGE, PAGE,
			       RIGHTS | IBV_ACCESS_ON_DEMAND));
	CHECK(errno == EINVAL);
	CHECK(!ibv_query_device(c.id->verbs, &dev));
	refused(&c, (void *)PAGE, dev.max_mr_size + 1, RIGHTS, EINVAL);
	CHECK(!ibv_dereg_mr(reg_odp(&c, (void *)PAGE, dev.max_mr_size, RIGHTS)));
	CHECK(!ibv_dereg_mr(reg_odp(&c, (void *)(16 * PAGE), PAGE, RIGHTS)));
	CHECK(!ibv_dereg_mr(implicit(&c)));
}

/* --- each operation ------------------------------------------------------------------------- */

/* A Send, @bytes long, from memory that is there to memory that is not yet. */
static void sends(struct ibv_sge from, struct ibv_sge to, const void *landed, uint32_t seed)
{
	CHECK(!recv_sge(&s, 10, to));
	CHECK(!send_sge(&c, 11, from, 0));
	expect(c.id->send_cq, 11, IBV_WC_SUCCESS);
	CHECK(expect(s.id->recv_cq, 10, IBV_WC_SUCCESS).byte_len == from.length);
	CHECK(has_words(landed, from.length, seed));
}

/* The client's memory @near is there, the server's @far is nowhere yet. */
void every_operation(struct ibv_mr *near_mr, char *near, struct ibv_mr *far_mr, char *far)
{
	make_words(near, MIB, 5);
	sends(at(near_mr, near, MIB), at(far_mr, far, MIB), far, 5);
	make_words(near, MIB, 6);
	write_to(far + MIB + 100, far_mr->rkey, at(near_mr, near, MIB));
	written(&s);
	CHECK(has_words(far + MIB + 100, MIB, 6));
	read_from(far, far_mr->rkey, at(near_mr, near + MIB + 4, MIB));
	CHECK(has_words(near + MIB + 4, MIB, 5));
	/* Nothing was ever here, so it is nothing; and the answer goes where nothing was. */
	CHECK(!post_atomic(&c, 3, IBV_WR_ATOMIC_FETCH_AND_ADD, at(near_mr, near + 3 * MIB, 8),
			   (uintptr_t)far + 3 * MIB, far_mr->rkey, 77, 0));
	expect(c.id->send_cq, 3, IBV_WC_SUCCESS);
	CHECK(!*(uint64_t *)(near + 3 * MIB) && *(uint64_t *)(far + 3 * MIB) == 77);
	CHECK(!post_atomic(&c, 4, IBV_WR_ATOMIC_CMP_AND_SWP, at(near_mr, near + 3 * MIB + PAGE, 8),
			   (uintptr_t)far + 3 * MIB, far_mr->rkey, 77, 99));
	expect(c.id->send_cq, 4, IBV_WC_SUCCESS);
	CHECK(*(uint64_t *)(near + 3 * MIB + PAGE) == 77 && *(uint64_t *)(far + 3 * MIB) == 99);
	works(&c, &s);
}

CASE("on demand", odp_every_operation)
{
	char *near = map_at(NULL, AREA, -1), *far = map_at(NULL, AREA, -1);
	struct ibv_mr *near_mr = reg_odp(&c, near, AREA, RIGHTS);
	struct ibv_mr *far_mr = reg_odp(&s, far, AREA, RIGHTS);
	unsigned long waits = counted("odp_page_waits");

	every_operation(near_mr, near, far_mr, far);
	CHECK(counted("odp_page_waits") > waits);
	CHECK(!ibv_dereg_mr(near_mr) && !ibv_dereg_mr(far_mr));
}

/* Heap, stack and mappings that are made later. */
CASE("on demand", odp_whole_address_space)
{
	struct ibv_mr *near_mr = implicit(&c), *far_mr = implicit(&s);
	char *near = map_at(NULL, AREA, -1), *far = map_at(NULL, AREA, -1);
	uint32_t on_stack[64], *heap = malloc(sizeof(on_stack));

	every_operation(near_mr, near, far_mr, far);
	CHECK(heap);
	make_words(on_stack, sizeof(on_stack), 3);
	write_to(heap, far_mr->rkey, at(near_mr, on_stack, sizeof(on_stack)));
	written(&s);
	CHECK(has_words(heap, sizeof(on_stack), 3));
	memset(on_stack, 0, sizeof(on_stack));
	sends(at(near_mr, heap, sizeof(on_stack)), at(far_mr, on_stack, sizeof(on_stack)), on_stack,
	      3);
	free(heap);
	CHECK(!ibv_dereg_mr(near_mr) && !ibv_dereg_mr(far_mr));
}

/* Pinned and not, in one list. */
CASE("on demand", odp_in_a_list)
{
	char *near = map_at(NULL, AREA, -1), *far = map_at(NULL, AREA, -1);
	struct ibv_mr *near_mr = implicit(&c), *far_mr = implicit(&s);
	struct ibv_sge from[3] = { at(near_mr, near + 1, 3 * PAGE), sge(c.own, 4, 1000),
				   at(near_mr, near + MIB, 2 * PAGE) };
	struct ibv_sge to[2] = { at(far_mr, far + 2, PAGE), at(far_mr, far + MIB, AREA - MIB) };
	struct ibv_recv_wr *bad_recv, recv = { .sg_list = to, .num_sge = 2 };
	struct ibv_send_wr *bad, send = { .sg_list = from,
					  .num_sge = 3,
					  .opcode = IBV_WR_SEND,
					  .send_flags = IBV_SEND_SIGNALED };

	fill(&c, 4);
	memset(near + 1, 0x11, 3 * PAGE);
	memset(near + MIB, 0x22, 2 * PAGE);
	CHECK(!ibv_post_recv(s.id->qp, &recv, &bad_recv));
	CHECK(!ibv_post_send(c.id->qp, &send, &bad));
	expect(c.id->send_cq, 0, IBV_WC_SUCCESS);
	CHECK(expect(s.id->recv_cq, 0, IBV_WC_SUCCESS).byte_len == 5 * PAGE + 1000);
	CHECK(!memcmp(far + 2, near + 1, PAGE));
	CHECK(!memcmp(far + MIB, near + 1 + PAGE, 2 * PAGE));
	CHECK(!memcmp(far + MIB + 2 * PAGE, c.buf + BYTES + 4, 1000));
	CHECK(!memcmp(far + MIB + 2 * PAGE + 1000, near + MIB, 2 * PAGE));
	CHECK(!ibv_dereg_mr(near_mr) && !ibv_dereg_mr(far_mr));
}

/* --- where there is no memory ---------------------------------------------------------------- */

char *hole(size_t before)
{
	char *area = map_at(NULL, MIB, -1);

	CHECK(!munmap(area + before, PAGE));
	return area;
}

CASE("on demand", odp_send_of_nothing)
{
	char *area = hole(10 * PAGE);
	struct ibv_mr *mr = reg_odp(&c, area, MIB, RIGHTS);

	CHECK(!recv_sge(&s, 1, sge(s.own, 0, BYTES)));
	CHECK(!send_sge(&c, 2, at(mr, area + 10 * PAGE, 8), 0));
	expect(c.id->send_cq, 2, IBV_WC_LOC_PROT_ERR);
	flushes(&c);
	CHECK(!ibv_dereg_mr(mr));
}

/* Found in the middle of a long message, segments of which are tried many at once. */
CASE("on demand", odp_long_send_into_nothing)
{
	char *area = hole(40 * PAGE);
	struct ibv_mr *mr = reg_odp(&c, area, MIB, RIGHTS);
	struct ibv_mr *far = reg_odp(&s, map_at(NULL, MIB, -1), MIB, RIGHTS);

	CHECK(!recv_sge(&s, 1, sge(far, 0, MIB)));
	CHECK(!send_sge(&c, 2, at(mr, area, MIB), 0));
	expect(c.id->send_cq, 2, IBV_WC_LOC_PROT_ERR);
	flushes(&c);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(far));
}

CASE("on demand", odp_receive_into_nothing)
{
	char *area = hole(10 * PAGE);
	struct ibv_mr *mr = reg_odp(&s, area, MIB, RIGHTS);

	CHECK(!recv_sge(&s, 1, at(mr, area + 9 * PAGE, 2 * PAGE)));
	CHECK(!send_sge(&c, 2, sge(c.own, 0, 2 * PAGE), 0));
	expect(s.id->recv_cq, 1, IBV_WC_LOC_PROT_ERR);
	flushes(&s);
	CHECK(!ibv_dereg_mr(mr));
}

/* @what of the client fails at the server, which says so. */
static void fails_at_the_server(enum ibv_wr_opcode what, struct ibv_sge sg, void *to, uint32_t rkey)
{
	unsigned long sent = counted("tx_term_access");

	CHECK(!post(&c, 2, what, sg, (uintptr_t)to, rkey, IBV_SEND_SIGNALED));
	if (what == IBV_WR_RDMA_READ)
		expect(c.id->send_cq, 2, IBV_WC_REM_ACCESS_ERR);
	else
		next(c.id->send_cq);
	flushes(&c);
	flushes(&s);
	CHECK(counted("tx_term_access") == sent + 1);
}

CASE("on demand", odp_write_to_nothing)
{
	char *area = hole(10 * PAGE);
	struct ibv_mr *mr = reg_odp(&s, area, MIB, RIGHTS);

	fails_at_the_server(IBV_WR_RDMA_WRITE, sge(c.own, 0, 3 * PAGE), area + 8 * PAGE, mr->rkey);
	CHECK(!ibv_dereg_mr(mr));
}

CASE("on demand", odp_read_of_nothing)
{
	char *area = hole(10 * PAGE);
	struct ibv_mr *mr = reg_odp(&s, area, MIB, RIGHTS);

	fails_at_the_server(IBV_WR_RDMA_READ, sge(c.own, 0, 3 * PAGE), area + 8 * PAGE, mr->rkey);
	CHECK(!ibv_dereg_mr(mr));
}

CASE("on demand", odp_atomic_on_nothing)
{
	char *area = hole(10 * PAGE);
	struct ibv_mr *mr = reg_odp(&s, area, MIB, RIGHTS);

	CHECK(!post_atomic(&c, 2, IBV_WR_ATOMIC_FETCH_AND_ADD, sge(c.own, 0, 8),
			   (uintptr_t)area + 10 * PAGE, mr->rkey, 1, 0));
	expect(c.id->send_cq, 2, IBV_WC_REM_ACCESS_ERR);
	flushes(&c);
	flushes(&s);
	CHECK(!ibv_dereg_mr(mr));
}

/* Where no process has memory: the kernel's, and none at all. */
CASE("on demand", odp_no_address_of_a_process)
{
	static const uint64_t odd[] = { 0, 0xffff888000000000ULL, 0x60000000ULL << 32,
					SIZE_MAX - 2 * PAGE };
	struct end client, server;
	struct ibv_mr *mr;

	for (unsigned int i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		connect_pair(&client, &server, NULL);
		mr = implicit(&server);
		CHECK(!post(&client, 2, IBV_WR_RDMA_READ, sge(client.own, 0, PAGE), odd[i],
			    mr->rkey, IBV_SEND_SIGNALED));
		expect(client.id->send_cq, 2, IBV_WC_REM_ACCESS_ERR);
		CHECK(!ibv_dereg_mr(mr));
		release(&client);
		release(&server);
	}
	works(&c, &s);
}

/* The key says that it may be written, the process' own mapping that it may not. */
CASE("on demand", odp_write_to_what_is_read_only)
{
	char *area = map_at(NULL, MIB, -1);
	struct ibv_mr *mr;

	make_words(area, MIB, 8);
	CHECK(!mprotect(area, MIB, PROT_READ));
	mr = reg_odp(&s, area, MIB, RIGHTS);
	read_from(area + PAGE, mr->rkey, sge(c.own, 0, PAGE));
	CHECK(!memcmp(area + PAGE, c.buf + BYTES, PAGE));
	fails_at_the_server(IBV_WR_RDMA_WRITE, sge(c.own, 0, PAGE), area, mr->rkey);
	CHECK(has_words(area, MIB, 8));
	CHECK(!ibv_dereg_mr(mr));
}

/* Memory that the kernel itself has taken out of its reach. */
CASE("on demand", odp_secret_memory)
{
	int fd = syscall(SYS_memfd_secret, 0);
	struct ibv_mr *mr;
	char *area;

	if (fd < 0)
		SKIP("no memfd_secret()");
	CHECK(!ftruncate(fd, MIB));
	area = map_at(NULL, MIB, fd);
	make_words(area, MIB, 9);
	mr = reg_odp(&s, area, MIB, RIGHTS);
	fails_at_the_server(IBV_WR_RDMA_READ, sge(c.own, 0, PAGE), area, mr->rkey);
	CHECK(has_words(area, MIB, 9));
	CHECK(!ibv_dereg_mr(mr));
}

/* --- memory that changes between accesses ------------------------------------------------------ */

/* What is at an address counts when it is accessed. */
CASE("on demand", odp_follows_the_address)
{
	char *area = map_at(NULL, MIB, -1), *other = map_at(NULL, MIB, -1);
	struct ibv_mr *mr = reg_odp(&s, area, MIB, RIGHTS);

	make_words(area, MIB, 1);
	make_words(other, MIB, 2);
	read_from(area, mr->rkey, sge(c.own, 0, BYTES));
	CHECK(has_words(c.own->addr, BYTES, 1));
	CHECK(mremap(other, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED, area) == area);
	read_from(area, mr->rkey, sge(c.own, 0, BYTES));
	CHECK(has_words(c.own->addr, BYTES, 2));
	CHECK(!madvise(area, MIB, MADV_DONTNEED));
	read_from(area, mr->rkey, sge(c.own, 0, BYTES));
	for (int i = 0; i < BYTES; i++)
		CHECK(!((char *)c.own->addr)[i]);
	CHECK(!munmap(area, MIB));
	map_at(area, MIB, -1);
	make_words(c.own->addr, BYTES, 3);
	write_to(area + PAGE, mr->rkey, sge(c.own, 0, BYTES));
	written(&s);
	/* But for what was read last. */
	CHECK(!memcmp(area + PAGE + 8, (char *)c.own->addr + 8, BYTES - 8));
	CHECK(!ibv_dereg_mr(mr));
}

/* A page that is free to be dropped is not, once a peer has written to it. */
CASE("on demand", odp_written_memory_is_kept)
{
	char *area = map_at(NULL, MIB, -1);
	struct ibv_mr *mr = reg_odp(&s, area, MIB, RIGHTS);

	make_words(area, MIB, 1);
	CHECK(!madvise(area, MIB, MADV_FREE));
	make_words(c.own->addr, BYTES, 2);
	write_to(area, mr->rkey, sge(c.own, 0, BYTES));
	memcpy(c.buf, c.own->addr, BYTES);
	written(&s);
	if (madvise(area, MIB, MADV_PAGEOUT))
		SKIP("no MADV_PAGEOUT");
	CHECK(!memcmp(area, c.buf, BYTES));
	CHECK(!ibv_dereg_mr(mr));
}

/* A region may become one that is paged, and the other way round. */
CASE("on demand", odp_rereg)
{
	char *area = map_at(NULL, MIB, -1);
	struct ibv_mr *mr = ibv_reg_mr(s.id->pd, area, MIB, RIGHTS);
	int flags = IBV_REREG_MR_CHANGE_ACCESS;
	long before;

	CHECK(mr);
	make_words(area, MIB, 1);
	CHECK(!ibv_rereg_mr(mr, flags, NULL, NULL, 0, RIGHTS | IBV_ACCESS_ON_DEMAND));
	CHECK(!munmap(area, MIB));
	map_at(area, MIB, -1);
	make_words(area, MIB, 2);
	read_from(area, mr->rkey, sge(c.own, 0, BYTES));
	CHECK(has_words(c.own->addr, BYTES, 2));
	CHECK(!ibv_rereg_mr(mr, flags, NULL, NULL, 0,
			    IBV_ACCESS_ON_DEMAND | IBV_ACCESS_REMOTE_READ));
	read_from(area, mr->rkey, sge(c.own, 0, BYTES));
	/* It stays paged where it is moved to. */
	before = pinned();
	make_words(area + MIB / 2, BYTES, 3);
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, area + MIB / 2, MIB / 2, 0));
	read_from(area + MIB / 2, mr->rkey, sge(c.own, 0, BYTES));
	CHECK(has_words(c.own->addr, BYTES, 3) && pinned() == before);
	CHECK(!ibv_rereg_mr(mr, flags, NULL, NULL, 0, RIGHTS));
	read_from(area + MIB / 2, mr->rkey, sge(c.own, 0, BYTES));
	CHECK(has_words(c.own->addr, BYTES, 3));
	CHECK(!ibv_dereg_mr(mr));
}

/* --- memory that changes amid accesses ---------------------------------------------------------- */

volatile int over;
char *stage;
static int stage_fd;

#define ROUNDS	1500

/* The same memory, mapped again and again. */
static void *remaps(void *arg)
{
	for (unsigned long i = 0; !over; i++) {
		if (i % 3)
			map_at(stage, STAGE, stage_fd);
		else
			CHECK(!madvise(stage, STAGE, MADV_DONTNEED));
		usleep(i % 7 * 20);
	}
	return NULL;
}

/* Children see what there was when they were made, whatever comes to their parent. */
static void *forks(void *arg)
{
	while (!over) {
		pid_t child = fork();
		int status;

		CHECK(child >= 0);
		if (!child) {
			static char before[STAGE];

			memcpy(before, stage, STAGE);
			usleep(2000);
			_exit(memcmp(before, stage, STAGE) ? 1 : 0);
		}
		CHECK(waitpid(child, &status, 0) == child && !status);
	}
	return NULL;
}

/* Pages become large ones, and small again. */
static void *collapses(void *arg)
{
	while (!over) {
		madvise(stage, STAGE, MADV_HUGEPAGE);
		madvise(stage, STAGE, 25 /* MADV_COLLAPSE */);
		madvise(stage, STAGE, MADV_NOHUGEPAGE);
		usleep(100);
	}
	return NULL;
}

/* Each round writes other words, and both the process and a Read find them. */
void hammer(void *(*storm)(void *))
{
	char *near = map_at(NULL, STAGE, -1);
	struct ibv_mr *near_mr = ibv_reg_mr(c.id->pd, near, STAGE, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *mr = reg_odp(&s, stage, STAGE, RIGHTS);
	uint32_t length, offset;
	double end = now() + 4;
	pthread_t thread;

	CHECK(near_mr && !pthread_create(&thread, NULL, storm, NULL));
	for (uint32_t i = 0; i < ROUNDS && now() < end; i++) {
		length = 4 + i * 5932 % (STAGE / 2) / 4 * 4;
		offset = i * 7716 % (STAGE / 2) / 4 * 4;
		make_words(near, length, i);
		CHECK(!post(&c, 1, IBV_WR_RDMA_WRITE, at(near_mr, near, length),
			    (uintptr_t)stage + offset, mr->rkey, 0));
		CHECK(!post(&c, 2, IBV_WR_RDMA_READ, at(near_mr, near + STAGE / 2, length),
			    (uintptr_t)stage + offset, mr->rkey, IBV_SEND_SIGNALED));
		CHECK(polled(c.id->send_cq).status == IBV_WC_SUCCESS);
		CHECK(has_words(near + STAGE / 2, length, i));
		/*
		 * User-Mode Linux tells a process of pages that the kernel has exchanged when it
		 * comes back from there, and not before. A process that polls does not go there.
		 */
		sched_yield();
		CHECK(has_words(stage + offset, length, i));
	}
	over = 1;
	pthread_join(thread, NULL);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(near_mr));
}

CASE("on demand", odp_remapped_amid_traffic)
{
	stage_fd = memfd_create("stage", 0);
	CHECK(stage_fd >= 0 && !ftruncate(stage_fd, STAGE));
	stage = map_at(NULL, STAGE, stage_fd);
	hammer(remaps);
}

CASE("on demand", odp_copied_on_write_amid_traffic)
{
	stage = map_at(NULL, STAGE, -1);
	hammer(forks);
}

CASE("on demand", odp_collapsed_amid_traffic)
{
	char *area = map_at(NULL, 4 * MIB, -1);

	stage = (char *)(((uintptr_t)area + 2 * MIB - 1) & ~(2 * MIB - 1));
	hammer(collapses);
}

/* The process unmaps it amid a Write: the next owner of the page is not written to. */
static void *unmaps(void *arg)
{
	while (!over) {
		/* Gone, but for the addresses, where another thread would map something. */
		CHECK(mmap(stage, STAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			   0) == stage);
		map_at(stage, STAGE, -1);
		memset(stage, 0x5a, STAGE);
		usleep(50);
	}
	return NULL;
}

CASE("on demand", odp_unmapped_amid_traffic)
{
	char *innocent = map_at(NULL, 8 * STAGE, -1);
	struct end client, server;
	double end = now() + 4;
	pthread_t thread;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	stage = map_at(NULL, STAGE, -1);
	CHECK(!pthread_create(&thread, NULL, unmaps, NULL));
	for (int i = 0; now() < end; i++) {
		connect_pair(&client, &server, NULL);
		mr = reg_odp(&server, stage, STAGE, RIGHTS);
		memset(client.own->addr, 0xa5, BYTES);
		do {
			/* Pages that were the region's a moment ago. */
			madvise(innocent, 8 * STAGE, MADV_DONTNEED);
			memset(innocent, i, 8 * STAGE);
			for (int j = 0; j < 4; j++)
				CHECK(!post(&client, j, IBV_WR_RDMA_WRITE,
					    sge(client.own, 0, BYTES), (uintptr_t)stage + j * BYTES,
					    mr->rkey, j == 3 ? IBV_SEND_SIGNALED : 0));
			wc = polled(client.id->send_cq);
			for (size_t k = 0; k < 8 * STAGE; k += 512)
				CHECK(innocent[k] == (char)i);
		} while (wc.status == IBV_WC_SUCCESS && now() < end);
		release(&client);
		CHECK(!ibv_dereg_mr(mr));
		release(&server);
	}
	over = 1;
	pthread_join(thread, NULL);
	works(&c, &s);
}

/* Regions and queue pairs go while their pages come. */
CASE("on demand", odp_destroyed_amid_faults)
{
	struct end client, server;
	double end = now() + 4;
	struct ibv_mr *mr;
	char *area;

	for (int i = 0; now() < end; i++) {
		area = map_at(NULL, AREA, -1);
		connect_pair(&client, &server, NULL);
		mr = i % 2 ? implicit(&server) : reg_odp(&server, area, AREA, RIGHTS);
		for (int j = 0; j < 8; j++)
			CHECK(!post(&client, j, IBV_WR_RDMA_WRITE, sge(client.own, 0, BYTES),
				    (uintptr_t)area + j * (AREA / 8), mr->rkey, 0));
		usleep(i % 10 * 100);
		if (i % 4 == 0)
			CHECK(!ibv_dereg_mr(mr));
		if (i % 3 == 0)
			munmap(area, AREA);
		release(&server);
		if (i % 4)
			CHECK(!ibv_dereg_mr(mr));
		release(&client);
		if (i % 3)
			munmap(area, AREA);
	}
	works(&c, &s);
}
