# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Drives the verbs agent (progs/agent) through its pipes."""

import fcntl
import os
import select
import subprocess
import time

F_SETPIPE_SZ = 1031


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
                                        bufsize=0)
        self.to, self.come = (pipe.fileno() for pipe in (self.process.stdin, self.process.stdout))
        # What it says while the test does something else must not hold it up.
        fcntl.fcntl(self.come, F_SETPIPE_SZ, 1 << 20)
        os.set_blocking(self.to, False)
        self.rest = b""
        self.lines = []
        self.answers = []
        self.ended = False
        self.log = []

    # No thread reads beside the test: to change between two takes longer than most commands.
    def _read(self):
        data = os.read(self.come, 1 << 18)
        self.ended = not data
        *texts, self.rest = (self.rest + data).split(b"\n")
        for text in texts:
            text = text.decode()
            kind, _, rest = text.partition(" ")
            self.log.append(text)
            if kind in ("ok", "err"):
                self.answers.append((kind, rest))
            else:
                fields = parse(rest.split(" "))
                fields["kind"] = kind
                self.lines.append(fields)

    def _write(self, data):
        while data:
            come, to, _ = select.select([self.come], [self.to], [])
            if come:
                self._read()
                if self.ended:
                    raise NotSeen("the agent ended")
            if to:
                data = data[os.write(self.to, data):]

    def look(self):
        """Take in what it has said by now."""
        while not self.ended and select.select([self.come], [], [], 0)[0]:
            self._read()

    def _wait(self, done, timeout):
        end = time.monotonic() + timeout * self.slow
        self.look()
        while True:
            result = done()
            if result is not None:
                return result
            if self.ended:
                raise NotSeen("the agent ended")
            left = end - time.monotonic()
            if left <= 0:
                return None
            if select.select([self.come], [], [], left)[0]:
                self._read()

    def cmds(self, verbs, timeout=20):
        """Run commands, (verb, fields) each, one after the other; their answers' fields."""
        texts = [" ".join([verb] + ["%s=%s" % pair for pair in fields.items()
                                    if pair[1] is not None]) for verb, fields in verbs]
        self.log += ["> " + text for text in texts]
        self._write("".join(text + "\n" for text in texts).encode())
        answers = [self._wait(lambda: self.answers.pop(0) if self.answers else None, timeout)
                   for _ in texts]
        for text, answer in zip(texts, answers):
            if answer is None:
                raise NotSeen("no answer to '%s'" % text)
            if answer[0] == "err":
                raise AgentError(answer[1])
        return [parse(rest.split(" ")) for _, rest in answers]

    def cmd(self, verb, timeout=20, **fields):
        """Run a command; its answer's fields."""
        return self.cmds([(verb, fields)], timeout)[0]

    def take(self, kind, **match):
        """The first line of a kind that matches, of those that have come."""
        for at, fields in enumerate(self.lines):
            if fields["kind"] == kind and all(fields.get(k) == v for k, v in match.items()):
                return self.lines.pop(at)
        return None

    def wait(self, kind, timeout=5, **match):
        """The first line of a kind that matches, taken out."""
        found = self._wait(lambda: self.take(kind, **match), timeout)
        if found is None:
            raise NotSeen("no %s %s; there are: %s" % (kind, match, self.lines[-8:]))
        return found

    def none(self, kind, **match):
        """By now there is no such line."""
        self.cmd("sync")
        found = self.take(kind, **match)
        if found:
            raise NotSeen("must not be: %s" % found)

    def count(self, kind, **match):
        self.cmd("sync")
        return sum(f["kind"] == kind and all(f.get(k) == v for k, v in match.items())
                   for f in self.lines)

    def forget(self, k=None):
        """Drop what came for a connection, or everything."""
        self.look()
        self.lines = [f for f in self.lines if k is not None and f.get("k") != k]

    def close(self):
        self.process.stdin.close()
        try:
            return self.process.wait(20 * self.slow)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return None
