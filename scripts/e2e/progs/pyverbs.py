#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Read what rdma-core's test suite printed (unittest -v): one line per test.

Usage: pyverbs.py LOG
Prints "test_qp.test_query_rc_qp pass", "... skip REASON", "... ERROR".
"""

import re
import sys

NAME = re.compile(r"^(test_\w+) \(tests\.(test_\w+)\.")
RESULT = re.compile(r"\.\.\. .*?(ok|skipped|ERROR|FAIL|expected failure)\b(.*)")


def results(path):
    """{"module.test": (result, remark)}; other output may stand in between."""
    found, current = {}, None
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            name = NAME.match(line)
            if name:
                current = f"{name.group(2)}.{name.group(1)}"
            result = RESULT.search(line)
            if current is None:
                continue
            if not result:
                # A warning may have torn "... " from its result.
                result = re.match(r"(ok|skipped|ERROR|FAIL)\b(.*)$", line)
            if result:
                found[current] = result.groups()
                current = None
    return found


def main(path):
    for test, (result, remark) in sorted(results(path).items()):
        print(test, {"ok": "pass", "skipped": "skip"}.get(result, result), remark)


if __name__ == "__main__":
    main(sys.argv[1])
