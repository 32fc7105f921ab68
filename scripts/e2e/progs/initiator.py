#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Write to an iSER target with libiscsi, read it back, compare.

Usage: initiator.py INITIATOR PORTAL TARGET LUN IMAGE [BLOCKS-A-COMMAND]...

What IMAGE holds is what the disk of the target has to hold afterwards.
"""
import ctypes
import os
import sys

BLOCK = 512


class Iovec(ctypes.Structure):
    """struct scsi_iovec"""
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


def main():
    """One session: all of the image out, and in again, in commands of the sizes asked for."""
    lib = ctypes.CDLL("libiscsi.so.7")
    lib.iscsi_create_context.restype = ctypes.c_void_p
    lib.iscsi_parse_full_url.restype = ctypes.c_void_p
    lib.iscsi_get_error.restype = ctypes.c_char_p
    for name in ("iscsi_read16_iov_sync", "iscsi_write16_iov_sync"):
        getattr(lib, name).restype = ctypes.c_void_p
    initiator, portal, target, lun, image = sys.argv[1:6]
    sizes = [int(size) for size in sys.argv[6:]] or [8]
    context = ctypes.c_void_p(lib.iscsi_create_context(initiator.encode()))

    def check(good, what):
        if not good:
            sys.exit("%s: %s" % (what, lib.iscsi_get_error(context).decode()))

    url = "iser://%s/%s/%s" % (portal, target, lun)
    check(lib.iscsi_parse_full_url(context, url.encode()), "address")
    lib.iscsi_set_targetname(context, target.encode())
    lib.iscsi_set_session_type(context, 2)
    check(lib.iscsi_full_connect_sync(context, portal.encode(), int(lun)) == 0, "login")

    def command(call, block, buffer):
        vector = Iovec(ctypes.addressof(buffer), len(buffer))
        data = [None] if call is lib.iscsi_write16_iov_sync else []
        task = call(context, int(lun), ctypes.c_uint64(block), *data,
                    ctypes.c_uint32(len(buffer)), BLOCK, 0, 0, 0, 0, 0,
                    ctypes.byref(vector), 1)
        check(task, "command")
        status = ctypes.cast(task, ctypes.POINTER(ctypes.c_int))[0]
        check(status == 0, "status %d at block %d" % (status, block))

    content = os.urandom(4 << 20)
    for call in (lib.iscsi_write16_iov_sync, lib.iscsi_read16_iov_sync):
        block, turn = 0, 0
        while block * BLOCK < len(content):
            at = block * BLOCK
            want = content[at:at + sizes[turn % len(sizes)] * BLOCK]
            buffer = (ctypes.c_char * len(want))()
            if call is lib.iscsi_write16_iov_sync:
                buffer.raw = want
            command(call, block, buffer)
            if buffer.raw != want:
                sys.exit("other bytes at block %d" % block)
            block, turn = block + len(want) // BLOCK, turn + 1
    with open(image, "wb") as out:
        out.write(content)
    lib.iscsi_logout_sync(context)
    lib.iscsi_destroy_context(context)


main()
