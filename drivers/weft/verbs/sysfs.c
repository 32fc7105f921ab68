// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What an operator may choose per device while it runs, as files under
 * /sys/class/infiniband/NAME/params/. A choice counts for connections made later.
 * A number is a row of one table; Documentation/operating.md says what each does.
 */
#include "verbs/sysfs.h"

#include <linux/device.h>
#include <linux/kstrtox.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "base/limits.h"
#include "verbs/device.h"

#define TEN_MINUTES	600000U
#define PRIVATE_DATA	512U

/**
 * struct param - a file for a number of struct weft_device
 * @attr: the file
 * @offset: of the field
 * @size: of the field: 1 or 4 bytes
 * @zero_ok: 0 is allowed besides, and switches it off
 * @min: of what it may be
 * @max: of what it may be
 */
struct param {
	struct device_attribute attr;
	u32 offset;
	u8 size;
	bool zero_ok;
	u32 min;
	u32 max;
};

static ssize_t param_show(struct device *d, struct device_attribute *attr, char *buf)
{
	const struct param *param = container_of(attr, struct param, attr);
	const void *field = (u8 *)to_weft_dev(rdma_device_to_ibdev(d)) + param->offset;

	return sysfs_emit(buf, "%u\n",
			  param->size == 1 ? READ_ONCE(*(u8 *)field) : READ_ONCE(*(u32 *)field));
}

static ssize_t param_store(struct device *d, struct device_attribute *attr, const char *buf,
			   size_t len)
{
	const struct param *param = container_of(attr, struct param, attr);
	void *field = (u8 *)to_weft_dev(rdma_device_to_ibdev(d)) + param->offset;
	u32 value;

	if (kstrtou32(buf, 0, &value))
		return -EINVAL;
	if ((value < param->min || value > param->max) && (value || !param->zero_ok))
		return -EINVAL;
	if (param->size == 1)
		WRITE_ONCE(*(u8 *)field, value);
	else
		WRITE_ONCE(*(u32 *)field, value);
	return len;
}

#define FIELD(_name, _field, _zero_ok, _min, _max)                 \
	{                                                         \
		.attr = __ATTR(_name, 0644, param_show, param_store),         \
		.offset = offsetof(struct weft_device, _field),   \
		.size = sizeof_field(struct weft_device, _field), .zero_ok = (_zero_ok), \
		.min = (_min), .max = (_max),                              \
	}

#define PARAM(_name, _field, _min, _max)	FIELD(_name, _field, false, _min, _max)
#define PARAM_OR_0(_name, _field, _min, _max)	FIELD(_name, _field, true, _min, _max)

/* clang-format off */
static struct param params[] = {
	/* start-up frames; RFC 5044 wants CRC on by default */
	PARAM(mpa_crc, cm.policy.crc, WEFT_MPA_CRC_OFF, WEFT_MPA_CRC_REQUIRE),
	PARAM(mpa_rx_markers, cm.policy.markers, 0, 1),
	PARAM(mpa_p2p, cm.policy.p2p, 0, 1),
	PARAM(mpa_rtr_types, cm.policy.rtr, 1, 7),
	PARAM(mpa_revision, cm.policy.revision, 1, 2),
	PARAM(responder_early_send, cm.policy.early_send, 0, 1),
	PARAM(ird_max, cm.policy.ird_max, 0, WEFT_MAX_IRD),
	PARAM(ord_max, cm.ord_max, 0, WEFT_MAX_ORD),
	PARAM(atomics, streams.atomics, 0, 1),
	PARAM(private_data_max, cm.private_data_max, 0, PRIVATE_DATA),

	/* QPs connected by ibv_modify_qp() */
	PARAM_OR_0(direct_port, cm.directs.port, 1, U16_MAX),

	/* deadlines */
	PARAM(tcp_connect_timeout_ms, cm.deadlines.connect, 10, TEN_MINUTES),
	PARAM(mpa_request_timeout_ms, cm.deadlines.request, 10, TEN_MINUTES),
	PARAM(accept_timeout_ms, cm.deadlines.decision, 10, TEN_MINUTES),
	PARAM(mpa_reply_timeout_ms, cm.deadlines.reply, 10, TEN_MINUTES),
	PARAM(mpa_rtr_timeout_ms, cm.deadlines.rtr, 10, TEN_MINUTES),
	PARAM(close_timeout_ms, streams.close_timeout, 10, TEN_MINUTES),
	PARAM(rnr_timeout_ms, streams.rnr_timeout, 0, TEN_MINUTES),

	/* two ends on one host */
	PARAM(loopback, streams.loopback, 0, 2),

	/* work */
	PARAM_OR_0(sq_poll_interval_us, streams.sq_poll_interval, 10, 10000),

	/* TCP */
	PARAM_OR_0(tcp_keepalive_idle_s, cm.opts.keepalive_idle, 1, 32767),
	PARAM_OR_0(tcp_keepalive_interval_s, cm.opts.keepalive_interval, 1, 32767),
	PARAM_OR_0(tcp_keepalive_probes, cm.opts.keepalive_probes, 1, 127),
	PARAM_OR_0(tcp_user_timeout_ms, cm.opts.user_timeout, 10, 6 * TEN_MINUTES),
	PARAM_OR_0(tcp_sndbuf, cm.opts.sndbuf, 8192, 1U << 28),
	PARAM_OR_0(tcp_rcvbuf, cm.opts.rcvbuf, 8192, 1U << 28),
	PARAM(ip_tos, cm.opts.tos, 0, 255),
};

/* clang-format on */

static ssize_t congestion_show(struct device *d, struct device_attribute *attr, char *buf)
{
	struct weft_device *dev = to_weft_dev(rdma_device_to_ibdev(d));
	char name[TCP_CA_NAME_MAX];

	weft_cm_get_congestion(&dev->cm, name);
	return sysfs_emit(buf, "%s\n", *name ? name : "default");
}

static ssize_t congestion_store(struct device *d, struct device_attribute *attr, const char *buf,
				size_t len)
{
	struct weft_device *dev = to_weft_dev(rdma_device_to_ibdev(d));
	char copy[TCP_CA_NAME_MAX + 1];
	char *name;
	int ret;

	if (strscpy(copy, buf, sizeof(copy)) < 0)
		return -EINVAL;
	name = strim(copy);
	if (!*name || strlen(name) >= TCP_CA_NAME_MAX)
		return -EINVAL;
	ret = weft_cm_set_congestion(&dev->cm, strcmp(name, "default") ? name : "");
	return ret ?: len;
}

static struct device_attribute congestion_attr =
	__ATTR(tcp_congestion_control, 0644, congestion_show, congestion_store);

static struct attribute *sysfs_attrs[ARRAY_SIZE(params) + 2];

const struct attribute_group weft_sysfs_group = {
	.name = "params",
	.attrs = sysfs_attrs,
};

/* Once, before any device. */
void weft_sysfs_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(params); i++)
		sysfs_attrs[i] = &params[i].attr.attr;
	sysfs_attrs[i] = &congestion_attr.attr;
}

/* --- what kind of device it is --- */

static ssize_t kind_show(struct device *d, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "weft\n");
}

static struct device_attribute hca_type_attr = __ATTR(hca_type, 0444, kind_show, NULL);
static struct device_attribute board_id_attr = __ATTR(board_id, 0444, kind_show, NULL);

static struct attribute *kind_attrs[] = {
	&hca_type_attr.attr,
	&board_id_attr.attr,
	NULL,
};

static const struct attribute_group kind_group = {
	.attrs = kind_attrs,
};

/**
 * weft_sysfs_enable - enable_driver
 * @ib: the device
 *
 * Files that drivers of adapters have. Monitoring programs expect them: the node_exporter of
 * Debian 12 shows no device of a host if one of them is without. The core has room for one group,
 * which is the directory of parameters.
 *
 * Context: process, before user space is told of the device; once more when it has moved to
 * another network namespace. Return: 0 or -errno.
 */
int weft_sysfs_enable(struct ib_device *ib)
{
	return sysfs_update_group(&ib->dev.kobj, &kind_group);
}
