// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * One seat per CPU. A task takes the seat of the CPU it runs on; whatever then
 * runs on that CPU on top of this task may leave streams there. A task that has
 * moved finds no seat of its own, nor does anybody else use the one it left: so
 * nobody ever adds to a seat but on its CPU and on top of its task.
 */
#include "engine/relay.h"

#include <linux/delay.h>

#include "engine/porter.h"
#include "engine/stream_state.h"
#include "engine/tx.h"
#include "proto/hot.h"

DEFINE_PER_CPU(struct weft_relay_seat, weft_relay_seats);

/* What weft_relay_close() has found. */
void weft_hot weft_relay_run(const struct weft_relay *relay)
{
	struct llist_node *owed = llist_del_all(&relay->seat->owed);
	struct weft_stream *st, *next;

	llist_for_each_entry_safe(st, next, llist_reverse_order(owed), relay_node) {
		weft_tx_run(st);
		if (relay->st)
			weft_porter_meet(relay->st, st);
		clear_bit_unlock(WEFT_TX_OFFERED, &st->tx.claim); /* not ours any more */
	}
}

/**
 * weft_relay_offer - let the task below run tx
 * @st: marked by weft_tx_mark()
 *
 * Context: any up to softirq. Return: false if no task is there for it, or does
 * it already and might just be through: somebody else must.
 */
bool weft_hot weft_relay_offer(struct weft_stream *st)
{
	struct weft_relay_seat *seat = get_cpu_ptr(&weft_relay_seats);
	bool taken = READ_ONCE(seat->task) == current &&
		     !test_and_set_bit_lock(WEFT_TX_OFFERED, &st->tx.claim);

	if (taken)
		llist_add(&st->relay_node, &seat->owed);
	put_cpu_ptr(&weft_relay_seats);
	return taken;
}

/**
 * weft_relay_wait - until no task holds a stream
 * @st: stream that nobody offers any more
 *
 * Context: may sleep.
 */
void weft_relay_wait(struct weft_stream *st)
{
	while (test_bit_acquire(WEFT_TX_OFFERED, &st->tx.claim))
		usleep_range(20, 100);
}
