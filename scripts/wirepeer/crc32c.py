# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""CRC32c as MPA uses it (RFC 5044, 4.4), two bytes per table look-up."""

import struct
import sys

POLY = 0x82F63B78


def _byte_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = (n >> 1) ^ (POLY if n & 1 else 0)
        table.append(n)
    return table


_T1 = _byte_table()
_T2 = [(_T1[n & 0xFF] >> 8) ^ _T1[(_T1[n & 0xFF] ^ (n >> 8)) & 0xFF] for n in range(65536)]


def crc32c(data):
    """The usual reflected result: crc32c(b"123456789") == 0xE3069283."""
    crc = 0xFFFFFFFF
    data = bytes(data)
    even = len(data) & ~1
    if sys.byteorder == "little":
        words = memoryview(data)[:even].cast("H")
    else:
        words = struct.unpack("<%dH" % (even // 2), data[:even])
    table = _T2
    for word in words:
        crc = (crc >> 16) ^ table[(crc ^ word) & 0xFFFF]
    if len(data) & 1:
        crc = (crc >> 8) ^ _T1[(crc ^ data[-1]) & 0xFF]
    return crc ^ 0xFFFFFFFF


def wire_bytes(data):
    """The four bytes as they stand on the wire: least significant first."""
    return struct.pack("<I", crc32c(data))
