#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints figures about the code, so that people notice drift, and fails on hard limits.

Usage: figures.py [--build DIR] [ROOT]
The figures are lengths of files and functions in src/ and apps/ (tests separately), include cycles and, from DIR's
.ninja_log, the units that were slow to compile. It fails if a file has more than 800 lines, if the medians are over
100 lines for headers or 200 for sources, if the p99 is over 80 lines for functions or 200 for classes (longer ones are
listed), or if includes form a cycle.

The length of a class is the length of its definition plus the lengths of its member functions that are defined
elsewhere, so a class with many small methods in several files counts as large. A nested class also counts in the
outer one. A class inside a function counts in that function.
"""
from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
import sources  # noqa: E402

FILE_LIMIT, HEADER_MEDIAN, SOURCE_MEDIAN, FUNCTION_P99 = 800, 100, 200, 80
CLASS_P99 = 200  # lines; longer classes are listed
SLOW_SECONDS = 12
SCOPES = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b")
ACCESS = re.compile(r"\b(?:public|private|protected)\s*:")
CLASS = re.compile(r"^(?:class|struct|union)\s+(?:\[\[[^\]]*\]\]\s*|alignas\s*\([^()]*\)\s*)*([\w:]+)")
MEMBER = re.compile(r"(\w+)\s*(?:<[^<>]*>\s*)?::\s*(?:~?\w+|operator\b[^(]*)\s*\($")
NOT_FUNCTIONS = re.compile(r"(?:^|[;{}])\s*(?:if|for|while|switch|do|else|try|catch|return)\b")


def percentile(values: Iterable[int], share: int) -> int:
    """The smallest value that at least `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * share // 100) - 1)] if ordered else 0


class Block(NamedTuple):
    """A function or class: its head, the head's first line, and its number of lines including the head."""
    is_class: bool
    head: str
    line: int
    length: int


def blocks(text: str) -> Iterator[Block]:
    """The functions and the classes outside functions, by matching braces, in the order of their ends."""
    clean = sources.blank(text)
    clean = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", lambda m: re.sub(r"[^\n]", " ", m.group()), clean,
                   flags=re.MULTILINE)
    stack: list[tuple[str, int, int]] = []  # kind, begin and end of the head
    start, inside = 0, 0
    for match in re.finditer(r"[{};]", clean):
        at = match.start()
        if match.group() == "{":
            before = clean[start:at]
            if inside == 0 and initialises_member(before):
                stack.append(("member", at, at))
                continue
            kind = kind_of(before) if inside == 0 else "other"
            stack.append((kind, start + len(before) - len(before.lstrip()), at))
            inside += kind == "function"
        elif match.group() == "}" and stack:
            kind, begin, end = stack.pop()
            if kind == "member":
                continue
            inside -= kind == "function"
            if kind != "other":
                first = clean.count("\n", 0, begin) + 1
                yield Block(kind == "class", clean[begin:end], first, clean.count("\n", 0, at) + 2 - first)
        start = at + 1


def kind_of(head: str) -> str:
    """What a brace outside functions opens, judged by the text before it: "class", "function" or "other"."""
    if class_name(head):
        return "class"
    return "function" if opens_function(head) else "other"


def functions(text: str) -> list[tuple[int, int]]:
    """The (line, length) of each function body with its head."""
    return [(block.line, block.length) for block in blocks(text) if not block.is_class]


def without_template(head: str) -> str:
    return re.sub(r"\btemplate\s*<(?:[^<>]|<[^<>]*>)*>", " ", ACCESS.sub(" ", head)).strip()


def class_name(head: str) -> str:
    """The class that a head defines, without its scope; "" if it defines none."""
    found = CLASS.match(without_template(head))
    return found.group(1).split("::")[-1] if found else ""


def member_of(head: str) -> str:
    """The class that a function defined outside it belongs to ("int S::f()" -> "S"), or ""."""
    found = MEMBER.search(without_template(head).partition("(")[0] + "(")
    return found.group(1) if found else ""


class Classes:
    """Class definitions, and member functions defined outside them, over all files."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], tuple[int, int]] = {}  # (file, name) -> (line, length)
        self.members: list[tuple[str, str, int]] = []  # file, class, length

    def add(self, path: str, found: list[Block]) -> None:
        for block in found:
            if block.is_class:
                self.found[path, class_name(block.head)] = (block.line, block.length)
            elif member_of(block.head):
                self.members.append((path, member_of(block.head), block.length))

    def lengths(self) -> dict[str, int]:
        """By "file:line name"; a member function goes to the class of its name that is nearest."""
        by_name: dict[str, list[str]] = {}
        for path, name in self.found:
            by_name.setdefault(name, []).append(path)
        total = {key: length for key, (_, length) in self.found.items()}
        for path, name, length in self.members:
            if name in by_name:
                total[max(by_name[name], key=lambda other: nearness(path, other)), name] += length
        return {f"{path}:{self.found[path, name][0]} {name}": length
                for (path, name), length in total.items()}


def nearness(path: str, other: str) -> tuple[bool, bool, int]:
    """How close two files are: the same file, source and header, or the number of folders they share."""
    a, b = Path(path), Path(other)
    shared = 0
    for x, y in zip(a.parts[:-1], b.parts[:-1]):
        if x != y:
            break
        shared += 1
    return path == other, a.with_suffix("") == b.with_suffix(""), shared


def initialises_member(head: str) -> bool:
    """Whether a brace belongs to a constructor's list: "S(int a) : x_{a}"."""
    head = ACCESS.sub(" ", head).replace("::", "  ").rstrip()
    return re.search(r"\).*:", head, re.DOTALL) is not None and head[-1:] not in (")", "}", ":")


def opens_function(head: str) -> bool:
    """Whether the text before a brace, outside functions, is the head of a function."""
    head = ACCESS.sub(" ", head).strip()
    if not head or "(" not in head or head.endswith("=") or NOT_FUNCTIONS.search(head):
        return False
    head = without_template(head)
    before_arguments = head[:head.index("(")]
    return not SCOPES.search(before_arguments) and "=" not in re.sub(
        r"operator\s*[=!<>+\-*/%&|^]+", "", before_arguments)


class Files:
    """The lengths of one kind of file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lengths: dict[str, int] = {}
        self.functions: dict[str, int] = {}

    def add(self, path: str, text: str, found: list[Block]) -> None:
        self.lengths[path] = text.count("\n")
        for block in found:
            if not block.is_class:
                self.functions[f"{path}:{block.line}"] = block.length


def table_row(name: str, values: dict[str, int]) -> str:
    lengths = list(values.values())
    longest = max(values, key=values.__getitem__, default="-")
    return (f"{name:<22}{len(lengths):>7}{percentile(lengths, 50):>8}{percentile(lengths, 90):>6}"
            f"{percentile(lengths, 99):>6}{max(lengths, default=0):>6}  {longest}")


class Tree(NamedTuple):
    """The figures of all files of the tree."""
    kinds: dict[str, Files]
    classes: dict[str, int]  # of production code
    cycles: list[list[str]]

    def code(self) -> dict[str, int]:
        """The lengths of the functions of production code."""
        return {**self.kinds["headers"].functions, **self.kinds["sources"].functions}


def read_tree(root: Path) -> Tree:
    kinds = {name: Files(name) for name in ("headers", "sources", "tests", "device")}
    classes = Classes()
    edges = {}
    for path in sources.tracked(root):
        if path.suffix not in sources.CPP or path.parts[0] in ("build", "python"):
            continue
        if path.parts[:2] == ("tests", "attacks"):  # candidates, some of them broken on purpose
            continue
        text = (root / path).read_text(encoding="utf-8", errors="replace")
        if path.parts[0] in ("tests", "bench") or path.stem.endswith("_test"):
            kind = "tests"
        elif path.suffix in (".cu", ".cuh"):
            kind = "device"
        else:
            kind = "headers" if path.suffix == ".h" else "sources"
        found = list(blocks(text))
        kinds[kind].add(str(path), text, found)
        if kind in ("headers", "sources"):
            classes.add(str(path), found)
        edges[str(path)] = {
            str(base / target) for _, target, _ in sources.includes(text)
            for base in (Path("src"), Path("apps"), path.parent) if (root / base / target).is_file()}
    return Tree(kinds, classes.lengths(), sources.cycles(edges))


def slow_units(build: Path) -> list[tuple[float, str]]:
    """The (seconds, target) of compiled units that took longer than they should."""
    log = build / ".ninja_log"
    if not log.is_file():
        return []
    last = {}
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        fields = line.split("\t")
        if len(fields) >= 4 and fields[3].endswith(".o"):
            last[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return sorted(((s, name) for name, s in last.items() if s > SLOW_SECONDS), reverse=True)


def breaches(tree: Tree) -> Iterator[str]:
    for kind in tree.kinds.values():
        for path, length in sorted(kind.lengths.items()):
            if length > FILE_LIMIT:
                yield f"{path}:1: error: {length} lines (limit {FILE_LIMIT}): split it"
    for name, limit in (("headers", HEADER_MEDIAN), ("sources", SOURCE_MEDIAN)):
        median = percentile(list(tree.kinds[name].lengths.values()), 50)
        if median > limit:
            yield f"{name}: error: median of {median} lines (limit {limit})"
    for name, values, limit in (("functions", tree.code(), FUNCTION_P99),
                                ("classes", tree.classes, CLASS_P99)):
        p99 = percentile(list(values.values()), 99)
        if p99 > limit:
            yield f"{name}: error: p99 of {p99} lines (limit {limit})"
    for group in tree.cycles:
        yield f"{group[0]}:1: error: include cycle: {', '.join(group)}"


def long_ones(kind: str, values: dict[str, int], limit: int) -> Iterator[str]:
    for place, length in sorted(values.items(), key=lambda item: -item[1]):
        if length > limit:
            yield f"  long {kind}: {place} ({length} lines)"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Print the house figures; fail on hard limits.")
    parser.add_argument("--build", type=Path, default=None, help="build folder with .ninja_log")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent)
    options = parser.parse_args(arguments)
    tree = read_tree(options.root)
    kinds = tree.kinds
    print(f"{'lines':<22}{'count':>7}{'median':>8}{'p90':>6}{'p99':>6}{'max':>6}  longest")
    for kind in kinds.values():
        print(table_row(kind.name, kind.lengths))
    print(table_row("functions", tree.code()))
    print(table_row("functions of tests", kinds["tests"].functions))
    print(table_row("classes", tree.classes))
    for line in (*long_ones("function", tree.code(), FUNCTION_P99),
                 *long_ones("class", tree.classes, CLASS_P99)):
        print(line)
    total = sum(kinds["headers"].lengths.values()) + sum(kinds["sources"].lengths.values())
    share = sum(kinds["tests"].lengths.values()) / total if total else 0
    print(f"tests / code: {share:.2f} lines; include cycles: {len(tree.cycles)}")
    if options.build:
        for seconds, name in slow_units(options.build):
            print(f"  slow unit: {seconds:.0f} s {name}")
    found = list(breaches(tree))
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
