/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Memory in which a ULPDU that came in pieces is gathered.
 */
#ifndef WEFT_NET_RXPAGES_H
#define WEFT_NET_RXPAGES_H

#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/types.h>

#define WEFT_RX_PAGES	DIV_ROUND_UP(65535U, PAGE_SIZE)	/* the longest ULPDU */

/* Pages of one ULPDU, those in front first; NULL where there is none yet. */
struct weft_rxpages {
	struct page *page[WEFT_RX_PAGES];
};

struct page *weft_rxpages_at(struct weft_rxpages **pages, u32 index);
void weft_rxpages_fill(struct weft_rxpages **pages, gfp_t gfp);
void weft_rxpages_move(struct weft_rxpages **to, struct weft_rxpages **from);
void weft_rxpages_drop(struct weft_rxpages *pages);

#endif
