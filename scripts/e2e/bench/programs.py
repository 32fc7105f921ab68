# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Programs in pairs: a server, a client, and a deadline for both."""

import itertools
import os
import re
import signal
import subprocess
import tempfile
import time

# Emulated CPUs are slow: one factor stretches every deadline.
SLOW = float(os.environ.get("BENCH_SLOW", "1"))
_ports = itertools.cycle(range(20000, 29000))


class Failure(Exception):
    """No figure; the text says why. A calm one may be had by trying again."""

    def __init__(self, text, again=False):
        super().__init__(text)
        self.again = again


def port():
    """One that has not been used lately."""
    return next(_ports)


def run(*words, timeout=30, check=True, silent=False):
    """A command's output; a silent one has nothing to complain of."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=timeout * SLOW)
    except subprocess.TimeoutExpired:
        raise Failure("%s: no end after %d s" % (words[0], timeout * SLOW)) from None
    if check and done.returncode:
        raise Failure("%s: status %d: %s" % (words[0], done.returncode, last_line(done)))
    if silent and done.stderr:
        raise Failure("%s: %s" % (words[0], done.stderr.split("\n")[0]))
    return done.stdout


def on_cpu(number):
    """In front of a command: it stays on that CPU, if there is one."""
    return ("taskset", "-c", str(number)) if number < os.cpu_count() else ()


def last_line(done):
    lines = [line for line in (done.stdout + done.stderr).split("\n") if line.strip(" -")]
    return lines[-1].strip() if lines else "it said nothing"


def _tcp_listens(number):
    wanted = ":%04X" % number
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(path, encoding="ascii") as file:
            for line in file:
                words = line.split()
                if words[3] == "0A" and words[1].endswith(wanted):
                    return True
    return False


def _rdma_listens(number):
    shown = subprocess.run(["rdma", "resource", "show", "cm_id"], capture_output=True, text=True)
    return re.search(r"state LISTEN .*:%d\b" % number, shown.stdout) is not None


def busy_seconds():
    """CPU time of the whole machine: whatever works for a message is counted. All that is
    not idle is busy; ticks, which the other columns are counted in, are too coarse."""
    with open("/proc/uptime", encoding="ascii") as file:
        up, idle = map(float, file.read().split())
    return up * os.cpu_count() - idle


class Server:
    """Runs while its client does; its end is awaited, or forced."""

    def __init__(self, words, number, tcp=True):
        self.words, self.number = words, number
        self.listens = _tcp_listens if tcp else _rdma_listens

    def __enter__(self):
        # pylint: disable=consider-using-with
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(self.words, stdout=self.log, stderr=self.log,
                                        start_new_session=True)
        end = time.monotonic() + 10 * SLOW
        while not self.listens(self.number):
            if self.process.poll() is not None or time.monotonic() > end:
                self.kill()
                raise Failure("the server does not listen: " + self.said())
            time.sleep(0.02)
        return self

    def said(self):
        self.log.seek(0)
        lines = [line.strip() for line in self.log if line.strip(" -\n")]
        return lines[-1] if lines else "it said nothing"

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            pass

    def __exit__(self, kind, *_):
        try:
            self.process.wait(0 if kind else 5 * SLOW)
        except subprocess.TimeoutExpired:
            pass
        self.kill()
        self.log.close()
