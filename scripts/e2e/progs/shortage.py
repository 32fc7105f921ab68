# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Memory that is short in the kernel, on purpose."""

import os
import unittest


class Shortage:
    """No allocation of a size succeeds, or the first @times of them do not, if the kernel can
    do that."""

    FAULT = "/sys/kernel/debug/failslab"
    # What makes them fail is written last, and undone first.
    SETTINGS = {"probability": ("100", "0"), "times": ("%d", "1"), "interval": ("1", "1"),
                "verbose": ("0", "0"), "ignore-gfp-wait": ("N", "Y"), "cache-filter": ("Y", "N")}

    def __init__(self, cache, times=-1):
        self.times = times
        self.cache = "/sys/kernel/slab/%s/failslab" % cache
        if not (os.path.exists(self.FAULT) and os.path.exists(self.cache)):
            raise unittest.SkipTest("this kernel cannot fail an allocation on purpose")

    @staticmethod
    def write(path, text):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)

    def __enter__(self):
        self.write(self.cache, "1")
        for name, (on, _) in reversed(self.SETTINGS.items()):
            self.write("%s/%s" % (self.FAULT, name), on % self.times if "%" in on else on)
        return self

    def is_over(self):
        """Have that many failed?"""
        with open("%s/times" % self.FAULT, encoding="ascii") as file:
            return int(file.read()) == 0

    def __exit__(self, *exc):
        for name, (_, off) in self.SETTINGS.items():
            self.write("%s/%s" % (self.FAULT, name), off)
        self.write(self.cache, "0")
