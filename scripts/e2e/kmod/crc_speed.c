// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * How fast the kernel's own CRC32c routine is, on one CPU, over a buffer that
 * stays in the cache. Loading it measures; the figure is the parameter mib_per_s.
 */
#include <linux/crc32c.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>

#define BYTES	65536
#define BATCH	64
#define NSECS	(500 * NSEC_PER_MSEC)

static unsigned int mib_per_s;
module_param(mib_per_s, uint, 0444);
MODULE_PARM_DESC(mib_per_s, "what was measured");

/* Its result is stored, so that no compiler leaves the work out. */
static u32 crc;

static u64 bytes_in(u64 nsecs)
{
	u64 began = ktime_get_ns(), bytes = 0;
	u8 *buffer = kmalloc(BYTES, GFP_KERNEL);

	if (!buffer)
		return 0;
	memset(buffer, 0x5a, BYTES);
	do {
		for (int i = 0; i < BATCH; i++)
			WRITE_ONCE(crc, crc32c(READ_ONCE(crc), buffer, BYTES));
		bytes += BATCH * BYTES;
		cond_resched();
	} while (ktime_get_ns() - began < nsecs);
	kfree(buffer);
	return div64_u64(bytes * 1000, div_u64(ktime_get_ns() - began, NSEC_PER_MSEC));
}

static int __init crc_speed_init(void)
{
	mib_per_s = bytes_in(NSECS) >> 20;
	return mib_per_s ? 0 : -ENOMEM;
}

static void __exit crc_speed_exit(void)
{
}

module_init(crc_speed_init);
module_exit(crc_speed_exit);
MODULE_DESCRIPTION("Speed of the kernel's CRC32c routine");
MODULE_LICENSE("Dual BSD/GPL");
