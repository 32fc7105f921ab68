# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The tests of rdma-core: what is in its modules, and what expected.tsv says of it.

Each class stands here under the name of its module and its own. Each test, a function of such a
class, has two attributes: "due", the outcomes that are right, and "rows", for its title.
"""

import importlib
import importlib.util
import os
import pathlib
import subprocess
import sys
import unittest

MODULES = """test_pd test_device test_cq test_cqex test_cq_events test_qp test_qpex test_fork
test_mr test_rdmacm test_addr test_atomic test_odp test_parent_domain test_relaxed_ordering
test_shared_pd test_flow test_rss_traffic test_tag_matching test_srq""".split()
LISTED_VERSION = 44
# Of that version and those after it.
AT_LEAST = 170
DUE = {
    "pass": ("must pass", ["passed"]),
    "skip": ("must skip", ["skipped"]),
    "fail": ("cannot pass", ["failed", "skipped"]),
    "without-tcp": ("cannot pass", ["failed", "skipped"]),
    "too-early": ("need not pass", ["failed", "passed"]),
    None: ("must not fail", ["skipped", "passed"]),
}
# Without TCP a request does not complete before the peer has placed it.
if os.environ.get("LOOPBACK", "0") != "0":
    DUE["without-tcp"] = DUE["too-early"] = DUE["pass"]


def version():
    found = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "python3-pyverbs"], check=True,
                           stdout=subprocess.PIPE, encoding="ascii").stdout
    return int(found.partition(".")[0])


def in_range(versions, which):
    """Is that one of "-44", "45-", "45-60", or of all, ""?"""
    first, _, last = versions.partition("-")
    return int(first or 0) <= which <= int(last or sys.maxsize)


def expected(which):
    """{"test_qp.query_rc_qp": "pass"}, of that version."""
    found = {}
    for line in (pathlib.Path(__file__).parent / "expected.tsv").read_text("ascii").splitlines():
        if not line.startswith("#"):
            word, module, names = line.split("\t")[:3]
            result, _, versions = word.partition("@")
            if in_range(versions, which):
                found.update(dict.fromkeys((f"{module}.{name}" for name in names.split()), result))
    return found


def classes(module):
    return [value for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, unittest.TestCase)
            and value.__module__ == module.__name__]


def collect():
    """(name, class) of all classes, their tests marked."""
    which = version()
    listed, others = expected(which), "skip" if which == LISTED_VERSION else None
    seen = set()
    for module in filter(lambda name: importlib.util.find_spec(f"tests.{name}"), MODULES):
        for case in classes(importlib.import_module(f"tests.{module}")):
            for name in unittest.TestLoader().getTestCaseNames(case):
                key, function = f"{module}.{name[5:]}", getattr(case, name)
                word, function.due = DUE[listed.get(key, others)]
                function.rows = (f"{module} {word}",)
                seen.add(key)
            yield f"{module}.{case.__name__}", case
    missing = {key for key, result in listed.items() if result not in ("fail", "without-tcp")} - seen
    assert not missing, f"listed, but not in the suite: {sorted(missing)}"
    assert len(seen) >= AT_LEAST, f"the suite has {len(seen)} tests only"


globals().update(collect())
