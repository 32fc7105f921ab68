# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Drives the verbs agent (progs/agent) through its pipes."""

import subprocess
import threading
import time


class AgentError(Exception):
    """The agent answered "err"."""

    def __init__(self, text):
        super().__init__(text)
        self.errno = int(text.split()[0])


class NotSeen(AssertionError):
    """What was waited for did not come."""


# Values that may look like a number and are none.
TEXT = ("hex", "pdata", "name")


def parse(words):
    fields = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not sign:
            continue
        try:
            fields[key] = value if key in TEXT else int(value, 0)
        except ValueError:
            fields[key] = value
    return fields


class Agent:
    """One agent process."""

    def __init__(self, argv, slow=1):
        self.slow = slow
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1)
        self.cond = threading.Condition()
        self.lines = []
        self.answers = []
        self.ended = False
        self.log = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for text in self.process.stdout:
            text = text.rstrip("\n")
            kind, _, rest = text.partition(" ")
            with self.cond:
                self.log.append(text)
                if kind in ("ok", "err"):
                    self.answers.append((kind, rest))
                else:
                    fields = parse(rest.split(" "))
                    fields["kind"] = kind
                    fields["at"] = time.monotonic()
                    self.lines.append(fields)
                self.cond.notify_all()
        with self.cond:
            self.ended = True
            self.cond.notify_all()

    def _wait(self, done, timeout):
        end = time.monotonic() + timeout * self.slow
        while True:
            result = done()
            if result is not None:
                return result
            if self.ended:
                raise NotSeen("the agent ended")
            left = end - time.monotonic()
            if left <= 0:
                return None
            self.cond.wait(left)

    def cmd(self, verb, timeout=20, **fields):
        """Run a command; its answer's fields."""
        text = " ".join([verb] + ["%s=%s" % pair for pair in fields.items()
                                  if pair[1] is not None])
        self.log.append("> " + text)
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        with self.cond:
            answer = self._wait(lambda: self.answers.pop(0) if self.answers else None, timeout)
        if answer is None:
            raise NotSeen("no answer to '%s'" % text)
        kind, rest = answer
        if kind == "err":
            raise AgentError(rest)
        return parse(rest.split(" "))

    def _take(self, kind, match):
        for at, fields in enumerate(self.lines):
            if fields["kind"] == kind and all(fields.get(k) == v for k, v in match.items()):
                return self.lines.pop(at)
        return None

    def wait(self, kind, timeout=5, **match):
        """The first line of a kind that matches, taken out."""
        with self.cond:
            found = self._wait(lambda: self._take(kind, match), timeout)
            if found is None:
                raise NotSeen("no %s %s; there are: %s" % (kind, match, self.lines[-8:]))
            return found

    def none(self, kind, **match):
        """By now there is no such line."""
        self.cmd("sync")
        with self.cond:
            found = self._take(kind, match)
        if found:
            raise NotSeen("must not be: %s" % found)

    def count(self, kind, **match):
        self.cmd("sync")
        with self.cond:
            return sum(f["kind"] == kind and all(f.get(k) == v for k, v in match.items())
                       for f in self.lines)

    def forget(self, k=None):
        """Drop what came for a connection, or everything."""
        with self.cond:
            self.lines = [f for f in self.lines if k is not None and f.get("k") != k]

    def close(self):
        self.process.stdin.close()
        try:
            return self.process.wait(20 * self.slow)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return None
