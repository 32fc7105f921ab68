#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Carry packets between two tun devices, each in a network namespace of its own.

Usage: tun_forward.py NAMESPACE NETDEV NAMESPACE NETDEV
"""

import ctypes
import fcntl
import os
import select
import struct
import sys

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def open_tun(namespace, netdev):
    with open(f"/var/run/netns/{namespace}", "rb") as file:
        if LIBC.setns(file.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", netdev.encode(), IFF_TUN | IFF_NO_PI))
    return tun


def main(a_namespace, a_netdev, b_namespace, b_netdev):
    a, b = open_tun(a_namespace, a_netdev), open_tun(b_namespace, b_netdev)
    other = {a: b, b: a}
    print("ready", flush=True)
    while True:
        for tun in select.select([a, b], [], [])[0]:
            packet = os.read(tun, 65536)
            try:
                os.write(other[tun], packet)
            except OSError:
                pass  # the other end is down: the packet is lost, as on any wire


if __name__ == "__main__":
    main(*sys.argv[1:])
