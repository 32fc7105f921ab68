# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Rounds of jobs: each is measured, written down and told, with what is left by the pace
so far."""

import json
import os
import platform
import resource
import time

from programs import Failure
from samples import Writer

TRIES = 4		# of a run that printed a figure which cannot be
GIVE_UP = 2		# rounds without a figure before a job is not run any more


class Progress:
    """One line per figure, with what is left by the pace so far."""

    def __init__(self, total):
        self.total, self.done, self.began = total, 0, time.monotonic()

    def tell(self, job, text):
        self.done += 1
        used = time.monotonic() - self.began
        left = used / self.done * (self.total - self.done)
        print("[%3d %% %2d:%02d left] mtu %-15s crc %-3s %-20s %-4s %s" % (
            100 * self.done // self.total, left // 60, left % 60, job.mtu, job.crc,
            job.case.name, job.peer, text), flush=True)


def facts(options, cpus, **more):
    """What the page says of the run."""
    with open("/proc/cpuinfo", encoding="ascii") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return {"kernel": platform.release(), "cpus": cpus,
            "model": models[0] if models else "?", "rounds": options.rounds,
            "only": options.only, "date": time.strftime("%Y-%m-%d"), **more}


class Rounds:
    """A world, the tools by name, and the directory that the results go to. What fails is
    tried as often as tries says, and a figure that cannot be TRIES times."""

    def __init__(self, world, tools, directory, tries=1):
        self.world, self.tools, self.tries = world, tools, tries
        self.writer = Writer(os.path.join(directory, "samples.tsv"))
        self.failures = {}

    @staticmethod
    def prepare(directory, told):
        """Before there is a world: the facts, and the limits of processes."""
        with open(os.path.join(directory, "facts.json"), "w", encoding="utf-8") as file:
            json.dump(told, file)
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY,) * 2)
        resource.setrlimit(resource.RLIMIT_NOFILE, (65536, 65536))

    def measure(self, job):
        """The figures of one job."""
        attempt = 0
        while True:
            attempt += 1
            try:
                self.world.need(job.peer)
                return self.tools[job.case.tool](self.world, job)
            except Failure as why:
                if attempt >= (TRIES if why.again else self.tries):
                    raise

    def sample(self, job):
        if self.failures.get(job, 0) >= GIVE_UP:
            self.writer.add(job, "-", None, "given up")
            return "given up"
        try:
            figures = self.measure(job)
        except Failure as why:
            self.failures[job] = self.failures.get(job, 0) + 1
            self.writer.add(job, "-", None, str(why))
            return "FAILED: %s" % why
        for part, value in figures.items():
            self.writer.add(job, part, value)
        return "%.6g %s" % (figures["-"], job.case.unit)

    def run(self, rounds):
        """All of them: a list of jobs for each round."""
        progress = Progress(sum(map(len, rounds)))
        for turn, jobs in enumerate(rounds):
            print("# round %d of %d" % (turn + 1, len(rounds)), flush=True)
            for job in jobs:
                self.world.change(job.mtu, job.crc)
                progress.tell(job, self.sample(job))
        self.writer.close()
