/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Handing a train to TCP, by whichever call this kernel's TCP honours.
 */
#ifndef WEFT_NET_PUSH_H
#define WEFT_NET_PUSH_H

#include <linux/types.h>

struct sock;
struct weft_txsock;

int weft_push_train(struct weft_txsock *tx, struct sock *sk, bool more);

#endif
