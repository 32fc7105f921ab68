// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The tx claim: whatever is marked is sent. Two threads run the functions of the header, and
 * their accesses to memory are made in each order there is. A thread has no stack of its own:
 * for each access its function is run again, gets the results of the earlier accesses,
 * makes the next one, and is told anything that ends it from there on.
 *
 * What is to be sent is a count, which is as stale as barriers allow: others see a store after
 * the next barrier of its thread, and a load gets what there was at the last one.
 */
#include <linux/atomic.h>
#include <linux/bitops.h>

#include "suite.h"

#define THREADS	2
#define CHOICES	20U	/* accesses of a run that are made in each order there is */
#define DEPTH	64	/* all of them: two doorbells can hold each other up for ever */

/**
 * struct thread - one of them
 * @run: its function
 * @results: what its accesses came to
 * @made: how many it has made
 * @at: the next one of this pass through @run
 * @stepped: this pass has made its access
 * @ended: @run came to its end with accesses that were made
 * @seen: of what is to be sent
 * @unseen: of its own stores, by others
 * @barrier: there was one since the last access
 */
struct thread {
	void (*run)(void);
	u32 results[DEPTH];
	u32 made;
	u32 at;
	bool stepped;
	bool ended;
	u32 seen;
	u32 unseen;
	bool barrier;
};

/**
 * struct model - what the threads share, and how they take turns
 * @claim: under test
 * @todo: what is to be sent: in memory
 * @sent: of it
 * @owner: has the claim, as far as it was told
 * @clash: there were two, or one sent that was none
 * @choices: whose turn it is, access by access: of those that can go on; when there are no
 *	choices left, the threads go on one after the other
 * @options: how many can
 * @accesses: made so far
 * @threads: each with its own view
 */
struct model {
	unsigned long claim;
	u32 todo;
	u32 sent;
	struct thread *owner;
	bool clash;
	u8 choices[CHOICES];
	u8 options[CHOICES];
	u32 accesses;
	struct thread threads[THREADS];
};

static struct model model;
static struct thread *self; /* NULL: the test, which is alone */

static void flush_stores(struct thread *t)
{
	model.todo += t->unseen;
	t->unseen = 0;
}

/*
 * Is it the access to be made? What a barrier lets others see, they see as late as that.
 * If not, @result is what is told instead.
 */
static bool access_now(u32 *result)
{
	u32 at;

	if (!self)
		return true;
	at = self->at++;
	*result = at < self->made ? self->results[at] : 0;
	if (at < self->made || self->stepped)
		return false;
	self->stepped = true;
	if (self->barrier)
		flush_stores(self);
	self->barrier = false;
	return true;
}

static u32 access_made(u32 result)
{
	if (self)
		self->results[self->made] = result;
	return result;
}

/* Is the rest of this pass only to end? */
static bool is_past(void)
{
	return self->at > self->made + self->stepped;
}

/* Counts once: right behind the access that was made, or before all of them. */
static void model_barrier(void)
{
	if (!self || self->at != self->made + self->stepped || (self->made && !self->stepped))
		return;
	self->barrier = true;
	self->seen = model.todo + self->unseen;
}

static void model_set_bit(long nr, unsigned long *word)
{
	u32 result;

	if (!access_now(&result))
		return;
	set_bit(nr, word);
	access_made(0);
}

static void model_clear_bit(long nr, unsigned long *word)
{
	u32 result;

	if (!access_now(&result))
		return;
	clear_bit(nr, word);
	access_made(0);
}

static bool model_test_bit(long nr, const unsigned long *word)
{
	u32 result;

	return access_now(&result) ? access_made(test_bit(nr, word)) : result;
}

/* Acquire, if it succeeds. */
static bool model_test_and_set_bit_lock(long nr, unsigned long *word)
{
	u32 result;

	if (!access_now(&result))
		return result;
	result = test_and_set_bit_lock(nr, word);
	if (self && !result) {
		self->seen = model.todo + self->unseen;
		model.clash |= !!model.owner;
		model.owner = self;
	}
	return access_made(result);
}

/* Release. */
static void model_clear_bit_unlock(long nr, unsigned long *word)
{
	u32 result;

	if (!access_now(&result))
		return;
	if (self) {
		flush_stores(self);
		model.clash |= model.owner != self;
		model.owner = NULL;
	}
	clear_bit_unlock(nr, word);
	access_made(0);
}

#undef set_bit
#undef clear_bit
#undef test_bit
#undef test_and_set_bit_lock
#undef clear_bit_unlock
#undef smp_mb__before_atomic
#undef smp_mb__after_atomic
#define set_bit			model_set_bit
#define clear_bit		model_clear_bit
#define test_bit		model_test_bit
#define test_and_set_bit_lock	model_test_and_set_bit_lock
#define clear_bit_unlock	model_clear_bit_unlock
#define smp_mb__before_atomic	model_barrier
#define smp_mb__after_atomic	model_barrier

#include "engine/state/claim.h"

/* What threads do. */

static void bring_something(void)
{
	u32 result;

	if (!access_now(&result))
		return;
	self->unseen++;
	self->seen++;
	access_made(0);
}

static void send_all(void)
{
	u32 result;

	weft_tx_clear_mark(&model.claim);
	if (!access_now(&result))
		return;
	model.clash |= model.owner != self;
	model.sent = max(model.sent, access_made(self->seen));
}

/* Begins with the claim. */
static void owner(void)
{
	do {
		send_all();
	} while (weft_tx_unclaim(&model.claim) && weft_tx_try_claim(&model.claim) && !is_past());
}

/* A timer or rx, say; the worker that it wakes comes at once. */
static void marker(void)
{
	bring_something();
	if (weft_tx_mark(&model.claim) && weft_tx_try_claim(&model.claim))
		owner();
}

static void marker_twice(void)
{
	marker();
	marker();
}

static void doorbell(void)
{
	bring_something();
	do {
		if (!weft_tx_claim_or_mark(&model.claim))
			return;
		send_all();
	} while (weft_tx_unclaim(&model.claim) && !is_past());
}

struct order_row {
	const char *name;
	bool claimed;
	void (*first)(void);
	void (*second)(void);
};

static const struct order_row order_rows[] = {
	{ "mark_while_owned", true, owner, marker },
	{ "two_marks_while_owned", true, owner, marker_twice },
	{ "mark_and_mark", false, marker, marker },
	{ "doorbell_while_owned", true, owner, doorbell },
	{ "doorbell_and_doorbell", false, doorbell, doorbell },
	{ "doorbell_and_mark", false, doorbell, marker },
};

WEFT_ROWS(order_rows)

/* One access of a thread, and what comes before the next. */
static void step(struct thread *t)
{
	self = t;
	t->at = 0;
	t->stepped = false;
	t->run();
	t->ended = !is_past();
	t->made += t->stepped;
	if (t->ended)
		flush_stores(t);
	self = NULL;
}

/* The thread whose turn it is; NULL when all have ended, or there is no end. */
static struct thread *choose(void)
{
	struct thread *can[THREADS];
	u32 i, count = 0;

	for (i = 0; i < THREADS; i++)
		if (!model.threads[i].ended)
			can[count++] = &model.threads[i];
	if (!count || model.accesses == DEPTH)
		return NULL;
	if (model.accesses >= CHOICES) {
		model.accesses++;
		return can[0];
	}
	model.options[model.accesses] = count;
	return can[model.choices[model.accesses++]];
}

/* Return: is all sent, by one thread at a time, and the claim free? */
static bool run_order(const struct order_row *row)
{
	struct thread *t;

	memset(model.threads, 0, sizeof(model.threads));
	model.threads[0].run = row->first;
	model.threads[1].run = row->second;
	model.claim = row->claimed ? BIT(WEFT_TX_CLAIMED) : 0;
	model.owner = row->claimed ? &model.threads[0] : NULL;
	model.todo = 0;
	model.sent = 0;
	model.clash = false;
	model.accesses = 0;
	while ((t = choose()))
		step(t);
	return model.threads[0].ended && model.threads[1].ended && !model.clash && !model.claim &&
	       model.sent == model.todo;
}

/* The last choice that can be another is the next one. */
static bool next_order(void)
{
	model.accesses = min(model.accesses, CHOICES);
	while (model.accesses--) {
		if (++model.choices[model.accesses] < model.options[model.accesses])
			return true;
		model.choices[model.accesses] = 0;
	}
	return false;
}

static void weft_claim_loses_no_mark(struct kunit *test)
{
	const struct order_row *row = test->param_value;
	char order[CHOICES + 1] = "";
	u32 orders = 0, i;

	memset(model.choices, 0, sizeof(model.choices));
	do {
		orders++;
		if (run_order(row))
			continue;
		for (i = 0; i < min(model.accesses, CHOICES); i++)
			order[i] = '0' + model.choices[i];
		KUNIT_FAIL(test, "sent %u of %u, claim %#lx, %s, in order %s", model.sent,
			   model.todo, model.claim,
			   model.clash ? "two threads sent" : "one at a time", order);
		return;
	} while (next_order());
	kunit_info(test, "%u orders\n", orders);
	KUNIT_EXPECT_GT(test, orders, 100U);
}

/* In no order but one: what each function says and does. */
static void weft_claim_steps(struct kunit *test)
{
	unsigned long claim = 0;

	KUNIT_EXPECT_TRUE(test, weft_tx_mark(&claim));
	KUNIT_EXPECT_EQ(test, claim, BIT(WEFT_TX_AGAIN));
	KUNIT_EXPECT_TRUE(test, weft_tx_try_claim(&claim));
	KUNIT_EXPECT_FALSE(test, weft_tx_try_claim(&claim));
	KUNIT_EXPECT_EQ(test, claim, BIT(WEFT_TX_CLAIMED) | BIT(WEFT_TX_AGAIN));
	weft_tx_clear_mark(&claim); /* serves the older mark */
	KUNIT_EXPECT_EQ(test, claim, BIT(WEFT_TX_CLAIMED));
	KUNIT_EXPECT_FALSE(test, weft_tx_unclaim(&claim));
	KUNIT_EXPECT_EQ(test, claim, 0UL);

	KUNIT_EXPECT_TRUE(test, weft_tx_claim_or_mark(&claim));
	KUNIT_EXPECT_EQ(test, claim, BIT(WEFT_TX_CLAIMED));
	weft_tx_clear_mark(&claim);
	KUNIT_EXPECT_FALSE(test, weft_tx_mark(&claim));
	KUNIT_EXPECT_TRUE(test, weft_tx_unclaim(&claim)); /* a mark came while it was owned */
	KUNIT_EXPECT_EQ(test, claim, BIT(WEFT_TX_AGAIN));
	KUNIT_EXPECT_TRUE(test, weft_tx_try_claim(&claim));
	KUNIT_EXPECT_FALSE(test, weft_tx_claim_or_mark(&claim));
	KUNIT_EXPECT_EQ(test, claim, BIT(WEFT_TX_CLAIMED) | BIT(WEFT_TX_AGAIN));
}

/* A request that waits for a response does not affect the claim. */
static void weft_claim_leaves_waits(struct kunit *test)
{
	unsigned long claim = BIT(WEFT_TX_WAITS);

	KUNIT_EXPECT_TRUE(test, weft_tx_mark(&claim));
	KUNIT_EXPECT_TRUE(test, weft_tx_claim_or_mark(&claim));
	weft_tx_clear_mark(&claim);
	KUNIT_EXPECT_FALSE(test, weft_tx_unclaim(&claim));
	KUNIT_EXPECT_EQ(test, claim, BIT(WEFT_TX_WAITS));
}

static struct kunit_case claim_cases[] = { KUNIT_CASE(weft_claim_steps),
					   KUNIT_CASE(weft_claim_leaves_waits),
					   KUNIT_CASE_PARAM(weft_claim_loses_no_mark,
							    order_rows_gen_params),
					   {} };

static struct kunit_suite claim_suite = {
	.name = "weft_claim",
	.test_cases = claim_cases,
};

kunit_test_suite(claim_suite);
