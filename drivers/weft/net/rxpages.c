// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A table of pages, both had when they are needed: most connections never see an
 * FPDU that spans socket buffers.
 */
#include "net/rxpages.h"

#include <linux/gfp.h>
#include <linux/minmax.h>
#include <linux/slab.h>

/**
 * weft_rxpages_at - a page to write to
 * @pages: the table, NULL if there is none yet
 * @index: of the page, below WEFT_RX_PAGES
 *
 * Context: any. Return: the page, which stays the table's; NULL without memory.
 */
struct page *weft_rxpages_at(struct weft_rxpages **pages, u32 index)
{
	struct page **page;

	if (!*pages)
		*pages = kzalloc(sizeof(**pages), GFP_ATOMIC | __GFP_NOWARN);
	if (!*pages)
		return NULL;
	page = &(*pages)->page[index];
	if (!*page)
		*page = alloc_page(GFP_ATOMIC | __GFP_NOWARN);
	return *page;
}

/**
 * weft_rxpages_fill - pages for the longest ULPDU, as many as are to be had
 * @pages: NULL before; may be NULL afterwards
 * @gfp: how to allocate
 *
 * Context: as @gfp allows.
 */
void weft_rxpages_fill(struct weft_rxpages **pages, gfp_t gfp)
{
	u32 i;

	*pages = kzalloc(sizeof(**pages), gfp | __GFP_NOWARN);
	for (i = 0; *pages && i < WEFT_RX_PAGES; i++) {
		(*pages)->page[i] = alloc_page(gfp | __GFP_NOWARN);
		if (!(*pages)->page[i])
			break;
	}
}

/**
 * weft_rxpages_move - fill the holes of one table from another
 * @to: has pages afterwards where @from had some
 * @from: keeps what is not needed
 *
 * Context: any.
 */
void weft_rxpages_move(struct weft_rxpages **to, struct weft_rxpages **from)
{
	u32 i;

	if (!*to)
		swap(*to, *from);
	for (i = 0; *from && i < WEFT_RX_PAGES; i++)
		if (!(*to)->page[i])
			swap((*to)->page[i], (*from)->page[i]);
}

/**
 * weft_rxpages_drop - free the pages, but not the table
 * @pages: NULL is fine
 *
 * Context: any.
 */
void weft_rxpages_drop(struct weft_rxpages *pages)
{
	u32 i;

	for (i = 0; pages && i < WEFT_RX_PAGES; i++) {
		if (!pages->page[i])
			continue;
		__free_page(pages->page[i]);
		pages->page[i] = NULL;
	}
}
