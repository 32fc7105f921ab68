# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The tests of rdma-core: what is in its modules, and what expected.tsv says of it.

Each class stands here under the name of its module and its own. Each test, a function of such a
class, has two attributes: "due", the outcomes that are right, and "rows", for its title.
"""

import importlib
import os
import pathlib
import subprocess
import unittest

MODULES = """test_pd test_device test_cq test_cqex test_cq_events test_qp test_qpex test_fork
test_mr test_rdmacm test_addr test_atomic test_odp test_parent_domain test_relaxed_ordering
test_shared_pd test_flow test_rss_traffic test_tag_matching""".split()
LISTED_VERSION = "44"
# Of that version and those after it.
AT_LEAST = 170
DUE = {
    "pass": ("must pass", ["passed"]),
    "skip": ("must skip", ["skipped"]),
    "fail": ("cannot pass", ["failed", "skipped"]),
    "without-tcp": ("cannot pass", ["failed", "skipped"]),
    None: ("must not fail", ["skipped", "passed"]),
}
# Without TCP a request does not complete before the peer has placed it.
if os.environ.get("LOOPBACK", "0") != "0":
    DUE["without-tcp"] = DUE["pass"]


def expected():
    """{"test_qp.query_rc_qp": "pass"}"""
    found = {}
    for line in (pathlib.Path(__file__).parent / "expected.tsv").read_text("ascii").splitlines():
        if not line.startswith("#"):
            result, module, names = line.split("\t")[:3]
            found.update(dict.fromkeys((f"{module}.{name}" for name in names.split()), result))
    return found


def version():
    return subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "python3-pyverbs"], check=True,
                          stdout=subprocess.PIPE, encoding="ascii").stdout.partition(".")[0]


def classes(module):
    return [value for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, unittest.TestCase)
            and value.__module__ == module.__name__]


def collect():
    """(name, class) of all classes, their tests marked."""
    listed, others = expected(), "skip" if version() == LISTED_VERSION else None
    seen = set()
    for module in MODULES:
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
