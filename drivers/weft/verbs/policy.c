// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What an administrator may choose per device while it runs, as files under
 * /sys/class/infiniband/NAME/weft/. A choice counts for connections made later.
 */
#include "verbs/policy.h"

#include <linux/device.h>
#include <linux/kstrtox.h>
#include <linux/sysfs.h>

#include "verbs/device.h"

/**
 * struct knob - a file for a number of struct weft_mpa_policy
 * @attr: the file
 * @offset: of the field, an octet wide
 * @least: of what it may be
 * @most: of what it may be
 */
struct knob {
	struct device_attribute attr;
	size_t offset;
	u8 least;
	u8 most;
};

static u8 *field_of(struct device *d, const struct knob *knob)
{
	struct weft_device *dev = to_weft_dev(rdma_device_to_ibdev(d));

	return (u8 *)&dev->cm.policy + knob->offset;
}

static ssize_t show(struct device *d, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n",
			  READ_ONCE(*field_of(d, container_of(attr, struct knob, attr))));
}

static ssize_t store(struct device *d, struct device_attribute *attr, const char *buf, size_t len)
{
	const struct knob *knob = container_of(attr, struct knob, attr);
	u8 value;
	int ret;

	ret = kstrtou8(buf, 0, &value);
	if (ret)
		return ret;
	if (value < knob->least || value > knob->most)
		return -EINVAL;
	WRITE_ONCE(*field_of(d, knob), value);
	return len;
}

enum { CRC, MARKERS, P2P, RTR, REVISION };

/* clang-format off */
static struct knob knobs[] = {
	/* RFC 5044 wants it on by default. */
	[CRC] = { __ATTR(crc, 0644, show, store),
		  offsetof(struct weft_mpa_policy, crc), 0, 1 },
	/* In what the peer sends. */
	[MARKERS] = { __ATTR(markers, 0644, show, store),
		      offsetof(struct weft_mpa_policy, markers), 0, 1 },
	[P2P] = { __ATTR(p2p, 0644, show, store),
		  offsetof(struct weft_mpa_policy, p2p), 0, 1 },
	[RTR] = { __ATTR(rtr, 0644, show, store),
		  offsetof(struct weft_mpa_policy, rtr), 1, 7 },
	[REVISION] = { __ATTR(revision, 0644, show, store),
		       offsetof(struct weft_mpa_policy, revision), 1, 2 },
};

/* clang-format on */

static_assert(sizeof_field(struct weft_mpa_policy, crc) == 1);

/* clang-format off */
static struct attribute *policy_attrs[] = {
	&knobs[CRC].attr.attr,
	&knobs[MARKERS].attr.attr,
	&knobs[P2P].attr.attr,
	&knobs[RTR].attr.attr,
	&knobs[REVISION].attr.attr,
	NULL,
};

/* clang-format on */

const struct attribute_group weft_policy_group = {
	.name = "weft",
	.attrs = policy_attrs,
};
