# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Build a module or the provider with one file changed, in seconds.

scripts/vm/copy-build leaves a build that is done. What kbuild ran for each object stands beside
it (.NAME.o.cmd), with the files that the object depends on. So a change of a file takes these
commands and two links: neither make, which looks at each file of the kernel's, nor modpost.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess

COMMAND = re.compile(r"^savedcmd_(\S+) := (.*)$", re.M)
WEFT = "drivers/weft/weft.ko"
PLUGIN = "libweft-rdmav*.so"


class Failed(Exception):
    """It does not compile."""


class Build:
    """A copy of a kernel's build of the tree, and the staging tree made from it."""

    def __init__(self, top, kernel, where):
        self.src, self.root, self.saved = where / "src", where / "root", where / "saved"
        said = subprocess.run([str(top / "scripts/vm/copy-build"), kernel, str(where)], check=True,
                              stdout=subprocess.PIPE, text=True).stdout.split("\n")
        self.kernel, release = pathlib.Path(said[0]), said[1]
        self.installed = self.root / "usr/lib/modules" / release / "updates/weft.ko"
        self.plugins = next(self.root.glob("usr/lib/*/libibverbs/" + PLUGIN)).parent.relative_to(
            self.root)
        self.plugin, self.clean = where / "plugin", where / "plugin-clean"
        self.commands, self.users = {}, {}
        for path in self.src.glob("**/.*.cmd"):
            self._read(path.read_text(encoding="utf-8"))
        self.have = {}
        shutil.rmtree(self.saved, ignore_errors=True)
        self.saved.mkdir()
        self.plugin_made = self.linked = False
        self.made = set()

    def _read(self, text):
        found = COMMAND.search(text)
        if not found:
            return
        target, command = found.groups()
        self.commands[target] = command.replace("$(pound)", "#").replace("$$", "$")
        for word in re.findall(r"^(?:source_\S+ :=)? *(\S+\.[ch])\b", text, re.M):
            if not word.startswith("/"):
                self.users.setdefault(os.path.normpath(word), set()).add(target)

    def _run(self, log, command):
        print("$ " + command[-200:], file=log, flush=True)
        return subprocess.run(command, shell=True, cwd=self.src, stdin=subprocess.DEVNULL,
                              stdout=log, stderr=subprocess.STDOUT, check=False).returncode

    def _save(self, name):
        """A copy of a file, which restore() puts back."""
        kept = self.saved / name.replace("/", "+")
        if not kept.exists():
            shutil.copy2(self.src / name, kept)

    def restore(self):
        """As it was."""
        for kept in self.saved.iterdir():
            shutil.copy2(kept, self.src / kept.name.replace("+", "/"))
            kept.unlink()
        if WEFT in self.made:
            self._install(self.src / WEFT, self.installed)
        self.made.clear()
        if self.linked:
            _copy(self.clean, self.plugin)
            self._install_plugin()
            self.linked = False

    def change(self, name, text):
        """Write a file, of which there is a copy until restore()."""
        self._save(name)
        (self.src / name).write_text(text, encoding="utf-8")

    def _wanted(self, name):
        """The undefined symbols of a module."""
        said = subprocess.run(["nm", "-u", str(self.src / name)], check=True,
                              capture_output=True, text=True).stdout
        return set(said.split()) - {"U"}

    def _exported(self, symbol):
        if not self.have:
            text = (self.kernel / "Module.symvers").read_text(encoding="utf-8")
            self.have = {line.split("\t")[1]: True for line in text.splitlines()}
        return symbol in self.have

    def module(self, name, changed, log):
        """Link a module (drivers/weft/weft.ko) with what depends on the changed file."""
        if name in self.made:
            return self.src / name
        self.made.add(name)
        layer = name.split("/", maxsplit=1)[0] + "/"
        objects = sorted(o for o in self.users.get(changed, ()) if o.startswith(layer))
        if not objects:
            return self.src / name
        stem = name[:-len(".ko")]
        before = self._wanted(name)
        for target in objects + [stem + ".o", name]:
            self._save(target)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            failed = list(pool.map(lambda o: self._run(log, self.commands[o]), objects))
        if any(failed):
            raise Failed("does not compile")
        for target in (stem + ".o", name):
            if self._run(log, self.commands[target]):
                raise Failed("does not link")
        for symbol in self._wanted(name) - before:
            if not self._exported(symbol):
                raise Failed("needs " + symbol)
        return self.src / name

    def install_module(self, changed, log):
        """For a guest that is started with the staging tree."""
        self._install(self.module(WEFT, changed, log), self.installed)

    def make_plugin(self, log):
        """The sources as they are; what depends on a changed one is compiled."""
        if subprocess.run(["make", "-j2", "BUILD=%s" % self.plugin, "CFLAGS=-O2 -g -Wno-error"],
                          cwd=self.src / "userspace-provider", check=False,
                          stdin=subprocess.DEVNULL, stdout=log,
                          stderr=subprocess.STDOUT).returncode:
            raise Failed("the provider does not compile")

    def prepare_plugin(self, log):
        """All of it, before anything is changed.

        From nothing: the sources keep the times of the build that they were copied from, and an
        object of another revision may be younger than they are.
        """
        shutil.rmtree(self.plugin, ignore_errors=True)
        self.make_plugin(log)
        _copy(self.plugin, self.clean)
        self.plugin_made = True

    def install_plugin(self, log):
        """For a guest that is started with the staging tree."""
        self.linked = True
        self.make_plugin(log)
        self._install_plugin()

    def _install_plugin(self):
        made = next(self.plugin.glob(PLUGIN))
        self._install(made, self.root / self.plugins / made.name)

    @staticmethod
    def _install(made, target):
        """Others have hard links to what is there."""
        target.unlink(missing_ok=True)
        shutil.copy2(made, target)


def _copy(source, target):
    subprocess.run(["rsync", "-a", "--delete", "%s/" % source, "%s/" % target], check=True)
