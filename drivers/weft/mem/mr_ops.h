/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What work requests and Send with Invalidate do to STags: register, bind,
 * invalidate. RFC 5040, 5.3 and 7; RFC 5041, 7.
 */
#ifndef WEFT_MEM_MR_OPS_H
#define WEFT_MEM_MR_OPS_H

#include <linux/types.h>

#include "proto/fault.h"

struct weft_mem_region;
struct weft_mem_user;

/**
 * struct weft_mem_binding - operands of a bind work request
 * @addr: where the part of the region to open begins
 * @length: its bytes; 0 closes a type 1 window
 * @lkey: the region
 * @access: enum ib_access_flags
 * @window: current STag of the window
 * @stag: the STag it is to have, differing in the key byte only
 */
struct weft_mem_binding {
	u64 addr;
	u64 length;
	u32 lkey;
	u32 access;
	u32 window;
	u32 stag;
};

enum weft_fault weft_mem_register(struct weft_mem_user *user, struct weft_mem_region *mr, u32 stag,
				  u32 access);
enum weft_fault weft_mem_bind(struct weft_mem_user *user, const struct weft_mem_binding *req);
void weft_mem_set_access(struct weft_mem_user *user, u32 access);
void weft_mem_invalidate_windows(const struct weft_mem_user *user);
enum weft_fault weft_mem_invalidate(struct weft_mem_user *user, u32 stag, bool remote,
				    struct weft_mem_region **busy);
struct weft_mem_region *weft_mem_busy_get(struct weft_mem_region *busy);
bool weft_mem_quiet(const struct weft_mem_region *busy);
void weft_mem_quiesce(struct weft_mem_region *busy);

#endif
