# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What the suites have in common that pytest runs: KTAP, and how a test ends."""

import os
import re
import shlex
import time
import traceback

import pytest

COMPLAINTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vm", "complaints.tsv")
# So many failures in a row have one cause, and the suite ends.
FAILURES_IN_A_ROW = 12
# A test that takes longer says so.
LONG = 5


def pytest_addoption(parser):
    group = parser.getgroup("weft")
    group.addoption("--dev", default="weft0", help="the device")
    group.addoption("--addr", help="its IPv4 address")
    group.addoption("--addr6", help="its IPv6 address")
    group.addoption("--own", help="the IPv4 address of the wire peer")
    group.addoption("--agent", type=shlex.split, help="the command that starts progs/agent")
    group.addoption("--slow", type=int, default=1, help="stretches every deadline")
    group.addoption("--first-cases", action="store_true",
                    help="of a test with a table of cases, run the first only")


def pytest_configure(config):
    config.pluginmanager.register(Ktap(), "ktap")


def pytest_itemcollected(item):
    """-k finds the ids of requirements, too."""
    item.extra_keyword_matches.update(getattr(item.function, "rows", ()))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    if config.getoption("first_cases"):
        first = {}
        for item in items:
            first.setdefault(item.function, item)
        items[:] = first.values()


def title(item):
    rows = " ".join(getattr(item.function, "rows", ()))
    cases = "".join(" [%s]" % (case,) for case in item.callspec.params.values()) \
        if hasattr(item, "callspec") else ""
    return "%s: %s%s%s" % (item.path.parent.name, rows and rows + ": ",
                           item.originalname.removeprefix("test_").replace("_", " "), cases)


class Ktap:
    """Prints the plan and one line for each test, with what went wrong as comments."""

    def __init__(self):
        self.number = self.failures = 0
        self.reports = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report):
        return report.outcome, "", ""

    def pytest_collectreport(self, report):
        if report.failed:
            comment(report.longreprtext)
            print("Bail out! %s cannot be read" % report.nodeid, flush=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        if not session.config.option.collectonly:
            print("1..%d" % len(session.items), flush=True)

    def pytest_runtest_logreport(self, report):
        self.reports.append(report)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        self.reports = []
        began = time.monotonic()
        yield
        self.tell(item, time.monotonic() - began)

    def tell(self, item, took):
        failed = [report for report in self.reports if report.failed]
        skipped = [report.longrepr[2] for report in self.reports if report.skipped]
        self.number += 1
        self.failures = self.failures + 1 if failed else 0
        print("%sok %d - %s%s" % (
            "not " if failed else "", self.number, title(item),
            " # SKIP " + skipped[0].replace("Skipped: ", "") if skipped and not failed else ""))
        for report in failed:
            comment(report.longreprtext)
        if failed:
            for heading, text in self.reports[-1].sections:
                comment("%s:\n%s" % (heading, text))
        else:
            print(*re.findall("^#.*\n", self.reports[-1].capstdout, re.M), sep="", end="")
        if took > LONG:
            print("#   took %.1f s" % took)
        if self.failures == FAILURES_IN_A_ROW:
            item.session.shouldfail = "%d failures in a row" % self.failures
        if item.session.shouldfail:
            print("Bail out! nothing works any more: %s" % item.session.shouldfail)
        print(end="", flush=True)


def comment(text):
    for line in text.rstrip().split("\n"):
        print("#   " + line[:400])


class KernelLog:
    """Lines of the kernel since the last look."""

    def __init__(self):
        try:
            self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self.fd, 0, os.SEEK_END)
        except OSError:
            self.fd = -1
        with open(COMPLAINTS, encoding="ascii") as rows:
            self.pattern = re.compile("|".join(row.split("\t")[0] for row in rows if row[0] != "#"))

    def complaints(self):
        found = []
        while self.fd >= 0:
            try:
                text = os.read(self.fd, 8192).decode(errors="replace")
            except BlockingIOError:
                break
            except OSError:
                continue
            # Whose race it is shows in the whole report, which the host reads: scripts/vm/verdict.sh.
            if "KCSAN" not in text and self.pattern.search(text):
                found.append(text.partition(";")[2].strip())
        return found


@pytest.fixture(scope="session")
def kernel_log():
    return KernelLog()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    if call.when == "call" and "world" in item.funcargs:
        item.agent_log = item.funcargs["world"].agent.log[-30:]
        item.failed = (yield).get_result().failed
    else:
        yield


@pytest.fixture
def aftermath(request, kernel_log):
    """Takes each step that is due after a test, whatever became of the one before. When
    anything failed, nothing that the agent holds can be trusted: it is started anew."""
    def take(world, *steps):
        faults = []
        for step in steps:
            try:
                step()
            except Exception:  # pylint: disable=broad-except
                faults.append("after the test, in %s:\n%s" % (step.__name__,
                                                              traceback.format_exc()))
        complaints = kernel_log.complaints()
        if complaints:
            faults.append("the kernel complained:\n" + "\n".join(complaints))
        if not faults and not request.node.failed:
            return
        request.node.add_report_section("teardown", "agent", "\n".join(request.node.agent_log))
        try:
            world.start_agent()
        except Exception:  # pylint: disable=broad-except
            faults.append(traceback.format_exc())
            request.session.shouldfail = "the agent does not start"
        if faults:
            pytest.fail("\n".join(faults), pytrace=False)
    return take
