# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Start frames of a plain socket at the port for QPs that programs connect, and the replies."""

import contextlib
import ipaddress
import socket
import struct

PORT = 4791
REQUEST = b"MPA ID Req Frame"
REPLY = b"MPA ID Rep Frame"
# An empty Write, with its CRC: an initiator is ready.
READY = bytes.fromhex("000e" "c140000000000000000000000000" "a30572ab")
REJECT, CRC, ENHANCED = 0x20, 0x40, 0x10
MALFORMED, BAD_VERSION, NO_QP, BAD_PSN, BUSY = range(1, 6)


def address_of(end, port=PORT):
    """The family, and what a socket connects to."""
    host = str(ipaddress.ip_address(end.gid).ipv4_mapped or end.gid)
    return socket.AF_INET6 if ":" in host else socket.AF_INET, (host, port)


@contextlib.contextmanager
def plain_listener(end):
    """A program that listens where a QP would."""
    family, address = address_of(end)
    with socket.socket(family) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen()
        sock.settimeout(10)
        yield sock


def hello(qpn, peer_qpn, rq_psn, sq_psn, magic=b"WFTQ", version=1, flags=1, extensions=0):
    return magic + struct.pack(">BBHIIII", version, flags, extensions, qpn, peer_qpn, rq_psn,
                               sq_psn)


def request(private, rev=2, flags=CRC | ENHANCED, ird=0x8000 | 8, ord_=0xc000 | 8):
    block = struct.pack(">HH", ird, ord_) if flags & ENHANCED else b""
    return (REQUEST + struct.pack(">BBH", flags, rev, len(block) + len(private)) + block
            + private)


def dial(end, data, source=None, port=PORT):
    sock = socket.create_connection(address_of(end, port)[1], timeout=10,
                                    source_address=(source, 0) if source else None)
    if data:
        sock.sendall(data)
    return sock


def reply(private):
    """It asks for a Write of no length as the message that says ready-to-receive."""
    return (REPLY + struct.pack(">BBHHH", CRC | ENHANCED, 2, 4 + len(private), 0x8008, 0x8008)
            + private)


def answer(sock, seconds=15):
    """The reason of a rejecting reply; 0: an accepting one; None: closed without a reply."""
    sock.settimeout(seconds)
    got = b""
    try:
        while len(got) < 20 or len(got) < 20 + struct.unpack(">H", got[18:20])[0]:
            more = sock.recv(4096)
            if not more:
                return None
            got += more
    except ConnectionError:
        return None
    assert got.startswith(REPLY)
    return got[24 + 5] if got[16] & REJECT else 0


def reason(end, data, source=None, port=PORT):
    with dial(end, data, source, port) as sock:
        return answer(sock)
