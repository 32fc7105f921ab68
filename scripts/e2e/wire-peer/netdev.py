# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Beneath TCP: the devices of both ends, their packets, and reports of a router."""

import socket
import struct
import subprocess

UNREACHABLE, FRAGMENTATION_NEEDED = 3, (3, 4)
PACKET_TOO_BIG = (2, 0)


def own_netns(*command):
    """Run it where the peer is; what it said."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def weft_netns(*command):
    return own_netns("ip", "netns", "exec", "wa", *command)


def set_mtu(mtu):
    """Of both ends of the cable."""
    own_netns("ip", "link", "set", "vb", "mtu", str(mtu))
    weft_netns("ip", "link", "set", "va", "mtu", str(mtu))


def widen(mtu, address6):
    """Weft's end, which lost its IPv6 addresses if it was narrower than IPv6 may be."""
    weft_netns("ip", "link", "set", "va", "mtu", str(mtu))
    weft_netns("ip", "addr", "replace", address6 + "/64", "dev", "va", "nodad")


def tcp_of(frame):
    """Where TCP's header begins, 0 if nowhere, and the bytes from there on."""
    if frame[12:14] == b"\x08\x00" and frame[23] == socket.IPPROTO_TCP:
        at = 14 + (frame[14] & 15) * 4
        total = struct.unpack(">H", frame[16:18])[0] or len(frame) - 14
        return at, total - (at - 14)
    if frame[12:14] == b"\x86\xdd" and frame[20] == socket.IPPROTO_TCP:
        return 54, struct.unpack(">H", frame[18:20])[0] or len(frame) - 54
    return 0, 0


class Tap:
    """TCP payloads of one connection as the device shows them."""

    def __init__(self, port):
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.sock.bind(("vb", 0))
        self.sock.settimeout(0.3)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.port = port

    def segments(self):
        """(sequence number, length) of what came from the port."""
        found = []
        while True:
            try:
                frame = self.sock.recv(1 << 17)
            except socket.timeout:
                return found
            at, size = tcp_of(frame)
            if not at:
                continue
            source, _, seq = struct.unpack(">HHI", frame[at:at + 8])
            length = size - (frame[at + 12] >> 4) * 4
            if source == self.port and length > 0:
                found.append((seq, length))


def checksum(data):
    total = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frag_needed(wire, seq, mtu):
    """As a router on the path to us would report to weft, about the segment at @seq."""
    (own, own_port), (weft, weft_port) = wire.sock.getsockname(), wire.sock.getpeername()
    segment = struct.pack(">HHI", weft_port, own_port, seq)
    packet = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 1500, 1, 0x4000, 63, socket.IPPROTO_TCP, 0,
                         socket.inet_aton(weft), socket.inet_aton(own)) + segment
    report = struct.pack(">BBHHH", *FRAGMENTATION_NEEDED, 0, 0, mtu) + packet
    report = report[:2] + struct.pack(">H", checksum(report)) + report[4:]
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as icmp:
        icmp.sendto(report, (weft, 0))


def unreachable(sock, address, code):
    """As a router would report about the next SYN to an address, of those that @sock sees."""
    while True:
        frame = sock.recv(1 << 17)
        at, _ = tcp_of(frame)
        if at and frame[30:34] == socket.inet_aton(address) and frame[at + 13] & 0x02:
            break
    report = struct.pack(">BBHI", UNREACHABLE, code, 0, 0) + frame[14:at + 8]
    report = report[:2] + struct.pack(">H", checksum(report)) + report[4:]
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as icmp:
        icmp.sendto(report, (socket.inet_ntoa(frame[26:30]), 0))


def packet_too_big(wire, seq, mtu):
    """The same of IPv6; the kernel adds the checksum."""
    (own, own_port), (weft, weft_port) = wire.sock.getsockname()[:2], wire.sock.getpeername()[:2]
    segment = struct.pack(">HHIIBBHHH", weft_port, own_port, seq, 0, 0x50, 0x10, 0, 0, 0)
    packet = struct.pack(">IHBB16s16s", 6 << 28, len(segment), socket.IPPROTO_TCP, 63,
                         socket.inet_pton(socket.AF_INET6, weft),
                         socket.inet_pton(socket.AF_INET6, own)) + segment
    report = struct.pack(">BBHI", *PACKET_TOO_BIG, 0, mtu) + packet
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as icmp:
        icmp.sendto(report, (weft, 0))
