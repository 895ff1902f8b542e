# SPDX-License-Identifier: Apache-2.0
"""Code that the checks in tools/ share: lists the files, and reads C++ text without its comments."""
from __future__ import annotations

import re
import subprocess
from pathlib import Path

CPP = {".cpp", ".h", ".inc", ".cuh", ".cu"}


def tracked(root: Path) -> list[Path]:
    """The files that git tracks or would add, relative to root; without git, all files."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    result = subprocess.run(command, capture_output=True, check=False)
    if result.returncode == 0:
        names = {Path(name) for name in result.stdout.decode().split("\0") if name}
    else:
        names = {path.relative_to(root) for path in root.rglob("*")}
    return sorted(name for name in names if (root / name).is_file())


# Raw strings first, then comments, strings and character literals (not digit separators).
TOKENS = re.compile(
    r'R"(?P<tag>[^\s()\\]{0,16})\(.*?\)(?P=tag)"'
    r"|//(?:\\\n|[^\n])*"
    r"|/\*.*?\*/"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-zA-Z_])(?:[LuU]|u8)?'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)


def blank(text: str) -> str:
    """The text with comments and literals blanked, line breaks kept."""
    return TOKENS.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)


def includes(text: str) -> list[tuple[int, str, bool]]:
    """The (line, path, quoted) of each #include outside comments."""
    without = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.DOTALL)
    return [(without.count("\n", 0, m.start(2)) + 1, m.group(2), m.group(1) == '"')
            for m in INCLUDE.finditer(without)]


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Groups of nodes that reach each other, and single nodes that reach themselves (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[list[str]] = []
    for start in sorted(edges):
        if start in index:
            continue
        work = [(start, iter(sorted(edges[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in edges:
                    continue
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(sorted(edges[target]))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group: list[str] = []
                    while not group or group[-1] != node:
                        group.append(stack.pop())
                        on_stack.discard(group[-1])
                    if len(group) > 1 or node in edges[node]:
                        found.append(sorted(group))
    return found
