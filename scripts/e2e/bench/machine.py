# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What the machine can do at all."""

import os

from programs import run


def crc_speed(_world, _job):
    """MiB/s of the kernel's CRC32c routine: a module measures while it is loaded."""
    run("modprobe", "-q", "libcrc32c", check=False)
    run("insmod", os.environ["BENCH_CRC_SPEED"])
    try:
        with open("/sys/module/crc_speed/parameters/mib_per_s", encoding="ascii") as file:
            return {"-": float(file.read())}
    finally:
        run("rmmod", "crc_speed")
