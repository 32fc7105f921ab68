// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A process that writes where the kernel reads: at random, or so that its queues never seem to
 * be empty. It goes on while its QPs change state, are destroyed, or lose their device, in
 * mappings of its own: those of the library go with the QPs.
 */
#define _GNU_SOURCE
#include "../mappings.h"
#include "verbs.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../../drivers/weft/uapi/weft-abi.h"

#define REGIONS 64
#define WORDS (WEFT_CTL_BYTES / 4) /* of a control block; queues begin at multiples of its size */
#define BLOCKS 32		   /* of the first page of a region */
#define PORT 7556
#define LIMIT 60 /* seconds that nothing here may take */

static volatile uint32_t *region[REGIONS];
static size_t bytes[REGIONS];
static int regions;
static volatile int stop;

/* What was mapped before is found, too; it is the same memory. */
static void map_again(void)
{
	struct mapping m[REGIONS];
	int found = find_mappings(m, REGIONS);

	CHECK(found >= 4);
	for (int i = 0; i < found; i++) {
		bytes[i] = m[i].end - m[i].begin;
		region[i] = mmap(NULL, bytes[i], PROT_READ | PROT_WRITE, MAP_SHARED,
				 c.id->verbs->cmd_fd, m[i].offset);
		CHECK(region[i] != MAP_FAILED);
	}
	regions = found;
}

/* Half of it where a queue is sure to begin. */
static void *corrupt(void *arg)
{
	unsigned int seed = 1;

	while (!stop) {
		int block = rand_r(&seed) % 2 ? rand_r(&seed) % BLOCKS : 0;
		uint32_t value = rand_r(&seed) % 3 ? rand_r(&seed) : rand_r(&seed) % 4;

		region[rand_r(&seed) % regions][block * WORDS + rand_r(&seed) % WORDS] = value;
	}
	return arg;
}

/* The control block whose first words of either half are these. */
static volatile uint32_t *find_block(uint32_t first, uint32_t second)
{
	volatile uint32_t *found = NULL;

	for (int i = 0; i < regions; i++) {
		for (int k = 0; k < BLOCKS; k++) {
			volatile uint32_t *at = region[i] + k * WORDS;

			if (at[0] == first && at[WORDS / 2] == second) {
				CHECK(!found || found == at);
				found = at;
			}
		}
	}
	CHECK(found);
	return found;
}

/* Always half a queue more than the kernel has taken. */
static void *post_without_end(void *arg)
{
	volatile uint32_t *prod = arg;
	const volatile uint32_t *taken = prod + WORDS / 2;

	while (!stop)
		*prod = *taken + WRS / 2;
	return arg;
}

#define WRITES 8
#define MESSAGES 5
#define RECEIVES 13

/* No two queues have come as far: the send queue of @c, the receive queue of @s. */
static void find_queues(volatile uint32_t **sq, volatile uint32_t **rq)
{
	for (int i = 0; i < RECEIVES; i++)
		CHECK(!recv_sge(&s, i, sge(s.own, 0, 8)));
	for (int i = 0; i < WRITES; i++)
		CHECK(!post(&c, i, IBV_WR_RDMA_WRITE, sge(c.own, 0, 8), (uintptr_t)s.buf,
			    s.open->rkey, 0));
	for (int i = 0; i < MESSAGES; i++) {
		CHECK(!send_sge(&c, i, sge(c.own, 0, 8), 0));
		expect(c.id->send_cq, i, IBV_WC_SUCCESS);
		expect(s.id->recv_cq, i, IBV_WC_SUCCESS);
	}
	map_again();
	*sq = find_block(WRITES + MESSAGES, WRITES + MESSAGES);
	*rq = find_block(RECEIVES, MESSAGES);
}

static void start_posting(pthread_t *threads)
{
	volatile uint32_t *sq, *rq;

	find_queues(&sq, &rq);
	CHECK(!pthread_create(&threads[0], NULL, post_without_end, (void *)sq));
	CHECK(!pthread_create(&threads[1], NULL, post_without_end, (void *)rq));
}

/* Whatever they answer: that they answer counts. */
static void change_states(void)
{
	struct ibv_qp_init_attr attr = { .cap = { WRS, WRS, 4, 4, 64 },
					 .qp_type = IBV_QPT_RC,
					 .send_cq = s.id->send_cq,
					 .recv_cq = s.id->recv_cq };
	struct ibv_qp_attr to = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp *qp;

	for (int i = 0; i < 50; i++) {
		qp = ibv_create_qp(s.id->pd, &attr);
		CHECK(qp);
		for (int k = 0; k < 10; k++) {
			to.qp_state = IBV_QPS_RESET;
			ibv_modify_qp(qp, &to, IBV_QP_STATE);
		}
		to.qp_state = IBV_QPS_ERR;
		if (i % 2)
			CHECK(!ibv_modify_qp(qp, &to, IBV_QP_STATE));
		CHECK(!ibv_destroy_qp(qp));
	}
}

/* Run by the case below, as a process of its own. */
UNLISTED(corrupts_its_queues)
{
	struct ibv_wc wc;
	pthread_t thread;
	double end;

	map_again();
	CHECK(!pthread_create(&thread, NULL, corrupt, NULL));
	for (end = now() + 1; now() < end;) {
		for (int i = 0; i < WRS; i++)
			post(&c, i, IBV_WR_SEND, sge(c.own, 0, 8), 0, 0, IBV_SEND_SIGNALED);
		recv_sge(&s, 1, sge(s.own, 0, 8));
		ibv_poll_cq(c.id->send_cq, 1, &wc);
		ibv_poll_cq(s.id->recv_cq, 1, &wc);
	}
	change_states();
	rdma_destroy_qp(c.id);
	rdma_destroy_qp(s.id);
	stop = 1;
	pthread_join(thread, NULL);
}

/*
 * Likewise. A queue that never seems to be empty must not be flushed for ever, but a few
 * times what it holds, so what was flushed is counted. Where CPUs are few or shared the
 * process does not keep pace with the kernel, and then this shows no more than that all ends.
 */
UNLISTED(posts_while_its_queue_pairs_go)
{
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };
	unsigned long before, flushed;
	pthread_t threads[2];

	before = counted("wr_flushes");
	start_posting(threads);
	usleep(100000);
	CHECK(!ibv_modify_qp(c.id->qp, &err, IBV_QP_STATE));
	CHECK(!ibv_modify_qp(s.id->qp, &err, IBV_QP_STATE));
	usleep(500000);
	rdma_destroy_qp(c.id);
	rdma_destroy_qp(s.id);
	flushed = counted("wr_flushes") - before;
	stop = 1;
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	printf("%lu requests were flushed\n", flushed);
	CHECK(flushed > 0 && flushed <= 20 * WRS);
}

/* A queue that always seems to be put off, with news in it every other time. */
static void *defer_without_end(void *arg)
{
	volatile struct weft_sq_ctl *sq = arg;

	for (unsigned int i = 0; !stop; i++) {
		sq->defer_doorbell = 1;
		sq->state = WEFT_SQ_POLLED;
		sq->prod = sq->cons + i % 2;
	}
	return arg;
}

/* Nothing may look at the queue any more once it is gone: no timer, no worker. */
static void ends_while_its_queue_seems_deferred(void)
{
	volatile uint32_t *sq, *rq;
	pthread_t thread;

	find_queues(&sq, &rq);
	stop = 0;
	CHECK(!pthread_create(&thread, NULL, defer_without_end, (void *)sq));
	for (int i = 0; i < WRS; i++)
		post(&c, i, IBV_WR_RDMA_WRITE, sge(c.own, 0, 8), (uintptr_t)s.buf, s.open->rkey, 0);
	rdma_destroy_qp(c.id);
	rdma_destroy_qp(s.id);
	stop = 1;
	pthread_join(thread, NULL);
	/* The next one shall find its own. */
	memset((void *)sq, 0, WEFT_CTL_BYTES);
	memset((void *)rq, 0, WEFT_CTL_BYTES);
	while (regions--)
		CHECK(!munmap((void *)region[regions], bytes[regions]));
}

/* Likewise. */
UNLISTED(defers_while_its_queue_pairs_go)
{
	for (int i = 0; i < 20; i++) {
		ends_while_its_queue_seems_deferred();
		release(&c);
		release(&s);
		connect_pair(&c, &s, NULL);
	}
	usleep(50000);
}

/* It gets the event that its device is gone, and continues. */
UNLISTED(corrupts_its_queues_until_its_device_goes)
{
	struct ibv_async_event event;
	pthread_t threads[3];

	start_posting(threads);
	CHECK(!pthread_create(&threads[2], NULL, corrupt, NULL));
	printf("ready\n");
	do {
		CHECK(!ibv_get_async_event(c.id->verbs, &event));
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_DEVICE_FATAL);
	usleep(500000);
	_exit(0);
}

/* More than the queue holds; then what was there before. */
static void reset_is_refused(struct ibv_qp *qp, volatile uint32_t *prod)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	uint32_t was = *prod;

	*prod = was + 0x10000;
	CHECK(ibv_modify_qp(qp, &reset, IBV_QP_STATE) == EIO);
	*prod = was;
	CHECK(!ibv_modify_qp(qp, &reset, IBV_QP_STATE));
}

CASE("states", reset_of_a_corrupt_queue)
{
	volatile uint32_t *sq, *rq;

	find_queues(&sq, &rq);
	reset_is_refused(c.id->qp, sq);
	reset_is_refused(s.id->qp, rq);
	reconnect_pair(&c, &s);
	works(&c, &s);
}

static void ends_in_time(const char *name)
{
	pid_t pid = start_case(name, PORT);
	double end = now() + LIMIT;
	int status;

	while (!waitpid(pid, &status, WNOHANG)) {
		works(&c, &s);
		if (now() > end) {
			printf("%s has not ended within %d s\n", name, LIMIT);
			exit(1);
		}
	}
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	works(&c, &s);
}

CASE("streams", corrupt_rings_are_isolated)
{
	ends_in_time("corrupts_its_queues");
}

CASE("streams", endless_posts_are_isolated)
{
	ends_in_time("posts_while_its_queue_pairs_go");
}

CASE("streams", endless_deferral_is_isolated)
{
	ends_in_time("defers_while_its_queue_pairs_go");
}
