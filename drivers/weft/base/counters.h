/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Event counters of a device: one enum, one name table, per-cpu adds.
 */
#ifndef WEFT_BASE_COUNTERS_H
#define WEFT_BASE_COUNTERS_H

#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/types.h>

enum weft_counter {
	WEFT_CTR_TX_MSGS,	/* RDMAP messages completely handed to TCP */
	WEFT_CTR_TX_SEGS,	/* DDP segments staged */
	WEFT_CTR_TX_BYTES,	/* payload octets staged */
	WEFT_CTR_TX_PUSHES,	/* calls into TCP */
	WEFT_CTR_TX_FULL,	/* pushes that met a full socket */
	WEFT_CTR_RX_MSGS,	/* RDMAP messages delivered */
	WEFT_CTR_RX_SEGS,	/* FPDUs accepted */
	WEFT_CTR_RX_BYTES,	/* payload octets placed */
	WEFT_CTR_RX_GATHERED,	/* FPDUs that spanned socket buffers */
	WEFT_CTR_RX_CRC_ERRORS,
	WEFT_CTR_RX_MARKER_ERRORS,
	WEFT_CTR_RX_FAULTS,	/* segments refused by DDP or RDMAP */
	WEFT_CTR_TERM_SENT,
	WEFT_CTR_TERM_RECEIVED,
	WEFT_CTR_KICKS_INLINE,	/* doorbell calls that ran tx themselves */
	WEFT_CTR_KICKS_QUEUED,	/* kicks handed to a worker */
	WEFT_CTR_KICKS_MERGED,	/* kicks that found tx at work */
	WEFT_CTR_CQ_EVENTS,
	WEFT_CTR_CQ_OVERFLOWS,
	WEFT_CTR_CONN_ACTIVE,	/* connections established by connect */
	WEFT_CTR_CONN_PASSIVE,	/* connections established by accept */
	WEFT_CTR_CONN_REFUSED,	/* start-up frames refused or timed out */
	WEFT_CTR_COUNT
};

/* One set for softirqs, one for what they interrupt: then a plain add will do. */
struct weft_counter_block {
	u64 v[2][WEFT_CTR_COUNT];
};

/* Owned by the device; outlives every object that adds to it. */
struct weft_counters {
	struct weft_counter_block __percpu *cpu;
};

int weft_counters_init(struct weft_counters *c);
void weft_counters_free(struct weft_counters *c);
u64 weft_counters_read(const struct weft_counters *c, enum weft_counter which);
const char *weft_counter_name(enum weft_counter which);

/*
 * Any context but hard interrupts. Not this_cpu_add(): many architectures switch
 * interrupts off for it, and a message is counted half a dozen times.
 */
static inline void weft_count_add(struct weft_counters *c, enum weft_counter which, u64 n)
{
	preempt_disable();
	raw_cpu_add(c->cpu->v[!!in_serving_softirq()][which], n);
	preempt_enable();
}

static inline void weft_count(struct weft_counters *c, enum weft_counter which)
{
	weft_count_add(c, which, 1);
}

#endif
