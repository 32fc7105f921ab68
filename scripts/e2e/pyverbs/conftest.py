# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""How rdma-core's tests find the device, and how what they come to is judged."""

import sys
from multiprocessing.process import BaseProcess
from unittest import mock

import pytest
from _pytest.runner import runtestprotocol
from args_parser import parser

# They look at the peer's memory as soon as a Write has completed, which on iWARP says that TCP has
# it (RFC 5040, 5.2). Where a page has to be paged in first, or the CPU that places the data serves
# others, the test may be faster.
TOO_EARLY = {"test_" + name for name in """odp_rc_rdma_write mr_rereg_access mw_type1 mw_type2
qp_ex_rc_rdma_write imported_rc_ex_rdma_write rdmacm_async_write""".split()}
ATTEMPTS = 10
# A test looks 150 times for the end of each of its processes, for a tenth of a second; one that
# fails anyway for so long:
IN_VAIN = 0.02


def pytest_configure(config):
    """GID 1 is the address: the tests connect most of their QPs by hand."""
    with mock.patch.object(sys, "argv", ["run_tests.py", "--dev", config.option.dev,
                                         "--port", "1", "--gid", "1", "-v"]):
        parser.parse_args()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A phase that ends as is due has passed; one of them must have."""
    report = (yield).get_result()
    if call.when == "setup":
        item.came = {}
    if not report.passed or call.when == "call":
        item.came[report.outcome] = report.longrepr[2] if report.skipped else ""
    due = item.function.due
    if report.outcome in due:
        report.outcome = "passed"
    if call.when == "teardown" and not item.came.keys() & set(due):
        report.outcome = "failed"
        report.longrepr = f"came: {item.came}; due: {' or '.join(due)}"


def join_in_vain(process, timeout=None):
    return JOIN(process, timeout and min(timeout, IN_VAIN))


JOIN = BaseProcess.join


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """What cannot pass is there for what becomes of the kernel."""
    if "failed" not in item.function.due:
        yield
        return
    with mock.patch.object(BaseProcess, "join", join_in_vain):
        yield


def pytest_runtest_protocol(item, nextitem):
    if item.name not in TOO_EARLY:
        return None
    for _ in range(ATTEMPTS):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if not any(report.failed for report in reports):
            break
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    return True
