# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Queue memory is charged to the memory cgroup of the process that asks."""

import contextlib
import os

from agent import Agent
from world import Skip, at_least, run, test

CGROUPS = "/sys/fs/cgroup"


def controllers():
    if not os.path.exists(CGROUPS + "/cgroup.controllers"):
        run("mount", "-t", "cgroup2", "cgroup2", CGROUPS)
    with open(CGROUPS + "/cgroup.controllers", encoding="ascii") as file:
        return file.read().split()


class Group:
    """A memory cgroup with a limit."""

    def __init__(self, megabytes):
        if "memory" not in controllers():
            raise Skip("this kernel has no memory cgroups")
        self.path = CGROUPS + "/weft-operator"
        with open(CGROUPS + "/cgroup.subtree_control", "w", encoding="ascii") as file:
            file.write("+memory")
        os.mkdir(self.path)
        with open(self.path + "/memory.max", "w", encoding="ascii") as file:
            file.write("%dM" % megabytes)

    def used(self):
        with open(self.path + "/memory.current", encoding="ascii") as file:
            return int(file.read())

    def kernel(self):
        """Bytes of the kernel's, but for page tables."""
        with open(self.path + "/memory.stat", encoding="ascii") as file:
            stat = dict(line.split() for line in file)
        return int(stat["kernel"]) - int(stat["pagetables"])

    def agent(self, w):
        enter = "echo $$ >%s/cgroup.procs; exec %s" % (self.path, w.args.agent[0])
        agent = Agent(["/bin/sh", "-c", enter], w.slow)
        agent.cmd("dev", name=w.dev)
        return agent

    def close(self):
        os.rmdir(self.path)


@contextlib.contextmanager
def agent_in_a_group(w, megabytes=200):
    """An agent of its own, and the group that its memory is charged to."""
    group = Group(megabytes)
    agent = group.agent(w)
    try:
        yield agent, group
    finally:
        agent.close()
        group.close()


@test
def queue_memory_is_charged_to_the_process(w):
    with agent_in_a_group(w) as (agent, group):
        before = group.used()
        cqe = agent.cmd("cq", name="large", depth=100000)["cqe"]
        grown = group.used() - before
        at_least(grown, cqe * 32, "bytes charged for %d entries" % cqe)
        agent.cmd("dropcq", name="large")
        w.eventually(lambda: group.used() - before < grown // 4, "they are given back")


# A queue of more than half a page has a page of its own.
@test
def a_page_of_each_queue_is_charged_to_the_process(w):
    with agent_in_a_group(w) as (agent, group):
        queues, before = 1000, group.kernel()
        for k in range(queues):
            agent.cmd("cq", name="cq%d" % k, depth=64, manual=1)
        w.eventually(lambda: group.kernel() - before >= queues * 4096, "they are charged")
        grown = group.kernel() - before
        for k in range(queues):
            agent.cmd("dropcq", name="cq%d" % k)
        w.eventually(lambda: group.kernel() - before < grown // 4, "they are given back")


# A private copy of each request stands beside what the process posts: 64 bytes and inline data.
@test
def private_requests_are_charged_to_the_process(w):
    with agent_in_a_group(w) as (agent, group):
        agent.cmd("pd", name="pd")
        agent.cmd("cq", name="cq", depth=16)
        k = agent.cmd("resolve", addr=w.addr, port=w.port)["k"]
        before = group.used()
        entries = agent.cmd("qp", k=k, pd="pd", cq="cq", sq=16384, rq=1, sge=1,
                            inline=96)["sq"]
        grown = group.used() - before
        at_least(entries, 16384, "entries")
        at_least(grown, entries * 2 * (64 + 96), "bytes charged for %d entries" % entries)
        agent.cmd("destroy", k=k)
        w.eventually(lambda: group.used() - before < grown // 4, "they are given back")


# A region has a list of its pages: 16 bytes for each.
@test
def lists_of_pages_are_charged_to_the_process(w):
    with agent_in_a_group(w) as (agent, group):
        agent.cmd("pd", name="pd")
        before, length = group.kernel(), 64 << 20
        agent.cmd("mr", name="mr", pd="pd", len=length, access="l")
        listed = length // 4096 * 16
        # The kernel adds up what its CPUs count now and then.
        w.eventually(lambda: group.kernel() - before >= listed, "they are charged")
        agent.cmd("dereg", name="mr")
        w.eventually(lambda: group.kernel() - before < listed // 4, "they are given back")
