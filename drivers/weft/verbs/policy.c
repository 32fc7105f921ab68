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

static struct weft_device *device_of(struct device *d)
{
	return to_weft_dev(rdma_device_to_ibdev(d));
}

/* CRC32c on what we offer and ask for; RFC 5044 wants it on by default. */
static ssize_t crc_show(struct device *d, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(device_of(d)->cm.policy.crc));
}

static ssize_t crc_store(struct device *d, struct device_attribute *attr, const char *buf,
			 size_t len)
{
	unsigned int value;
	int ret;

	ret = kstrtouint(buf, 0, &value);
	if (ret)
		return ret;
	if (value > 1)
		return -EINVAL;
	WRITE_ONCE(device_of(d)->cm.policy.crc, value);
	return len;
}
static DEVICE_ATTR_RW(crc);

static struct attribute *policy_attrs[] = {
	&dev_attr_crc.attr,
	NULL,
};

const struct attribute_group weft_policy_group = {
	.name = "weft",
	.attrs = policy_attrs,
};
