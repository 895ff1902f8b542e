#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the house figures, so that drift is seen, and fails on the hard limits.

Usage: figures.py [--build DIR] [ROOT]
Lengths of files and functions of src/ and apps/ (tests apart), include cycles and, from DIR's
.ninja_log, the units that were slow to compile. Hard limits: a file over 800 lines, headers'
median over 100, sources' over 200, functions' p99 over 80, any include cycle.
"""
from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import sources  # noqa: E402

FILE_LIMIT, HEADER_MEDIAN, SOURCE_MEDIAN, FUNCTION_P99 = 800, 100, 200, 80
SLOW_SECONDS = 12
SCOPES = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b")
ACCESS = re.compile(r"\b(?:public|private|protected)\s*:")
NOT_FUNCTIONS = re.compile(r"(?:^|[;{}])\s*(?:if|for|while|switch|do|else|try|catch|return)\b")


def percentile(values: Iterable[int], share: int) -> int:
    """The smallest value that at least `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * share // 100) - 1)] if ordered else 0


def functions(text: str) -> list[tuple[int, int]]:
    """The (line, length) of each function body with its head, by matching braces."""
    clean = sources.blank(text)
    clean = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", lambda m: re.sub(r"[^\n]", " ", m.group()), clean,
                   flags=re.MULTILINE)
    out: list[tuple[int, int]] = []
    stack: list[tuple[bool | None, int]] = []
    head, inside = 0, 0
    for match in re.finditer(r"[{};]", clean):
        at = match.start()
        if match.group() == "{":
            before = clean[head:at]
            if inside == 0 and initialises_member(before):
                stack.append((None, at))
                continue
            opened = inside == 0 and opens_function(before)
            start = head + len(before) - len(before.lstrip())
            stack.append((opened, start))
            inside += opened
        elif match.group() == "}" and stack:
            is_function, start = stack.pop()
            if is_function is None:
                continue
            inside -= is_function
            if is_function:
                first = clean.count("\n", 0, start) + 1
                out.append((first, clean.count("\n", 0, at) + 2 - first))
        head = at + 1
    return out


def initialises_member(head: str) -> bool:
    """Whether a brace belongs to a constructor's list: "S(int a) : x_{a}"."""
    head = ACCESS.sub(" ", head).replace("::", "  ").rstrip()
    return re.search(r"\).*:", head, re.DOTALL) is not None and head[-1:] not in (")", "}", ":")


def opens_function(head: str) -> bool:
    """Whether the text before a brace, outside functions, is the head of a function."""
    head = ACCESS.sub(" ", head).strip()
    if not head or "(" not in head or head.endswith("=") or NOT_FUNCTIONS.search(head):
        return False
    head = re.sub(r"\btemplate\s*<(?:[^<>]|<[^<>]*>)*>", " ", head)
    before_arguments = head[:head.index("(")]
    return not SCOPES.search(before_arguments) and "=" not in re.sub(
        r"operator\s*[=!<>+\-*/%&|^]+", "", before_arguments)


class Files:
    """The lengths of one kind of file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lengths: dict[str, int] = {}
        self.functions: dict[str, int] = {}

    def add(self, path: str, text: str) -> None:
        self.lengths[path] = text.count("\n")
        for line, length in functions(text):
            self.functions[f"{path}:{line}"] = length


def table_row(name: str, values: dict[str, int]) -> str:
    lengths = list(values.values())
    longest = max(values, key=values.__getitem__, default="-")
    return (f"{name:<22}{len(lengths):>7}{percentile(lengths, 50):>8}{percentile(lengths, 90):>6}"
            f"{percentile(lengths, 99):>6}{max(lengths, default=0):>6}  {longest}")


def read_tree(root: Path) -> tuple[dict[str, Files], list[list[str]]]:
    kinds = {name: Files(name) for name in ("headers", "sources", "tests", "device")}
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
        kinds[kind].add(str(path), text)
        edges[str(path)] = {
            str(base / target) for _, target, _ in sources.includes(text)
            for base in (Path("src"), Path("apps"), path.parent) if (root / base / target).is_file()}
    return kinds, sources.cycles(edges)


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


def breaches(kinds: dict[str, Files], cycles: list[list[str]]) -> Iterator[str]:
    for kind in kinds.values():
        for path, length in sorted(kind.lengths.items()):
            if length > FILE_LIMIT:
                yield f"{path}:1: error: {length} lines (limit {FILE_LIMIT}): split it"
    for name, limit in (("headers", HEADER_MEDIAN), ("sources", SOURCE_MEDIAN)):
        median = percentile(list(kinds[name].lengths.values()), 50)
        if median > limit:
            yield f"{name}: error: median of {median} lines (limit {limit})"
    lengths = {**kinds["headers"].functions, **kinds["sources"].functions}
    p99 = percentile(list(lengths.values()), 99)
    if p99 > FUNCTION_P99:
        yield f"functions: error: p99 of {p99} lines (limit {FUNCTION_P99})"
    for group in cycles:
        yield f"{group[0]}:1: error: include cycle: {', '.join(group)}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Print the house figures; fail on hard limits.")
    parser.add_argument("--build", type=Path, default=None, help="build folder with .ninja_log")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent)
    options = parser.parse_args(arguments)
    kinds, cycles = read_tree(options.root)
    print(f"{'lines':<22}{'count':>7}{'median':>8}{'p90':>6}{'p99':>6}{'max':>6}  longest")
    for kind in kinds.values():
        print(table_row(kind.name, kind.lengths))
    code = {**kinds["headers"].functions, **kinds["sources"].functions}
    print(table_row("functions", code))
    print(table_row("functions of tests", kinds["tests"].functions))
    for place, length in sorted(code.items(), key=lambda item: -item[1]):
        if length > FUNCTION_P99:
            print(f"  long function: {place} ({length} lines)")
    total = sum(kinds["headers"].lengths.values()) + sum(kinds["sources"].lengths.values())
    share = sum(kinds["tests"].lengths.values()) / total if total else 0
    print(f"tests / code: {share:.2f} lines; include cycles: {len(cycles)}")
    if options.build:
        for seconds, name in slow_units(options.build):
            print(f"  slow unit: {seconds:.0f} s {name}")
    found = list(breaches(kinds, cycles))
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
