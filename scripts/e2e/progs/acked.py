#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Synchronous writes to a disk, each told on stdout when it is done. Whatever becomes
of the machine that makes them: what was told is on the disk.

Usage: acked.py write DISK      until it is killed
       acked.py check DISK FILE  of what "write" has told

Some threads write one after the other, each to a part of its own, at places and of
sizes that follow from its number and the write's. So does what is written, and each
sector names its write. In every sector has to be, whole, the last write to it that
was told, or one after that.
"""

import hashlib
import mmap
import os
import re
import struct
import sys
import threading

SECTOR, LONGEST = 512, 256
THREADS, PART = 4, 4096	# sectors
NAME = struct.Struct(">QQQ")


def write_of(thread, number):
    """First sector, how many, and what is in them but for the name."""
    digest = hashlib.sha256(b"%d:%d" % (thread, number)).digest()
    length, place = struct.unpack(">HI", digest[:6])
    length = 1 + length % LONGEST
    first = thread * PART + place % (PART - length + 1)
    return first, length, (digest * (SECTOR // len(digest)))[NAME.size:]


def sector(thread, number, place, filling):
    return NAME.pack(thread, number, place) + filling


def write(disk, thread):
    buf = mmap.mmap(-1, LONGEST * SECTOR)
    number = 0
    while True:
        number += 1
        first, length, filling = write_of(thread, number)
        data = b"".join(sector(thread, number, n, filling) for n in range(first, first + length))
        buf[:len(data)] = data
        if os.pwritev(disk, [memoryview(buf)[:len(data)]], first * SECTOR) != len(data):
            raise OSError("a short write")
        os.write(1, b"%d %d\n" % (thread, number))


def check_sector(thread, place, told, data):
    """The number of the write it is of, if that is right."""
    of, number, named = NAME.unpack(data[:NAME.size])
    first, length, filling = write_of(of, number)
    if (of, named) != (thread, place) or not first <= place < first + length:
        raise AssertionError("sector %d: what is there was not written there" % place)
    if data != sector(thread, number, place, filling):
        raise AssertionError("sector %d: write %d is not whole" % (place, number))
    if number < told:
        raise AssertionError("sector %d: write %d is lost, %d is there" % (place, told, number))
    return number


def check(disk, path):
    count = [0] * THREADS
    with open(path, encoding="ascii") as file:
        for line in file:
            # The last line may have been cut, and the first ones belong to another run.
            found = re.fullmatch(r"(\d) (\d+)\n", line)
            if found:
                count[int(found[1])] = int(found[2])
    checked = 0
    for thread, numbers in enumerate(count):
        last = {}
        for number in range(1, numbers + 1):
            first, length, _ = write_of(thread, number)
            last.update((place, number) for place in range(first, first + length))
        for place, told in last.items():
            check_sector(thread, place, told, os.pread(disk, SECTOR, place * SECTOR))
            checked += 1
    print("%d writes were told, %d sectors are as they should be" % (sum(count), checked))


def main():
    if sys.argv[1] == "write":
        disk = os.open(sys.argv[2], os.O_WRONLY | os.O_DIRECT)
        for thread in range(THREADS):
            threading.Thread(target=write, args=(disk, thread)).start()
    else:
        check(os.open(sys.argv[2], os.O_RDONLY), sys.argv[3])


if __name__ == "__main__":
    main()
