/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Registered memory in a child. The registration stays with the memory of the parent: where
 * that is mapped private, the child has a copy, which the device does not see.
 */
#ifndef WEFT_INHERIT_H
#define WEFT_INHERIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct weft_mr;
struct weft_regions;

/* Regions that a parent has registered and this process has not taken over; 0 in a parent. */
extern uint32_t weft_inherited_mrs __attribute__((visibility("hidden")));

/* A region is registered, or about to go. Entering returns 0 or ENOMEM. */
int weft_mr_enter(struct weft_mr *mr);
void weft_mr_leave(struct weft_mr *mr);

/* What this process sees at its address is registered now. */
void weft_mr_renew(struct weft_mr *mr);

/* In a new child, under the lock of the regions. */
void weft_mrs_are_inherited(void);

/* The long way of weft_sges_are_seen(). */
bool weft_sges_look(const struct weft_regions *regions, const struct ibv_sge *sges, size_t count);

/* Does the device access what this process sees at the elements' addresses? */
static inline bool weft_sges_are_seen(const struct weft_regions *regions,
				      const struct ibv_sge *sges, size_t count)
{
	return __builtin_expect(!weft_inherited_mrs, 1) || weft_sges_look(regions, sges, count);
}

#endif
