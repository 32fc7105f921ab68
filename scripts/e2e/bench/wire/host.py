# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""One of the two guests: its network cards, its RDMA device, its programs. The same code
runs at both ends; the requester reaches the other one's through wire/remote.py."""

import collections
import glob
import itertools
import os
import signal
import subprocess
import threading
import time

import programs
from programs import Failure, run
from wire import roundtrip, storage

# One card for each MTU, a network for each card, and in it an address for each role.
CARDS = {1500: "vec0", 9000: "vec1"}
NETWORKS = {"vec0": "10.91.0.", "vec1": "10.91.1."}
NUMBERS = {"responder": "1", "requester": "2"}
GID_WAIT, GIDS = 3, 16	# seconds, and how many of a table of a thousand are looked at
DEVICES = ("weft", "siw", "rxe")
CONTROL = "vec0"	# what the requester wants done goes over this one

# How the cable is used: the MTU, whether TCP's segmentation and GRO are the card's and the
# stack's business, and what netem does to what is sent, at either end.
Link = collections.namedtuple("Link", "mtu offload netem")
LINKS = {
    "1500": Link(1500, True, ()),
    "9000": Link(9000, True, ()),
    "1500-no-offload": Link(1500, False, ()),
    "9000-no-offload": Link(9000, False, ()),
    "1500-0.1ms": Link(1500, True, ("delay", "0.1ms")),
    "1500-1ms": Link(1500, True, ("delay", "1ms")),
    "1500-loss": Link(1500, True, ("loss", "0.1%")),
}
SETS = {"all": tuple(LINKS), "offload": ("1500", "9000"),
        "clean": ("1500", "9000", "1500-no-offload", "9000-no-offload")}
# Of netem: more than TCP has under way in a millisecond.
NETEM_LIMIT = "20000"


def address(role, card):
    return NETWORKS[card] + NUMBERS[role]


class Host:
    """One end of the cable."""

    def __init__(self, role, siw_dir):
        self.role, self.siw_dir = role, siw_dir
        self.link = self.crc = self.device = None
        self.numbers, self.servers, self.spinner = itertools.count(1), {}, None
        self.programs = {}
        self.over = threading.Event()
        self.card = CONTROL
        for card in CARDS.values():
            run("ip", "addr", "add", address(role, card) + "/24", "dev", card)
            run("ip", "link", "set", card, "up")

    # --- the cable ---

    def set_link(self, name):
        """Take the card that it names, and bring that into its state."""
        if name == self.link:
            return
        self.set_device(None)
        link = LINKS[name]
        self.card = CARDS[link.mtu]
        word = "on" if link.offload else "off"
        run("ethtool", "-K", self.card, "tso", word, "gso", word, "gro", word)
        run("tc", "qdisc", "del", "dev", self.card, "root", check=False)
        if link.netem:
            run("tc", "qdisc", "add", "dev", self.card, "root", "netem", "limit", NETEM_LIMIT,
                *link.netem)
        self.link = name

    # --- devices ---

    def set_crc(self, crc):
        if crc != self.crc:
            self.set_device(None)
        self.crc = crc

    def set_device(self, peer):
        """The one RDMA device that is there, since all of them would listen on the same
        ports of the same card. None: no device."""
        if peer not in DEVICES:
            peer = None
        if peer == self.device:
            return
        if self.device:
            done = self._rdma("link", "delete", self.device + "0")
            self.device = None
            if done.returncode:
                raise Failure("the device of before does not go")
        if peer in DEVICES:
            self._make(peer)
            self.device = peer

    @staticmethod
    def _rdma(*words):
        return subprocess.run(["timeout", "-k", "1", "20", "rdma", *words],
                              capture_output=True, text=True, check=False)

    def _make(self, peer):
        if peer == "siw":
            self._load_siw("crc" if self.crc == "on" else "plain")
        elif peer == "rxe":
            run("modprobe", "rdma_rxe")
        done = self._rdma("link", "add", peer + "0", "type", peer, "netdev", self.card)
        if done.returncode:
            raise Failure("no device: " + programs.last_line(done))
        if peer == "rxe":
            self._await_gid(peer)
        if peer == "weft":
            for path in glob.glob("/sys/class/infiniband/weft0/*/mpa_crc"):
                with open(path, "w", encoding="ascii") as file:
                    file.write("1" if self.crc == "on" else "0")

    def _await_gid(self, peer):
        """RoCE takes the address of the card for its own a moment later, and perftest dies
        of it if it comes before."""
        number = tuple(map(int, address(self.role, self.card).split(".")))
        wanted = "ffff:%02x%02x:%02x%02x" % number
        end = time.monotonic() + GID_WAIT
        while time.monotonic() < end:
            for at in range(GIDS):
                path = "/sys/class/infiniband/%s0/ports/1/gids/%d" % (peer, at)
                with open(path, encoding="ascii") as file:
                    if file.read().strip().endswith(wanted):
                        return
            time.sleep(0.02)
        raise Failure("the device has no address")

    def _load_siw(self, kind):
        """siw's CRC is a constant: one module requires it, the other never asks."""
        if getattr(self, "siw", None) == kind:
            return
        if os.path.isdir("/sys/module/siw"):
            run("rmmod", "siw")
        run("modprobe", "-q", "libcrc32c", check=False)
        run("insmod", os.path.join(self.siw_dir, kind, "siw.ko"))
        self.siw = kind

    # --- programs ---

    def start_server(self, words, number, tcp):
        """Its handle, once it listens."""
        server = programs.Server(words, number, tcp)
        server.__enter__()
        handle = next(self.numbers)
        self.servers[handle] = server
        return handle

    def server_said(self, handle):
        return self.servers[handle].said()

    def kill_server(self, handle):
        self.servers[handle].kill()

    def signal_server(self, handle, name):
        os.killpg(self.servers[handle].process.pid, signal.Signals[name])

    def end_server(self, handle, kind):
        """kind: the name of the exception its client ended with, or None."""
        self.servers.pop(handle).__exit__(kind, None, None)

    def spin(self, on):
        """A process that never lets go of the CPU, unless it is taken from it."""
        if self.spinner:
            self.spinner.kill()
            self.spinner.wait()
            self.spinner = None
        if on:
            # pylint: disable=consider-using-with
            self.spinner = subprocess.Popen(["sh", "-c", "while :; do :; done"])

    @staticmethod
    def nvme_offer(kind, where):
        """A disk for the other host, until nvme_withdraw()."""
        storage.withdraw()
        storage.offer(kind, where)

    @staticmethod
    def nvme_withdraw():
        storage.withdraw()

    def busy(self):
        return programs.busy_seconds()

    def run(self, *words, timeout=30, check=True):
        return run(*words, timeout=timeout, check=check)

    def finish(self):
        """The requester will not ask for anything more."""
        self.over.set()

    def program(self, name):
        """The path of one of our own programs."""
        if name not in self.programs:
            self.programs[name] = {"roundtrip": roundtrip.build}[name]()
        return self.programs[name]

    def end(self):
        self.spin(False)
        for server in self.servers.values():
            server.kill()
        self.set_device(None)
        for module in ("siw", "rdma_rxe"):
            if os.path.isdir("/sys/module/" + module):
                subprocess.run(["timeout", "20", "rmmod", module], check=False)
