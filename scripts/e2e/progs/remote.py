#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Run programs on another guest, over TCP: a remote shell for machines that trust
each other because they are alone on their network.

Usage: remote.py serve PORT           until it is told to stop
       remote.py ADDRESS:PORT PROGRAM [ARGUMENT]...
       remote.py ADDRESS:PORT --stop

The output comes as it is written, then the exit status. When the near end is
closed, the program is ended.
"""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

OUTPUT, STATUS = 1, 2
FAILED = 125


def whole(sock, count):
    data = b""
    while len(data) < count:
        more = sock.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def record(kind, data):
    return struct.pack(">BI", kind, len(data)) + data


# --- the far end ---------------------------------------------------------------

def end_with_the_caller(sock, process):
    """Nothing more ever comes from the near end, but its end."""
    try:
        sock.recv(1)
    except OSError:
        pass
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        time.sleep(0.5)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def execute(sock, argv):
    try:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True)
    except OSError as error:
        sock.sendall(record(OUTPUT, ("%s\n" % error).encode()) + record(STATUS, bytes([127])))
        return
    threading.Thread(target=end_with_the_caller, args=(sock, process), daemon=True).start()
    while True:
        data = process.stdout.read1(65536)
        if not data:
            break
        sock.sendall(record(OUTPUT, data))
    status = process.wait()
    sock.sendall(record(STATUS, bytes([status if status >= 0 else 128 - status])))


def serve_conn(sock, stop):
    try:
        argv = json.loads(whole(sock, struct.unpack(">I", whole(sock, 4))[0]))
        if argv == ["--stop"]:
            stop.set()
        else:
            execute(sock, argv)
    except (OSError, EOFError):
        pass
    finally:
        sock.close()


def serve(port):
    listener = socket.create_server(("", port))
    listener.settimeout(0.5)
    stop = threading.Event()
    while not stop.is_set():
        try:
            sock, _ = listener.accept()
        except socket.timeout:
            continue
        sock.setblocking(True)
        threading.Thread(target=serve_conn, args=(sock, stop), daemon=True).start()
    return 0


# --- the near end ----------------------------------------------------------------

def call(where, argv):
    address, _, port = where.rpartition(":")
    sock = socket.create_connection((address, int(port)), 10)
    sock.settimeout(None)
    text = json.dumps(argv).encode()
    sock.sendall(struct.pack(">I", len(text)) + text)
    while True:
        try:
            kind, length = struct.unpack(">BI", whole(sock, 5))
            data = whole(sock, length)
        except EOFError:
            return 0 if argv == ["--stop"] else FAILED
        if kind == STATUS:
            return data[0]
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "serve":
        return serve(int(sys.argv[2]))
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return call(sys.argv[1], sys.argv[2:])
    except OSError as error:
        print("remote: %s" % error)
        return FAILED


if __name__ == "__main__":
    sys.exit(main())
