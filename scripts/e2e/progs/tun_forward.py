#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Carry packets between two tun devices, each in a network namespace of its own.

Usage: tun_forward.py NAMESPACE NETDEV NAMESPACE NETDEV [ADDRESS=ADDRESS]...

IPv4 addresses are translated: the first of a pair to the second in what A sends, and back.
"""

import ctypes
import fcntl
import os
import select
import socket
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


def translate(packet, addresses):
    """Of IPv4: addresses at 12 and 16; one for another changes TCP's checksum by the difference."""
    if packet[0] >> 4 != 4 or not addresses:
        return packet
    packet = bytearray(packet)
    tcp = (packet[0] & 15) * 4 + 16
    for at in (12, 16):
        old = bytes(packet[at:at + 4])
        packet[at:at + 4] = addresses.get(old, old)
        for where in (10, tcp) if packet[9] == socket.IPPROTO_TCP else (10,):
            change = sum(struct.unpack("!2H", packet[at:at + 4])) + sum(
                0xffff - half for half in struct.unpack("!2H", old))
            total = 0xffff - struct.unpack_from("!H", packet, where)[0] + change
            while total >> 16:
                total = (total & 0xffff) + (total >> 16)
            struct.pack_into("!H", packet, where, 0xffff - total)
    return packet


def main(a_namespace, a_netdev, b_namespace, b_netdev, *pairs):
    pairs = [tuple(map(socket.inet_aton, pair.split("="))) for pair in pairs]
    a, b = open_tun(a_namespace, a_netdev), open_tun(b_namespace, b_netdev)
    other = {a: b, b: a}
    change = {a: dict(pairs), b: {new: old for old, new in pairs}}
    print("ready", flush=True)
    while True:
        for tun in select.select([a, b], [], [])[0]:
            packet = translate(os.read(tun, 65536), change[tun])
            try:
                os.write(other[tun], packet)
            except OSError:
                pass  # the other end is down: the packet is lost, as on any wire


if __name__ == "__main__":
    main(*sys.argv[1:])
