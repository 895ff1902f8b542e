#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the real #includes against the floors that CMakeLists.txt declares.

Usage: check_floors.py [ROOT]
A module or sub-module (such as eval/sets) may include itself and its declared DEPS, which are on lower floors. A test
or a fixture in a folder testing/ may include all of MODULE and its dependencies; only tests and fixtures may include
fixtures. A program of apps/ may include its DEPS and their dependencies. Nothing in src/ may include apps/. Only
MODULE may include MODULE/internal/. Includes of headers must not form a cycle. A sub-module has at most 32 files.
Prints "file:line: error: ..." for each violation and then exits with 1.
"""
from __future__ import annotations

import collections
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import sources  # noqa: E402

CALL = re.compile(r"^[ \t]*(module|program|module_group)\(\s*([\w/-]+)([^)]*)\)", re.MULTILINE)
KEYWORDS = {"FLOOR", "DEPS", "LIBS", "DIR", "TEST_LIBS"}
APPS_FLOOR = 99
MOST_FILES = 32  # in a sub-module, without tests


class Declared:
    """A module or program as CMakeLists.txt declares it."""

    def __init__(self, kind: str, name: str, arguments: str, line: int) -> None:
        fields: dict[str, list[str]] = {}
        key = None
        for word in arguments.split():
            if word in KEYWORDS:
                key = word
                fields[key] = []
            elif key:
                fields[key].append(word)
        self.kind, self.name, self.line = kind, name, line
        self.floor = int(fields["FLOOR"][0]) if kind == "module" else APPS_FLOOR
        self.group = name.split("/")[0]
        self.deps = set(fields.get("DEPS", []))
        self.folder = fields["DIR"][0] if kind == "program" else name


def read_declared(root: Path) -> list[Declared]:
    text = (root / "CMakeLists.txt").read_text(encoding="utf-8")
    text = re.sub(r"#[^\n]*", lambda m: " " * len(m.group()), text)
    return [Declared(m.group(1), m.group(2), m.group(3), text.count("\n", 0, m.start()) + 1)
            for m in CALL.finditer(text)]


def check_declared(declared: list[Declared]) -> Iterator[str]:
    modules = {d.name: d for d in declared if d.kind == "module"}
    for d in declared:
        if d.kind != "module":
            continue
        for dep in sorted(d.deps):
            place = f"CMakeLists.txt:{d.line}: error: {d.name}"
            if dep not in modules:
                yield f"{place} depends on '{dep}', which is no module"
            elif modules[dep].floor >= d.floor:
                yield (f"{place} (floor {d.floor}) depends on {dep} (floor {modules[dep].floor}); "
                       "only lower floors are allowed")


def closure(names: Iterable[str], modules: dict[str, Declared]) -> set[str]:
    """The modules and all their dependencies; a group stands for its sub-modules."""
    seen, todo = set(), list(names)
    while todo:
        name = todo.pop()
        todo += [n for n in modules if n.startswith(f"{name}/") and n not in seen]
        if name in modules and name not in seen:
            seen.add(name)
            todo.extend(modules[name].deps)
    return seen


class Tree:
    """The includes of src/ and apps/, judged file by file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.declared = read_declared(root)
        self.modules = {d.name: d for d in self.declared if d.kind == "module"}
        self.groups = {d.name: d.deps for d in self.declared if d.kind == "module_group"}
        self.apps = {d.folder: d for d in self.declared if d.kind == "program"}
        self.files = [path for path in sources.tracked(root)
                      if path.parts[0] in ("src", "apps") and path.suffix in sources.CPP]

    def problems(self) -> Iterator[str]:
        yield from check_declared(self.declared)
        edges: dict[str, set[str]] = {}
        for path in self.files:
            text = (self.root / path).read_text(encoding="utf-8", errors="replace")
            edges[str(path)] = set()
            for line, target, quoted in sources.includes(text):
                found = self.resolve(path, target)
                if found:
                    edges[str(path)].add(str(found))
                if quoted:
                    fault = self.judge(path, target, found)
                    if fault:
                        yield f"{path}:{line}: error: {fault}"
        for group in sources.cycles(edges):
            yield f"{group[0]}:1: error: these files include each other: {', '.join(group)}"
        sizes: collections.Counter[str] = collections.Counter()
        for path in self.files:
            if path.parts[0] != "src":
                continue
            name = self.module_of(path)
            if name is None:
                yield f"{path}:1: error: its folder is no module of CMakeLists.txt"
            elif not path.stem.endswith("_test"):
                sizes[name] += 1
        for name, count in sorted(sizes.items()):
            if "/" in name and count > MOST_FILES:
                yield f"src/{name}:1: error: has {count} files; split it (at most {MOST_FILES})"

    def module_of(self, path: Path) -> str | None:
        """The module or sub-module that a file of src/ belongs to."""
        folder = "/".join(path.parts[1:-1])
        while folder and folder not in self.modules:
            folder = folder.rpartition("/")[0]
        return folder or None

    def resolve(self, path: Path, target: str) -> Path | None:
        """The file of this tree that an include names, relative to the root."""
        for base in (Path("src"), Path("apps"), path.parent):
            if (self.root / base / target).is_file():
                return base / target
        return None

    def judge(self, path: Path, target: str, found: Path | None) -> str | None:
        """The fault of an include, or None."""
        if found is None:
            return f'"{target}" is no file of src/ or apps/ (system headers take <>)'
        own_app, to_app = path.parts[0] == "apps", found.parts[0] == "apps"
        own = path.parts[1] if own_app else self.module_of(path) or path.parts[1]
        other = found.parts[1] if to_app else self.module_of(found) or found.parts[1]
        for_tests = path.stem.endswith("_test") or "testing" in path.parts
        if "testing" in found.parts and not for_tests:
            return f'"{target}" is a fixture: only tests include it'
        if (own_app, own) == (to_app, other):
            return None
        if "internal" in found.parts[2:-1]:
            return f'"{target}" is internal to {other}'
        if to_app:
            return f'"{target}" belongs to a program; only apps/{other} may include it'
        if own_app:
            return self.judge_program(own, other)
        if for_tests:
            return self.judge_test(own, other)
        return self.judge_module(own, other)

    def judge_test(self, own: str, other: str) -> str | None:
        group = self.modules[own].group if own in self.modules else own
        if other in closure([group, *self.groups.get(group, ())], self.modules):
            return None
        return f"{group} does not depend on {other}: tests include what their module depends on"

    def judge_program(self, folder: str, other: str) -> str | None:
        program = self.apps.get(folder)
        if program is None:
            return f"apps/{folder} is no program of CMakeLists.txt"
        if other in closure(program.deps, self.modules):
            return None
        return f"{program.name} does not depend on {other}: add it to its DEPS in CMakeLists.txt"

    def judge_module(self, own: str, other: str) -> str | None:
        if own not in self.modules or other not in self.modules:
            return f"{own} or {other} is no module of CMakeLists.txt"
        here, there = self.modules[own], self.modules[other]
        if there.floor >= here.floor:
            return (f"{own} (floor {here.floor}) must not include {other} (floor {there.floor}): "
                    "only lower floors")
        if other not in here.deps:
            return f"{own} does not declare {other}: add it to its DEPS in CMakeLists.txt"
        return None


def main(arguments: list[str]) -> int:
    root = Path(arguments[0] if arguments else Path(__file__).resolve().parent.parent)
    tree = Tree(root)
    problems = list(tree.problems())
    for problem in problems:
        print(problem)
    inside = sum("/" in name for name in tree.modules)
    print(f"floors: {len(tree.files)} files, {len(tree.modules) - inside} modules, {inside} sub-modules, "
          f"{len(problems)} problem(s)")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
