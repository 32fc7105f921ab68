// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What an operator may choose per device while it runs, as files under
 * /sys/class/infiniband/NAME/weft/. A choice counts for connections made later.
 * A number is a row of one table; Documentation/operating.md says what each does.
 */
#include "verbs/policy.h"

#include <linux/device.h>
#include <linux/kstrtox.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "base/limits.h"
#include "verbs/device.h"

#define TEN_MINUTES	600000U
#define PRIVATE_DATA	512U

/**
 * struct knob - a file for a number of struct weft_device
 * @attr: the file
 * @offset: of the field
 * @size: of the field: 1 or 4 octets
 * @off: 0 is allowed besides, and switches it off
 * @least: of what it may be
 * @most: of what it may be
 */
struct knob {
	struct device_attribute attr;
	u32 offset;
	u8 size;
	bool off;
	u32 least;
	u32 most;
};

static void *field_of(struct device *d, const struct knob *knob)
{
	struct weft_device *dev = to_weft_dev(rdma_device_to_ibdev(d));

	return (u8 *)dev + knob->offset;
}

static ssize_t show(struct device *d, struct device_attribute *attr, char *buf)
{
	const struct knob *knob = container_of(attr, struct knob, attr);
	const void *field = field_of(d, knob);

	return sysfs_emit(buf, "%u\n",
			  knob->size == 1 ? READ_ONCE(*(u8 *)field) : READ_ONCE(*(u32 *)field));
}

static bool allowed(const struct knob *knob, u32 value)
{
	if (knob->off && !value)
		return true;
	return value >= knob->least && value <= knob->most;
}

static ssize_t store(struct device *d, struct device_attribute *attr, const char *buf, size_t len)
{
	const struct knob *knob = container_of(attr, struct knob, attr);
	void *field = field_of(d, knob);
	u32 value;

	if (kstrtou32(buf, 0, &value) || !allowed(knob, value))
		return -EINVAL;
	if (knob->size == 1)
		WRITE_ONCE(*(u8 *)field, value);
	else
		WRITE_ONCE(*(u32 *)field, value);
	return len;
}

#define FIELD(_name, _field, _off, _least, _most)                 \
	{                                                         \
		.attr = __ATTR(_name, 0644, show, store),         \
		.offset = offsetof(struct weft_device, _field),   \
		.size = sizeof_field(struct weft_device, _field), .off = (_off), \
		.least = (_least), .most = (_most),                              \
	}

#define KNOB(_name, _field, _least, _most)	FIELD(_name, _field, false, _least, _most)
#define KNOB_OR_0(_name, _field, _least, _most)	FIELD(_name, _field, true, _least, _most)

/* clang-format off */
static struct knob knobs[] = {
	/* start-up frames; RFC 5044 wants CRC on by default */
	KNOB(crc, cm.policy.crc, WEFT_MPA_CRC_OFF, WEFT_MPA_CRC_REQUIRE),
	KNOB(markers, cm.policy.markers, 0, 1),
	KNOB(p2p, cm.policy.p2p, 0, 1),
	KNOB(rtr, cm.policy.rtr, 1, 7),
	KNOB(revision, cm.policy.revision, 1, 2),
	KNOB(eager, cm.policy.eager, 0, 1),
	KNOB(ird_max, cm.policy.ird_max, 0, WEFT_MAX_IRD),
	KNOB(ord_max, cm.ord_max, 0, WEFT_MAX_ORD),
	KNOB(atomics, streams.atomics, 0, 1),
	KNOB(private_data_max, cm.private_data_max, 0, PRIVATE_DATA),

	/* QPs connected by ibv_modify_qp() */
	KNOB_OR_0(direct_port, cm.directs.port, 1, U16_MAX),

	/* deadlines */
	KNOB(connect_ms, cm.deadlines.connect, 10, TEN_MINUTES),
	KNOB(request_ms, cm.deadlines.request, 10, TEN_MINUTES),
	KNOB(decision_ms, cm.deadlines.decision, 10, TEN_MINUTES),
	KNOB(reply_ms, cm.deadlines.reply, 10, TEN_MINUTES),
	KNOB(rtr_ms, cm.deadlines.rtr, 10, TEN_MINUTES),
	KNOB(goodbye_ms, streams.goodbye, 10, TEN_MINUTES),
	KNOB(rnr_timeout_ms, streams.rnr_timeout, 0, TEN_MINUTES),

	/* two ends on one host */
	KNOB(loopback, streams.loopback, 0, 2),

	/* work */
	KNOB_OR_0(watch_us, streams.watch, 10, 10000),

	/* TCP */
	KNOB_OR_0(keepalive_idle_s, cm.opts.keepalive_idle, 1, 32767),
	KNOB_OR_0(keepalive_interval_s, cm.opts.keepalive_interval, 1, 32767),
	KNOB_OR_0(keepalive_probes, cm.opts.keepalive_probes, 1, 127),
	KNOB_OR_0(user_timeout_ms, cm.opts.user_timeout, 10, 6 * TEN_MINUTES),
	KNOB_OR_0(sndbuf, cm.opts.sndbuf, 8192, 1U << 28),
	KNOB_OR_0(rcvbuf, cm.opts.rcvbuf, 8192, 1U << 28),
	KNOB(tos, cm.opts.tos, 0, 255),
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

static DEVICE_ATTR_RW(congestion);

static struct attribute *policy_attrs[ARRAY_SIZE(knobs) + 2];

const struct attribute_group weft_policy_group = {
	.name = "weft",
	.attrs = policy_attrs,
};

/* Once, before any device. */
void weft_policy_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(knobs); i++)
		policy_attrs[i] = &knobs[i].attr.attr;
	policy_attrs[i] = &dev_attr_congestion.attr;
}
