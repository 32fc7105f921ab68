#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""One end of a QP that two hosts connect by ibv_modify_qp(), by pyverbs.

Usage: direct_pair.py [--device NAME] [--gid N] CASE [ADDRESS]
Without the address it serves one peer. The ends tell each other their numbers, and when a step
is done, by lines of JSON over TCP. A case fails by an exception.
"""

import argparse
import json
import socket
import subprocess
import types

import direct_end
import pyverbs.enums as e
from pyverbs.wr import SGE, SendWR

PORT = 18600
LENGTH = 4096


class Talk:
    """Words with the other host's program."""

    def __init__(self, address):
        if address:
            self.sock = socket.create_connection((address, PORT), timeout=30)
        else:
            with socket.create_server(("0.0.0.0", PORT)) as server:
                server.settimeout(60)
                self.sock = server.accept()[0]
        self.sock.settimeout(60)
        # One file for both ways would drop a line that came with the one before, at a write.
        self.lines = self.sock.makefile("r", encoding="ascii")

    def swap(self, word):
        """Tell the peer; what it tells."""
        self.sock.sendall((json.dumps(word) + "\n").encode())
        line = self.lines.readline()
        assert line, "the other end has gone"
        return json.loads(line)


def numbers(end):
    return {"gid": end.gid, "number": end.number, "psn": end.psn, "addr": end.mr.buf,
            "rkey": end.mr.rkey}


def meet(talk, end, **rts):
    """Both in RTS, and both know what the other's memory is called."""
    peer = types.SimpleNamespace(**talk.swap(numbers(end)))
    peer.mr = types.SimpleNamespace(buf=peer.addr, rkey=peer.rkey)
    end.init()
    end.receive(8)
    end.rtr(peer)
    end.rts(**rts)
    return peer


def immediate(end, value):
    sg = [SGE(end.mr.buf, 64, end.mr.lkey)]
    end.qp.post_send(SendWR(opcode=e.IBV_WR_SEND_WITH_IMM, num_sge=1, sg=sg, imm_data=value))
    end.expect()


def each_operation(talk, end, peer, first):
    """Of the one whose turn it is; the other one looks at what came."""
    if first:
        end.mr.write(b"s" * 64, 64)
        end.post()
        end.expect()
        immediate(end, 0x11223344)
        end.mr.write(b"w" * LENGTH, LENGTH)
        end.post(e.IBV_WR_RDMA_WRITE, LENGTH, peer)
        end.expect()
        end.mr.write(b"r" * LENGTH, LENGTH)
        end.post(e.IBV_WR_RDMA_READ, LENGTH, peer)
        end.expect()
        assert end.mr.read(LENGTH, 0) == b"w" * LENGTH
        talk.swap("written")
        return
    end.expect()
    wc = end.expect()
    assert wc.wc_flags & e.IBV_WC_WITH_IMM and wc.imm_data == 0x11223344
    talk.swap("written")
    assert end.mr.read(LENGTH, 0) == b"w" * LENGTH


def operations(talk, server):
    """Both ways, and again in a second life of the same QP."""
    end = direct_end.End(psn=0xfedcba if server else 0x123456)
    for _ in range(2):
        peer = meet(talk, end)
        each_operation(talk, end, peer, server)
        each_operation(talk, end, peer, not server)
        talk.swap("reset")
        end.reset()
    end.close()


def peer_destroys(talk, server):
    """The other QP goes without a word."""
    end = direct_end.End()
    peer = meet(talk, end)
    each_operation(talk, end, peer, not server)
    if server:
        end.qp.close()
        talk.swap("destroyed")
        return
    talk.swap("destroyed")
    end.post()
    end.expect(e.IBV_WC_RETRY_EXC_ERR)
    assert end.state() == e.IBV_QPS_ERR


def host_goes(talk, server):
    """The cable is pulled: the sender gets an error when its time is up."""
    end = direct_end.End()
    peer = meet(talk, end, timeout=16, retries=2)
    each_operation(talk, end, peer, not server)
    talk.swap("pull it")
    if server:
        return
    subprocess.run(["ip", "link", "set", "vec0", "down"], check=True)
    end.post()
    end.expect(e.IBV_WC_RETRY_EXC_ERR, seconds=60)
    assert end.state() == e.IBV_QPS_ERR


CASES = {case.__name__: case for case in (operations, peer_destroys, host_goes)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="weft0")
    parser.add_argument("--gid", type=int, default=1)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("address", nargs="?")
    parser.parse_args(namespace=direct_end.args)
    CASES[direct_end.args.case](Talk(direct_end.args.address), not direct_end.args.address)


if __name__ == "__main__":
    main()
