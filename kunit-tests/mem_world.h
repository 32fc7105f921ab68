/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A QP that accesses four pages of memory through a table of STags.
 */
#ifndef WEFT_KUNIT_MEM_WORLD_H
#define WEFT_KUNIT_MEM_WORLD_H

#include <kunit/test.h>
#include <linux/mm.h>
#include <rdma/ib_verbs.h>

#include "mem/access.h"
#include "mem/backing.h"
#include "mem/stag.h"

#define PD	5U
#define QPN	9U
#define PAGES	4U
#define FIRST	24U			/* offset in the first page */
#define LENGTH	(3 * PAGE_SIZE - 100)
#define IOVA	(0x7000000000ULL + FIRST)
#define MW	IB_ACCESS_MW_BIND
#define LW	IB_ACCESS_LOCAL_WRITE
#define RW	IB_ACCESS_REMOTE_WRITE
#define RR	IB_ACCESS_REMOTE_READ
#define RA	IB_ACCESS_REMOTE_ATOMIC
#define RIGHTS	(LW | RW | RR | RA | MW)

/* A table, a QP, and pages in no order, so that a wrong page is seen. */
struct world {
	struct weft_stag_table table;
	struct weft_mem_user user;
	u8 *page[PAGES];
};

/* leave() expects that every STag is freed by then. */
struct world *make_world(struct kunit *test);
void leave(struct kunit *test, struct world *w);

/* All pages, from byte FIRST on. */
struct weft_backing *make_backing(struct kunit *test, struct world *w);

/* Names nothing yet; a region, LENGTH bytes of them at IOVA. */
struct weft_mem_region *make_stag(struct kunit *test, struct world *w, enum weft_stag_kind kind);
struct weft_mem_region *make_region(struct kunit *test, struct world *w, u32 access);

/* A valid one that may be invalidated; one page. */
struct weft_mem_region *make_valid(struct kunit *test, struct world *w);

/* Release, revoke and free, whatever its kind. */
void drop(struct kunit *test, struct world *w, struct weft_mem_region *mr);

/* A peer reads at the beginning of @stag, until weft_mem_release(@reader). */
void begin_read(struct kunit *test, struct weft_mem_user *reader, u32 stag);

/* An access that ends at once; @offset may be NULL. */
enum weft_fault touch(struct world *w, u32 stag, u64 to, u32 len, enum weft_mem_right right,
		      u64 *offset);

#endif
