/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Handing pages to TCP, by whichever call this kernel's TCP honours.
 */
#ifndef WEFT_NET_PUSH_H
#define WEFT_NET_PUSH_H

#include <linux/types.h>

struct bio_vec;
struct sock;

int weft_push_pages(struct sock *sk, const struct bio_vec *vec, u32 count, u32 bytes, bool more);

#endif
