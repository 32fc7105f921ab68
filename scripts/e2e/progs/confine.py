#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Run a command where it may use no TCP, as the kernel's other parts see to that.

Usage: confine.py landlock COMMAND...        Landlock denies it to bind and to connect
       confine.py bpf HOOK CGROUP COMMAND... in that cgroup, in which a BPF program denies
           HOOK: connect4 or bind4
In both, a TCP socket of its own is refused before the command begins. Status 77: the kernel
cannot do it.
"""

import ctypes
import os
import socket
import struct
import sys

BPF, LANDLOCK_CREATE, LANDLOCK_RESTRICT = 321, 444, 446
PROG_LOAD, PROG_ATTACH, CGROUP_SOCK_ADDR = 5, 8, 18
HOOKS = {"bind4": 8, "connect4": 10}
BIND_TCP, CONNECT_TCP = 1, 2
NO_NEW_PRIVS = 38

libc = ctypes.CDLL(None, use_errno=True)


def checked(result, what):
    if result < 0:
        error = ctypes.get_errno()
        print(f"{what}: {os.strerror(error)}", flush=True)
        sys.exit(77)
    return result


def landlock():
    attr = ctypes.create_string_buffer(struct.pack("=QQ", 0, BIND_TCP | CONNECT_TCP))
    ruleset = checked(libc.syscall(LANDLOCK_CREATE, attr, 16, 0), "landlock_create_ruleset")
    checked(libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    checked(libc.syscall(LANDLOCK_RESTRICT, ruleset, 0), "landlock_restrict_self")


def bpf(command, attr, what):
    buffer = ctypes.create_string_buffer(attr, 128)
    return checked(libc.syscall(BPF, command, buffer, 128), what)


def deny(hook, cgroup):
    """r0 = 0; exit: whatever is asked for is not allowed."""
    code = ctypes.create_string_buffer(struct.pack("<BBHi", 0xb7, 0, 0, 0) +
                                       struct.pack("<BBHi", 0x95, 0, 0, 0))
    words = ctypes.create_string_buffer(b"GPL")
    program = bpf(PROG_LOAD, struct.pack("=IIQQIIQII16sII", CGROUP_SOCK_ADDR, 2,
                                         ctypes.addressof(code), ctypes.addressof(words),
                                         0, 0, 0, 0, 0, b"deny", 0, HOOKS[hook]), "BPF_PROG_LOAD")
    group = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY)
    bpf(PROG_ATTACH, struct.pack("=IIII", group, program, HOOKS[hook], 0), "BPF_PROG_ATTACH")
    with open(cgroup + "/cgroup.procs", "w", encoding="ascii") as file:
        file.write(str(os.getpid()))


def a_socket_is_refused(hook):
    with socket.socket() as sock:
        try:
            if hook == "bind4":
                sock.bind(("127.0.0.1", 0))
            else:
                sock.connect(("127.0.0.1", 9))
        except PermissionError:
            return
        except OSError as error:
            sys.exit(f"a socket of its own: {error}")
    sys.exit("a socket of its own is not refused")


def main(kind, *words):
    if kind == "landlock":
        landlock()
        a_socket_is_refused("connect4")
    else:
        hook, cgroup, *words = words
        deny(hook, cgroup)
        a_socket_is_refused(hook)
    os.execvp(words[0], words)


if __name__ == "__main__":
    main(*sys.argv[1:])
