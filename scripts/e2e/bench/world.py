# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The devices under test. Each has a dummy netdev; bytes travel through TCP (UDP for rxe)
over lo, whose MTU is the one that counts. The peer loopback is a device of weft whose two ends
hand segments over without TCP."""

import os
import subprocess

from programs import Failure, Server, busy_seconds, run

NUMBER = {"weft": 1, "siw": 2, "rxe": 3, "loopback": 4, "tcp": 1}
DEVICES = [peer for peer in NUMBER if peer != "tcp"]
RXE_MTU = 4200	# the largest with which it still works


class World:
    """MTU and CRC as asked for; a device that cannot be made is a reason, not an end."""

    def __init__(self, siw_dir):
        self.siw_dir = siw_dir
        self.state = (None, None)
        self.absent = {}
        run("modprobe", "-q", "dummy")
        for peer in DEVICES:
            run("ip", "link", "add", self.netdev(peer), "type", "dummy")
            run("ip", "link", "set", self.netdev(peer), "up")
            run("ip", "addr", "add", self.address(peer) + "/24", "dev", self.netdev(peer))

    @staticmethod
    def netdev(peer):
        return "bd%d" % NUMBER[peer]

    @staticmethod
    def address(peer):
        return "10.90.%d.1" % NUMBER[peer]

    @staticmethod
    def server(words, number, tcp=True):
        """The other end of a program is on the same machine."""
        return Server(words, number, tcp)

    @staticmethod
    def busy():
        """CPU seconds of the machines that take part, by part of the figure."""
        return {"-": busy_seconds()}

    def need(self, peer):
        if peer in self.absent:
            raise Failure(self.absent[peer])

    def change(self, mtu, crc):
        """Bring the world into that state."""
        if (mtu, crc) == self.state:
            return
        self.close()
        run("ip", "link", "set", "lo", "mtu", mtu)
        self.absent = {}
        for peer in DEVICES:
            try:
                self._make(peer, mtu, crc)
            except Failure as why:
                self.absent[peer] = "no device: %s" % why
        self.state = (mtu, crc)

    def _make(self, peer, mtu, crc):
        if peer == "siw":
            self._load_siw("crc" if crc == "on" else "plain")
        elif peer == "rxe":
            run("modprobe", "rdma_rxe")
            mtu = str(min(int(mtu), RXE_MTU))
        run("ip", "link", "set", self.netdev(peer), "mtu", mtu)
        driver = "weft" if peer == "loopback" else peer
        run("rdma", "link", "add", peer + "0", "type", driver, "netdev", self.netdev(peer))
        if driver == "weft":
            self._set(peer, "mpa_crc", crc == "on")
            self._set(peer, "loopback", peer == "loopback")

    @staticmethod
    def _set(peer, attribute, value):
        path = "/sys/class/infiniband/%s0/params/%s" % (peer, attribute)
        with open(path, "w", encoding="ascii") as file:
            file.write("%d" % value)

    def _load_siw(self, kind):
        """siw's CRC is a constant: one module requires it, the other never asks."""
        run("modprobe", "-q", "libcrc32c", check=False)
        if os.path.isdir("/sys/module/siw"):
            run("rmmod", "siw")
        run("insmod", os.path.join(self.siw_dir, kind, "siw.ko"))

    def close(self):
        """Without devices; siw's is known not to go while a program has it open."""
        for peer in DEVICES:
            if os.path.isdir("/sys/class/infiniband/%s0" % peer):
                subprocess.run(["timeout", "-k", "1", "20", "rdma", "link", "delete", peer + "0"],
                               check=False)
        self.state = (None, None)

    def end(self):
        self.close()
        for module in ("siw", "rdma_rxe"):
            subprocess.run(["timeout", "20", "modprobe", "-qr", module], check=False)
            subprocess.run(["timeout", "20", "rmmod", module], check=False,
                           stderr=subprocess.DEVNULL)
        run("ip", "link", "set", "lo", "mtu", "65536")
