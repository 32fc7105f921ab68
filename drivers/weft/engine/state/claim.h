/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The tx claim: one word of bits, and the only lock of the sending direction.
 *
 *	free --try_claim--> CLAIMED --unclaim--> free
 *
 * A context that brings something to send sets AGAIN first and looks at CLAIMED then; an owner
 * clears AGAIN, works, drops CLAIMED, and looks at AGAIN then. So either the owner sees
 * the mark, or the one that marks finds the claim free and must see to it that tx runs. That
 * takes no barrier: they are bits of one word, whose changes all CPUs see in the same order.
 * WAITS is set by tx when the request at hand waits for a response, and cleared by rx.
 */
#ifndef WEFT_ENGINE_STATE_CLAIM_H
#define WEFT_ENGINE_STATE_CLAIM_H

#include <linux/atomic.h>
#include <linux/bitops.h>

enum weft_tx_claim {
	WEFT_TX_CLAIMED,	/* tx has an owner */
	WEFT_TX_AGAIN,		/* something to send since the owner last looked */
	WEFT_TX_WAITS,		/* tx is to be run when a response is in */
};

/**
 * weft_tx_mark - there is something to send
 * @claim: of the stream
 *
 * Context: any. Return: true if tx has no owner, so that the caller must run it.
 */
static inline bool weft_tx_mark(unsigned long *claim)
{
	smp_mb__before_atomic(); /* what is to be sent; pairs with weft_tx_clear_mark() */
	set_bit(WEFT_TX_AGAIN, claim);
	return !test_bit(WEFT_TX_CLAIMED, claim);
}

/* Takes the claim if it is free. Context: any. */
static inline bool weft_tx_try_claim(unsigned long *claim)
{
	return !test_and_set_bit_lock(WEFT_TX_CLAIMED, claim);
}

/* The owner is about to look at everything: older marks are served by that. */
static inline void weft_tx_clear_mark(unsigned long *claim)
{
	if (test_bit(WEFT_TX_AGAIN, claim))
		clear_bit(WEFT_TX_AGAIN, claim);
	smp_mb__after_atomic(); /* what was marked is seen from here; pairs with weft_tx_mark() */
}

/**
 * weft_tx_unclaim - give the claim up
 * @claim: of the stream, held
 *
 * Context: any. Return: true if there was a mark meanwhile, which the caller must serve.
 */
static inline bool weft_tx_unclaim(unsigned long *claim)
{
	clear_bit_unlock(WEFT_TX_CLAIMED, claim); /* pairs with weft_tx_try_claim() */
	return test_bit(WEFT_TX_AGAIN, claim);
}

/* As weft_tx_mark(), for one that would take the claim itself. */
static inline bool weft_tx_claim_or_mark(unsigned long *claim)
{
	while (!weft_tx_try_claim(claim))
		if (!weft_tx_mark(claim))
			return false;
	return true;
}

#endif
