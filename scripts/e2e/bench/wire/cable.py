# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What is measured on: both hosts, as the tools of scripts/e2e/bench want a world."""

import time

from programs import Failure
from wire.host import Host, address
from wire.remote import Responder


# Seconds from a listener's being shown until RoCE's connection manager knows of it.
ROCE_LISTENS = 0.5


class RemoteServer:
    """Like programs.Server, but on the responder."""

    def __init__(self, host, words, number, tcp=True):
        self.host, self.what, self.handle = host, (list(words), number, tcp), None

    def __enter__(self):
        self.handle = self.host.start_server(*self.what)
        if not self.what[2]:
            time.sleep(ROCE_LISTENS)
        return self

    def said(self):
        return self.host.server_said(self.handle)

    def kill(self):
        self.host.kill_server(self.handle)

    def signal(self, name):
        self.host.signal_server(self.handle, name)

    def __exit__(self, kind, *_):
        self.host.end_server(self.handle, kind and kind.__name__)


class Cable:
    """Requester and responder, in the same state."""

    def __init__(self, siw_dir):
        self.near = Host("requester", siw_dir)
        self.responder = Responder()
        self.far = self.responder.host
        self.absent = {}

    def both(self, method, *words):
        for host in (self.far, self.near):
            getattr(host, method)(*words)

    def change(self, link, crc):
        self.both("set_crc", crc)
        self.both("set_link", link)
        self.absent = {}

    def need(self, peer):
        """That peer's device at both ends; one that cannot be made is not tried again."""
        if peer in self.absent:
            raise Failure(self.absent[peer])
        try:
            self.both("set_device", peer)
        except Failure as why:
            self.absent[peer] = str(why)
            raise

    def address(self, _peer):
        """The responder's, which all devices of a card have."""
        return address("responder", self.near.card)

    def server(self, words, number, tcp=True):
        return RemoteServer(self.far, words, number, tcp)

    def busy(self):
        """CPU seconds by end; the requester's is the figure itself."""
        return {"-": self.near.busy(), "responder": self.far.busy()}

    def near_program(self, name):
        return self.near.program(name)

    def far_program(self, name):
        return self.far.program(name)

    def end(self):
        try:
            self.far.finish()
        finally:
            self.near.end()
