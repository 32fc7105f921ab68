// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Room for the runs of a train.
 */
#include "net/txroom.h"

#include <linux/slab.h>
#include <linux/string.h>

DEFINE_PER_CPU(struct page_frag, weft_softirq_frag);

/* No stream is left. Context: process. */
void weft_txsock_module_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct page_frag *frag = per_cpu_ptr(&weft_softirq_frag, cpu);

		if (frag->page)
			put_page(frag->page);
		frag->page = NULL;
	}
}

/* From now on for whole trains: who has sent something large will do so again. */
int weft_txroom_get_many_vecs(struct weft_txsock *tx)
{
	struct bio_vec *many =
		kmalloc_array(WEFT_TRAIN_VECS, sizeof(*many), weft_txroom_gfp(tx));

	if (!many) {
		tx->no_memory = true;
		return -ENOMEM;
	}
	memcpy(many, tx->few, tx->count * sizeof(*many));
	tx->vec = many;
	tx->vecs = WEFT_TRAIN_VECS;
	return 0;
}
