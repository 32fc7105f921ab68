// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * ports/1/counters in sysfs, which monitoring programs read for each RDMA device. The core asks
 * for them as a manager asks an InfiniBand port, by a performance management MAD (IBA 16.1). No
 * MAD travels over iWARP: the core is the only one to ask, and only what it shows is answered.
 * Counters that have no meaning here are 0.
 */
#include "verbs/stats.h"

#include <linux/limits.h>
#include <linux/minmax.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>

#include "base/counters.h"
#include "verbs/counter.h"
#include "verbs/device.h"

/* Bytes in a unit of port_xmit_data and port_rcv_data. */
#define DATA_UNIT 4

static void fill_counters_ext(struct weft_device *dev, struct ib_pma_portcounters_ext *out)
{
	u64 tx = weft_counter_port_sum(dev, WEFT_CTR_TX_SEGS);
	u64 rx = weft_counter_port_sum(dev, WEFT_CTR_RX_SEGS);

	out->port_xmit_data =
		cpu_to_be64(weft_counter_port_sum(dev, WEFT_CTR_TX_BYTES) / DATA_UNIT);
	out->port_rcv_data = cpu_to_be64(weft_counter_port_sum(dev, WEFT_CTR_RX_BYTES) / DATA_UNIT);
	out->port_xmit_packets = cpu_to_be64(tx);
	out->port_rcv_packets = cpu_to_be64(rx);
	out->port_unicast_xmit_packets = cpu_to_be64(tx);
	out->port_unicast_rcv_packets = cpu_to_be64(rx);
}

/**
 * weft_process_mad - answer a question of the core about the port's counters
 * @ib: the device
 * @flags: not used
 * @port: the only one
 * @wc: not used
 * @grh: not used
 * @in: the question
 * @out: zeroed; the answer
 * @out_size: bytes of @out
 * @out_pkey_index: not used
 *
 * Context: process. Return: IB_MAD_RESULT_*; without a reply for what is not known.
 */
int weft_process_mad(struct ib_device *ib, int flags, u32 port, const struct ib_wc *wc,
		     const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
		     size_t *out_size, u16 *out_pkey_index)
{
	void *data = ((struct ib_pma_mad *)out)->data;
	struct ib_pma_portcounters *counters = data;
	struct weft_device *dev = to_weft_dev(ib);
	u64 errors;

	if (in->mad_hdr.mgmt_class != IB_MGMT_CLASS_PERF_MGMT ||
	    in->mad_hdr.method != IB_MGMT_METHOD_GET)
		return IB_MAD_RESULT_SUCCESS;
	switch (in->mad_hdr.attr_id) {
	case IB_PMA_CLASS_PORT_INFO:
		((struct ib_class_port_info *)data)->capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH;
		break;
	case IB_PMA_PORT_COUNTERS:
		errors = weft_counter_port_sum(dev, WEFT_CTR_RX_CRC_ERRORS) +
			 weft_counter_port_sum(dev, WEFT_CTR_RX_MARKER_ERRORS) +
			 weft_counter_port_sum(dev, WEFT_CTR_RX_PROTOCOL_ERRORS);
		/* These counters stay at their largest value, IBA 16.1.3.5. */
		counters->port_rcv_errors = cpu_to_be16(min_t(u64, errors, U16_MAX));
		break;
	case IB_PMA_PORT_COUNTERS_EXT:
		fill_counters_ext(dev, data);
		break;
	default:
		return IB_MAD_RESULT_SUCCESS;
	}
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
