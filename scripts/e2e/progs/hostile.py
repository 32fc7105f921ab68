#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Bad peers of a connection's start, with nothing but sockets.

Usage: hostile.py initiator CASE HOST PORT SECONDS   connect and misbehave; the
           other side has to close the connection within SECONDS
       hostile.py initiator stays HOST PORT SECONDS COUNT   that many connections, or
           beginnings of some, on which nothing is said
       hostile.py responder CASE HOST PORT           take one connection, misbehave
"""

import resource
import socket
import struct
import sys
import time

REQUEST = b"MPA ID Req Frame"
REPLY = b"MPA ID Rep Frame"
CRC = 0x40
BIND_ADDRESS_NO_PORT = 24


def frame(key, private=b"", rev=1, flags=CRC, length=None):
    announced = len(private) if length is None else length
    return key + struct.pack(">BBH", flags, rev, announced) + private


# What is sent; a number is a pause in seconds. Then the peer waits.
INITIATOR = {
    "garbage": [bytes(range(64))],
    "wrong-key": [frame(b"MPA ID Rex Frame")],
    "reply-instead-of-request": [frame(REPLY)],
    "unknown-revision": [frame(REQUEST, rev=7)],
    "oversized-private-data": [frame(REQUEST, b"x" * 513)],
    "largest-length": [frame(REQUEST, b"x" * 64, length=65535)],
    "web-browser": [b"GET / HTTP/1.1\r\nHost: weft\r\n\r\n"],
    "silence": [],
    "half-a-key": [REQUEST[:8]],
    "half-a-request": [frame(REQUEST)[:19]],
    "private-data-missing": [frame(REQUEST, b"x" * 50, length=100)],
    "one-byte-a-second": [x for b in frame(REQUEST)[:19] for x in (bytes([b]), 1)],
    "bad-crc": [frame(REQUEST) + struct.pack(">H", 24) + bytes(30)],
}

RESPONDER = {
    "garbage": [bytes(range(64))],
    "wrong-key": [frame(REQUEST)],
    "unknown-revision": [frame(REPLY, rev=7)],
    "oversized-private-data": [frame(REPLY, b"x" * 513)],
    "half-a-reply": [frame(REPLY)[:13]],
    "close-at-once": [],
    "reset-at-once": [],
}


def closed(sock, seconds):
    """Seconds until the other side closed the connection; raises if it does not."""
    began = time.monotonic()
    sock.settimeout(seconds)
    try:
        while sock.recv(4096):
            pass
    except ConnectionError:
        pass
    return time.monotonic() - began


def send_all(sock, parts):
    try:
        for part in parts:
            if isinstance(part, bytes):
                sock.sendall(part)
            else:
                time.sleep(part)
    except ConnectionError:
        pass  # it closed early, which is its right


def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def silent_conns(host, port, seconds):
    socks = [socket.create_connection((host, port), timeout=10) for _ in range(20)]
    print("connected", flush=True)
    for sock in socks:
        with sock:
            closed(sock, seconds)


def stays(host, port, seconds, count):
    """As many as TCP takes are connected, the rest goes on trying. From an address of
    their own, so that other programs do not lack the ports."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 64, count + 64))
    socks = [socket.socket() for _ in range(count)]
    for sock in socks:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_IP, BIND_ADDRESS_NO_PORT, 1)
        sock.bind(("127.0.0.2", 0))
        sock.connect_ex((host, port))
    print("connected", flush=True)
    time.sleep(seconds)


def initiator(case, host, port, seconds, count):
    if case == "stays":
        stays(host, port, seconds, count)
        return
    if case == "silent-conns":
        silent_conns(host, port, seconds)
        return
    if case in ("connect-and-close", "connect-and-reset"):
        for _ in range(50):
            sock = socket.create_connection((host, port))
            if case == "connect-and-reset":
                reset(sock)
            else:
                sock.close()
        return
    began = time.monotonic()
    with socket.create_connection((host, port), timeout=10) as sock:
        print("connected", flush=True)
        send_all(sock, INITIATOR[case])
        closed(sock, seconds)
    took = time.monotonic() - began
    print(f"closed after {took:.1f} s")
    assert took <= seconds, "not within its deadline"


def responder(case, host, port):
    with socket.create_server((host, port)) as listener:
        listener.settimeout(20)
        sock, _ = listener.accept()
        sock.settimeout(10)
        got = b""
        while len(got) < 20:
            got += sock.recv(4096)
        assert got.startswith(REQUEST), got
        send_all(sock, RESPONDER[case])
        if case == "close-at-once":
            sock.close()
        elif case == "reset-at-once":
            reset(sock)
        else:
            print(f"closed after {closed(sock, 45):.1f} s")


def main(role, case, host, port, seconds="0", count="0"):
    if role == "initiator":
        initiator(case, host, int(port), float(seconds), int(count))
    else:
        responder(case, host, int(port))


if __name__ == "__main__":
    main(*sys.argv[1:])
