# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Load a module again and again, each time with another allocation of its start failing.

Usage: load.py FILE.ko
It is not loaded then, or it is without what it lacks, and goes again in either case. The kernel
has FAULT_INJECTION.
"""

import ctypes
import errno
import os
import platform
import subprocess
import sys

FINIT_MODULE = {"x86_64": 313, "aarch64": 273}[platform.machine()]
MANY = 1000000
# The last allocations of a load are those of the module itself, and of what comes behind. Each
# workqueue takes several.
LAST, STEP = 150, 4


def load(path, nth):
    """(errno, allocations that were still to succeed)"""
    libc = ctypes.CDLL(None, use_errno=True)
    module = os.open(path, os.O_RDONLY)
    fault = os.open("/proc/thread-self/fail-nth", os.O_RDWR)
    os.write(fault, b"%d" % nth)
    failed = libc.syscall(FINIT_MODULE, module, b"", 0)
    why = ctypes.get_errno() if failed else 0
    left = int(os.pread(fault, 16, 0))
    os.pwrite(fault, b"0", 0)
    os.close(fault)
    os.close(module)
    return why, left


def main():
    path = sys.argv[1]
    name = os.path.basename(path).split(".")[0]
    why, left = load(path, MANY)
    outcomes = {}
    for nth in range(MANY - left, max(MANY - left - LAST, 0), -STEP):
        if not why:
            subprocess.run(["rmmod", name], check=True)
        why, _ = load(path, nth)
        assert why in (0, errno.ENOMEM), "%s at allocation %d" % (os.strerror(why), nth)
        outcomes[why] = outcomes.get(why, 0) + 1
    if not why:
        subprocess.run(["rmmod", name], check=True)
    print("loaded %u times, refused %u times" % (outcomes.get(0, 0), outcomes.get(errno.ENOMEM, 0)))
    assert outcomes.get(errno.ENOMEM), "the module has allocated nothing"


main()
