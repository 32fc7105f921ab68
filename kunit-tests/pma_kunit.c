// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What the core is told when it asks for the port's counters.
 */
#include <linux/limits.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>

#include "base/counters.h"
#include "suite.h"
#include "verbs/counter.h"
#include "verbs/device.h"
#include "verbs/stats.h"

struct pma_world {
	struct weft_device dev;
	u64 sum[WEFT_CTR_COUNT];
};

/* Played: the counters of the device and of its QPs. */
u64 weft_counter_port_sum(struct weft_device *dev, enum weft_counter which)
{
	return container_of(dev, struct pma_world, dev)->sum[which];
}

struct error_row {
	const char *name;
	u64 crc;
	u64 marker;
	u64 protocol;
	u16 told;
};

static const struct error_row error_rows[] = {
	{ "none", 0, 0, 0, 0 },
	{ "each_kind", 0x100, 0x20, 0x3, 0x123 },
	{ "most", 0xff00, 0xf0, 0xf, U16_MAX },
	{ "one_more", 0xff00, 0xf0, 0x10, U16_MAX },
	{ "many_more", 1ULL << 32, 0, 5, U16_MAX },
};

WEFT_ROWS(error_rows)

/* They stay at the largest value that there is room for. */
static void weft_pma_tells_errors(struct kunit *test)
{
	const struct error_row *row = test->param_value;
	struct pma_world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	struct ib_pma_mad *out = kunit_kzalloc(test, sizeof(*out), GFP_KERNEL);
	struct ib_mad *in = kunit_kzalloc(test, sizeof(*in), GFP_KERNEL);
	const struct ib_pma_portcounters *counters;
	size_t size = sizeof(*out);
	u16 pkey = 0;
	int ret;

	KUNIT_ASSERT_TRUE(test, w && out && in);
	w->sum[WEFT_CTR_RX_CRC_ERRORS] = row->crc;
	w->sum[WEFT_CTR_RX_MARKER_ERRORS] = row->marker;
	w->sum[WEFT_CTR_RX_PROTOCOL_ERRORS] = row->protocol;
	in->mad_hdr.mgmt_class = IB_MGMT_CLASS_PERF_MGMT;
	in->mad_hdr.method = IB_MGMT_METHOD_GET;
	in->mad_hdr.attr_id = IB_PMA_PORT_COUNTERS;
	ret = weft_process_mad(&w->dev.ib, 0, 1, NULL, NULL, in, (struct ib_mad *)out, &size,
			       &pkey);
	KUNIT_EXPECT_EQ(test, ret, IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY);
	counters = (const void *)out->data;
	KUNIT_EXPECT_EQ(test, be16_to_cpu(counters->port_rcv_errors), row->told);
}

static struct kunit_case pma_cases[] = {
	KUNIT_CASE_PARAM(weft_pma_tells_errors, error_rows_gen_params),
	{},
};

static struct kunit_suite pma_suite = {
	.name = "weft_pma",
	.test_cases = pma_cases,
};

kunit_test_suite(pma_suite);
