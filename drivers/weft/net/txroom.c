// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Room for the runs of a train.
 */
#include "net/txroom.h"

#include <linux/slab.h>
#include <linux/string.h>

/* From now on for whole trains: who has sent something large will do so again. */
int weft_txroom_get_many_vecs(struct weft_txsock *tx)
{
	struct bio_vec *many =
		kmalloc_array(WEFT_TRAIN_VECS, sizeof(*many), tx->allocation | __GFP_NOWARN);

	if (!many)
		return -ENOMEM;
	memcpy(many, tx->few, tx->count * sizeof(*many));
	tx->vec = many;
	tx->vecs = WEFT_TRAIN_VECS;
	return 0;
}
