/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A stream: everything a QP does once it may talk, and the states it goes
 * through. Verbs creates and destroys it, cm gives it a connected socket, and
 * both hear from it through ops structs only.
 */
#ifndef WEFT_ENGINE_LIFE_STREAM_H
#define WEFT_ENGINE_LIFE_STREAM_H

#include <linux/types.h>

#include "engine/state/config.h"
#include "proto/fault.h"

struct weft_mpa_result;
struct weft_sock;
struct weft_stream;

int weft_stream_module_init(void);
void weft_stream_module_exit(void);

void weft_stream_index_init(struct weft_stream_index *index);
void weft_stream_index_destroy(struct weft_stream_index *index);

struct weft_stream *weft_stream_create(struct weft_stream_index *index,
				       const struct weft_stream_config *cfg);
void weft_stream_end(struct weft_stream *st);
void weft_stream_drain(struct weft_stream *st);

struct weft_stream *weft_stream_find(struct weft_stream_index *index, u32 qpn);
void *weft_stream_find_owner(struct weft_stream_index *index, u32 qpn);

u32 weft_stream_qpn(const struct weft_stream *st);
void *weft_stream_owner(const struct weft_stream *st);
bool weft_stream_serves_kernel(const struct weft_stream *st);
void weft_stream_set_access(struct weft_stream *st, u32 access);

int weft_stream_reserve(struct weft_stream *st);
void weft_stream_unreserve(struct weft_stream *st);
bool weft_stream_is_reserved(const struct weft_stream *st);

int weft_stream_start(struct weft_stream *st, struct weft_sock *sock,
		      const struct weft_mpa_result *mpa, bool initiator,
		      const struct weft_stream_cm_events *events, void *cm);
int weft_stream_refuse(struct weft_stream *st, struct weft_sock *sock,
		       const struct weft_mpa_result *mpa, enum weft_fault fault,
		       const struct weft_stream_cm_events *events, void *cm);
void weft_stream_abort_wait(struct weft_stream *st);
bool weft_stream_waits(const struct weft_stream *st);
void weft_stream_limit_ord(struct weft_stream *st, u32 ord);
void weft_stream_set_user_timeout(struct weft_stream *st, unsigned int ms);
void weft_stream_unreachable(struct weft_stream *st);
int weft_stream_reset(struct weft_stream *st);
void weft_stream_enable_tx(struct weft_stream *st);
void weft_stream_close(struct weft_stream *st);
void weft_stream_abort(struct weft_stream *st);

#endif
