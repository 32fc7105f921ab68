# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The functions of a tree of C files in kernel style, and what they call.

No compiler and no kernel headers: what is found is what the text says. A
definition is a head that starts in column 0 and a body between a '{' and a '}'
in column 0, which scripts/check-format sees to. Of '#ifdef __KERNEL__' the
kernel's half is read; of all other conditions both, since each is built for
some kernel.

A name means the function of the same file, else the inline function of a
header, else the one function of that name that is not static. A macro with
parameters stands for the calls in its text.

Usage: python3 scripts/lib/csource.py     self-test
"""

import pathlib
import re
import sys
import tempfile

STRING = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
COMMENT_OR_STRING = re.compile(r"/\*.*?\*/|//[^\n]*|" + STRING, re.S)
DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w+)((?:[^\n\\]|\\.|\\\n)*)", re.M)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+([<"][^>"\n]+)', re.M)
DEFINITION = re.compile(r"^([A-Za-z_][^;{}]*\))\s*\n\{\n(.*?)^\}", re.M | re.S)
CALL = re.compile(r"(->|\.)?\b([A-Za-z_]\w*)\s*\(")
# A name that is handed on: an argument, a value assigned or returned, a choice.
MENTION = re.compile(r"(?:(?<=[(,=&?:{])|\breturn\b)\s*([A-Za-z_]\w*)(?=\s*[,;:?)}])")
DECLARATION = re.compile(r"^[ \t]*(?!return\b|goto\b|else\b|case\b)(?:\w+[ \t]+)+\**"
                         r"(\w+(?:\[[^;]*)?[ \t]*[;=,][^;]*)", re.M)
INNER = re.compile(r"\([^()]*\)")
MACRO = re.compile(r"\s*(\w+)\([^)]*\)(.*)", re.S)
ANNOTATIONS = {"__acquires", "__releases", "__must_hold", "__attribute__"}
WORDS = {"if", "while", "for", "switch", "return", "sizeof", "typeof", "__typeof__", "case"}


def without_comments(text):
    """Strings and lines are kept."""
    def blank(match):
        found = match.group()
        return found if found[0] in "\"'" else "\n" * found.count("\n") or " "
    return COMMENT_OR_STRING.sub(blank, text)


def definitions_of(code):
    """(head, body) of each function in @code, which is without comments."""
    return [(head.split("\n\n")[-1], body) for head, body in DEFINITION.findall(code)]


def definitions_below(root):
    """(path, text without comments, name, head, body) of each function of the C files there."""
    for path in paths_below(root):
        code = without_comments(path.read_text(encoding="utf-8"))
        for head, body in definitions_of(code):
            yield path, code, name_of(head)[0], head, body


def paths_below(root):
    """Every C file, but for what a build has made."""
    return sorted(p for p in pathlib.Path(root).rglob("*.[ch]")
                  if not {"generated", "build"} & set(p.relative_to(root).parts)
                  and not p.name.endswith(".mod.c"))


class Function:
    """@calls by name, @fields called through a pointer in a struct, @mentions handed on."""

    def __init__(self, path, name, static, params, body):
        self.path, self.name, self.static = path, name, static
        self.calls, self.fields = calls_of(body)
        self.mentions = set(MENTION.findall(body)) - locals_of(params, body)

    def __repr__(self):
        return f"{self.path}:{self.name}"


class File:
    """@code: without comments; @data: what is outside of functions; @includes: '"a/b.h', '<c.h'."""

    def __init__(self, path, text):
        self.path = path
        self.code = without_comments(text)
        self.includes = INCLUDE.findall(self.code)
        self.macros, self.functions = {}, {}
        text = self._without_directives(re.sub(STRING, '""', self.code))
        for head, body in definitions_of(text):
            self._define(head, body)
        self.data = DEFINITION.sub("", text)

    def _without_directives(self, text):
        kept, at, stack = [], 0, []
        for match in DIRECTIVE.finditer(text):
            if True not in stack:
                kept.append(text[at:match.start()])
            at = match.end()
            self._directive(match.group(1), match.group(2), stack)
        return "".join(kept + [text[at:]])

    def _directive(self, word, rest, stack):
        """@stack: of each condition, does it hide this? None: both halves are read."""
        if word in ("if", "ifdef", "ifndef"):
            stack.append(word == "ifndef" if rest.split() == ["__KERNEL__"] else None)
        elif word == "else" and stack[-1] is not None:
            stack[-1] = not stack[-1]
        elif word == "endif":
            stack.pop()
        elif word == "define" and True not in stack:
            macro = MACRO.match(rest)
            if macro:
                self.macros[macro.group(1)] = macro.group(2)

    def _define(self, head, body):
        name, params = name_of(head)
        function = Function(self.path, name, bool(re.search(r"\bstatic\b", head)), params, body)
        twin = self.functions.setdefault(name, function)
        if twin is not function:    # the other half of a condition
            twin.calls |= function.calls
            twin.fields |= function.fields
            twin.mentions |= function.mentions


def open_of(text, close):
    """Where the parenthesis opens that closes at @close."""
    depth = 0
    for at in range(close, -1, -1):
        depth += {")": 1, "(": -1}.get(text[at], 0)
        if not depth:
            return at
    raise ValueError(f"no parenthesis opens: {text}")


def name_of(head):
    """Name and parameters of a definition. 'static int HANDLER(X)(int a)' defines HANDLER(X)."""
    while True:
        at = open_of(head, len(head) - 1)
        params, before = head[at:], head[:at].rstrip()
        if before.endswith(")"):
            first = open_of(before, len(before) - 1)
            return re.search(r"\w+$", before[:first]).group() + before[first:], params
        name = re.search(r"\w+$", before).group()
        if name not in ANNOTATIONS:
            return name, params
        head = before[:-len(name)].rstrip()


def calls_of(body):
    calls, fields = set(), set()
    for through, name in CALL.findall(body):
        if through:
            fields.add(name)
        elif name not in WORDS:
            calls.add(name)
    return calls, fields


def locals_of(params, body):
    """Parameters and variables, which hide functions of the same name."""
    found = set(re.findall(r"\w+", params))
    for names in DECLARATION.findall(body):
        found.update(re.findall(r"(?:^|,)\s*\**(\w+)", flat(names)))
    return found


def flat(text):
    """Without what stands in parentheses."""
    while INNER.search(text):
        text = INNER.sub("", text)
    return text


class Source:
    """All C files below @root, by their path from there."""

    def __init__(self, root):
        self.files = {}
        for path in paths_below(root):
            name = path.relative_to(root).as_posix()
            self.files[name] = File(name, path.read_text(encoding="utf-8"))
        self._inlines, self._globals, self._macros = {}, {}, {}
        for file in self.files.values():
            self._macros.update(file.macros)
            for function in file.functions.values():
                if function.path.endswith(".h"):
                    self._inlines.setdefault(function.name, []).append(function)
                elif not function.static:
                    self._globals.setdefault(function.name, []).append(function)

    def functions(self):
        return [f for file in self.files.values() for f in file.functions.values()]

    def named(self, spec):
        """The one function 'name' or 'file.c:name', wherever that file lies."""
        file, _, name = spec.rpartition(":")
        found = [f for f in self.functions() if f.name == name
                 and (not file or f"/{f.path}".endswith(f"/{file}"))]
        if len(found) != 1:
            raise LookupError(f"'{spec}' names {len(found)} functions {found or ''}".rstrip())
        return found[0]

    def resolve(self, path, name):
        """What @name means in the file @path; None: nothing of this tree."""
        own = self.files[path].functions.get(name)
        found = [own] if own else self._inlines.get(name) or self._globals.get(name) or []
        if len(found) > 1:
            raise LookupError(f"{path}: '{name}' may be any of {found}")
        return found[0] if found else None

    def _meant(self, path, names, seen):
        """Functions of the tree, and names of what is outside of it."""
        functions, others = set(), set()
        for name in names:
            function = self.resolve(path, name)
            if function:
                functions.add(function)
                continue
            others.add(name)
            macro = self.files[path].macros.get(name) or self._macros.get(name)
            if macro and name not in seen:
                more = self._meant(path, calls_of(macro)[0], seen | {name})
                functions |= more[0]
                others |= more[1]
        return functions, others

    def calls(self, function):
        """Functions of the tree that @function calls by name, itself apart."""
        return self._meant(function.path, function.calls, set())[0] - {function}

    def outside(self, function):
        """Names that @function calls and the tree does not define."""
        return self._meant(function.path, function.calls, set())[1]

    def handed_on(self, function):
        """Functions of the tree whose address @function hands on."""
        return {f for f in (self.resolve(function.path, n) for n in function.mentions) if f}

    def in_tables(self, path):
        """Functions that a struct outside of functions names in the file @path."""
        found = (self.resolve(path, n) for n in MENTION.findall(flat(self.files[path].data)))
        return {f for f in found if f}


def components(graph):
    """Strongly connected components of {node: nodes}, each a sorted list."""
    index, low, stack, out = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            out.append(sorted(stack[at:]))
            del stack[at:]

    sys.setrecursionlimit(10000)
    for node in sorted(graph):
        if node not in index:
            visit(node)
    return out


STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\}", re.M | re.S)
MEMBER = re.compile(r"^\t+(?:const )?(?:struct (\w+) )?(?:[^;]*?\W)??"
                    r"(?:\(\*(\w+)\)\(|DECLARE_\w+\((\w+)|(\w+)(?:\[[^;]*)?(?: ____\w+)?;)", re.M)
POINTS = re.compile(r"struct (\w+) ([^;]*?)(?=[;)]|$|, (?:const |struct|\w+ \**\w))")


def types_of(head, body):
    """The structs that the parameters and variables of a function are, or point to."""
    found = {}
    for text in [name_of(head)[1]] + [
            flat(t) for t in re.findall(r"^\t+(?:static |const )*struct [^;]*;", body, re.M)]:
        for kind, names in POINTS.findall(re.sub(r"\s+", " ", text)):
            found.update((n, kind) for n in re.findall(r"(?:^|,)\s*\**(\w+)", names))
    return found


class Structs:
    """The structs below @root: @members of each, and @types of those that are structs, too."""

    def __init__(self, root):
        self.members, self.types = {}, {}
        for path in paths_below(root):
            for name, body in STRUCT.findall(path.read_text(encoding="utf-8")):
                for kind, *names in MEMBER.findall(without_comments(body)):
                    self.members.setdefault(name, set()).add("".join(names))
                    if kind:
                        self.types[name, "".join(names)] = kind

    def resolve(self, expression, types):
        """'&conn->cm->directs.lock': 'weft_directs.lock', or 'lock' if the struct is unknown."""
        first, *members = re.findall(r"\w+", re.sub(r"\[[^]]*\]", "", expression))
        kind = types.get(first)
        for member in members[:-1]:
            kind = self.types.get((kind, member))
        return f"{kind}.{members[-1]}" if kind and members else ([first] + members)[-1]


EXAMPLE = {"low/a.h": """\
#ifndef A_H
#define A_H

/* not_called(1) */
#ifdef __KERNEL__

static inline int kernel_half(void)
{
	return outside(1);
}

#else

static inline int hosted_half(void)
{
	return 0;
}

#endif

#define WRAP(x) wrapped(x, "no_call(")

#endif
""", "low/a.c": """\
#include "low/a.h"

#include <linux/types.h>

static int twice(int x)
{
	return x;
}

int wrapped(int x, const char *text)
	__acquires(lock)
{
	return twice(x) ?: WRAP(x);
}

static int HANDLER(ONE)(int x)
{
	return WRAP(x) + kernel_half();
}
""", "high/b.c": """\
#include "low/a.h"

TRACE_EVENT(handed, TP_PROTO(int x));

struct ops ops = { .run = run };

#ifdef HAVE_X

static int run(int twice)
{
	int done = walk(twice, handed), run = sizeof(done);

	return ops->start(run, done);
}

#else

static int run(int x)
{
	return wrapped(x, "");
}

#endif

static int handed(int x)
{
	run(x);
	return x ? run : x;
}
"""}


def write_tree(root, files):
    for name, text in files.items():
        path = pathlib.Path(root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def selftest():
    with tempfile.TemporaryDirectory() as root:
        write_tree(root, EXAMPLE)
        source = Source(root)

    def names(functions):
        return sorted(map(str, functions))
    assert names(source.functions()) == [
        "high/b.c:handed", "high/b.c:run", "low/a.c:HANDLER(ONE)", "low/a.c:twice",
        "low/a.c:wrapped", "low/a.h:kernel_half"], source.functions()
    run, handed = source.named("run"), source.named("b.c:handed")
    assert source.files["low/a.c"].includes == ['"low/a.h', "<linux/types.h"]
    assert names(source.calls(source.named("HANDLER(ONE)"))) == ["low/a.c:wrapped",
                                                                "low/a.h:kernel_half"]
    assert names(source.calls(run)) == ["low/a.c:wrapped"] and run.fields == {"start"}
    assert source.outside(run) == {"walk"}
    assert names(source.handed_on(run)) == ["high/b.c:handed"], run.mentions
    assert names(source.handed_on(handed)) == ["high/b.c:run"]
    assert names(source.in_tables("high/b.c")) == ["high/b.c:run"]
    assert types_of("int f(struct a *a, const struct b *b, int x)",
                    "\tstruct c c, *d = get(a, b);\n") == {"a": "a", "b": "b", "c": "c", "d": "c"}
    assert components({1: {2}, 2: {3, 4}, 3: {1}}) == [[4], [1, 2, 3]]
    try:
        source.named("no_such")
        raise AssertionError("a name that does not exist was found")
    except LookupError:
        pass


if __name__ == "__main__":
    selftest()
