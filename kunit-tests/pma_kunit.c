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

static const struct ib_mad_hdr get = {
	.mgmt_class = IB_MGMT_CLASS_PERF_MGMT,
	.method = IB_MGMT_METHOD_GET,
};

/* IB_MAD_RESULT_*; @data is that of the answer. */
static int ask(struct kunit *test, struct pma_world *w, struct ib_mad_hdr hdr, const void **data)
{
	struct ib_pma_mad *out = kunit_kzalloc(test, sizeof(*out), GFP_KERNEL);
	struct ib_mad *in = kunit_kzalloc(test, sizeof(*in), GFP_KERNEL);
	size_t size = sizeof(*out);
	u16 pkey = 0;

	KUNIT_ASSERT_TRUE(test, in && out);
	in->mad_hdr = hdr;
	*data = out->data;
	return weft_process_mad(&w->dev.ib, 0, 1, NULL, NULL, in, (struct ib_mad *)out, &size,
				&pkey);
}

static const void *answer(struct kunit *test, struct pma_world *w, __be16 attr_id)
{
	struct ib_mad_hdr hdr = get;
	const void *data;

	hdr.attr_id = attr_id;
	KUNIT_EXPECT_EQ(test, ask(test, w, hdr, &data),
			IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY);
	return data;
}

static struct pma_world *make_world(struct kunit *test)
{
	struct pma_world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	return w;
}

/* They stay at the largest value that there is room for. */
static void weft_pma_tells_errors(struct kunit *test)
{
	const struct error_row *row = test->param_value;
	const struct ib_pma_portcounters *counters;
	struct pma_world *w = make_world(test);

	w->sum[WEFT_CTR_RX_CRC_ERRORS] = row->crc;
	w->sum[WEFT_CTR_RX_MARKER_ERRORS] = row->marker;
	w->sum[WEFT_CTR_RX_PROTOCOL_ERRORS] = row->protocol;
	counters = answer(test, w, IB_PMA_PORT_COUNTERS);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(counters->port_rcv_errors), row->told);
}

/* Of either direction its own, in words of four bytes and in segments. */
static void weft_pma_tells_each_direction(struct kunit *test)
{
	const struct ib_pma_portcounters_ext *counters;
	struct pma_world *w = make_world(test);

	w->sum[WEFT_CTR_TX_BYTES] = (4ULL << 40) + 3;
	w->sum[WEFT_CTR_RX_BYTES] = 4 * 500;
	w->sum[WEFT_CTR_TX_SEGS] = 60;
	w->sum[WEFT_CTR_RX_SEGS] = 1ULL << 33;
	counters = answer(test, w, IB_PMA_PORT_COUNTERS_EXT);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(counters->port_xmit_data), 1ULL << 40);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(counters->port_rcv_data), 500ULL);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(counters->port_xmit_packets), 60ULL);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(counters->port_rcv_packets), 1ULL << 33);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(counters->port_unicast_xmit_packets), 60ULL);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(counters->port_unicast_rcv_packets), 1ULL << 33);
}

/* The core looks for these counters only where that is said. */
static void weft_pma_has_wide_counters(struct kunit *test)
{
	const struct ib_class_port_info *info =
		answer(test, make_world(test), IB_PMA_CLASS_PORT_INFO);

	KUNIT_EXPECT_TRUE(test, info->capability_mask == IB_PMA_CLASS_CAP_EXT_WIDTH);
}

/* Other questions have no answer. */
static void weft_pma_answers_nothing_else(struct kunit *test)
{
	struct ib_mad_hdr set = get, smp = get, samples = get;
	struct pma_world *w = make_world(test);
	const void *data;

	set.method = IB_MGMT_METHOD_SET;
	set.attr_id = IB_PMA_PORT_COUNTERS;
	smp.mgmt_class = IB_MGMT_CLASS_SUBN_LID_ROUTED;
	smp.attr_id = IB_PMA_PORT_COUNTERS;
	samples.attr_id = IB_PMA_PORT_SAMPLES_CONTROL;
	KUNIT_EXPECT_EQ(test, ask(test, w, set, &data), (int)IB_MAD_RESULT_SUCCESS);
	KUNIT_EXPECT_EQ(test, ask(test, w, smp, &data), (int)IB_MAD_RESULT_SUCCESS);
	KUNIT_EXPECT_EQ(test, ask(test, w, samples, &data), (int)IB_MAD_RESULT_SUCCESS);
}

static struct kunit_case pma_cases[] = {
	KUNIT_CASE_PARAM(weft_pma_tells_errors, error_rows_gen_params),
	KUNIT_CASE(weft_pma_tells_each_direction),
	KUNIT_CASE(weft_pma_has_wide_counters),
	KUNIT_CASE(weft_pma_answers_nothing_else),
	{},
};

static struct kunit_suite pma_suite = {
	.name = "weft_pma",
	.test_cases = pma_cases,
};

kunit_test_suite(pma_suite);
