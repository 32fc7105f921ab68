/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A Terminate from an initiator whose stream could not be started.
 */
#ifndef WEFT_CM_MPA_TERMINATE_H
#define WEFT_CM_MPA_TERMINATE_H

#include "proto/fault.h"

struct weft_mpa_result;
struct weft_sock;

void weft_mpa_terminate_send(struct weft_sock *s, const struct weft_mpa_result *mpa,
			     enum weft_fault fault);

#endif
