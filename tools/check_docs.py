#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the links of the Markdown files, and that the site's menu has every page.

Usage: check_docs.py [ROOT]
Every relative link must name a file of the tree, and its anchor must name a heading of that file (by GitHub's rule).
The menu of the site consists of the links in the sections of MENUS (docs/conf.py builds it), and it must name every
page of docs/. A page in docs/measurements must name every raw
file there. The check needs no network, because it does not follow links to other hosts.
"""
from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

sys.path.insert(0, str(Path(__file__).resolve().parent))
import sources  # noqa: E402

START = PurePosixPath("docs/index.md")
MENUS = (START, PurePosixPath("docs/measurements/README.md"), PurePosixPath("docs/reference/README.md"))
RAW = PurePosixPath("docs/measurements")
FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(\s*<?([^()\s<>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
HEADING = re.compile(r"^#{1,6} +(.*?) *#*$")
OTHER_HOST = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def without_code(text: str) -> list[str]:
    """The lines of a page; lines in fenced blocks are empty."""
    out, fence = [], ""
    for line in text.splitlines():
        mark = FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip("`~"):
                fence = ""
            line = ""
        elif mark:
            fence, line = mark[1], ""
        out.append(line)
    return out


def slug(heading: str) -> str:
    """GitHub's anchor of a heading."""
    shown = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")


def anchors(lines: list[str]) -> set[str]:
    found: set[str] = set()
    for line in lines:
        heading = HEADING.match(line)
        if not heading:
            continue
        name, number = slug(heading[1]), 0
        while name in found:
            number += 1
            name = f"{slug(heading[1])}-{number}"
        found.add(name)
    return found


def links(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The (line, target) of each link; a link may continue on the next line."""
    text = "\n".join(re.sub(r"(`+)[^`]+\1", lambda m: "x" * len(m.group()), line) for line in lines)
    for match in LINK.finditer(text):
        yield text.count("\n", 0, match.start(1)) + 1, match[1]


class Pages:
    """The Markdown files of a tree."""

    def __init__(self, root: Path, files: list[Path]) -> None:
        self.files = {PurePosixPath(path.as_posix()) for path in files}
        self.folders = {folder for path in self.files for folder in path.parents}
        self.lines = {path: without_code((root / path).read_text(encoding="utf-8"))
                      for path in sorted(self.files) if path.suffix == ".md" and is_document(path)}

    def faults(self) -> Iterator[str]:
        for page, lines in self.lines.items():
            for number, link in links(lines):
                fault = self.fault_of(page, link)
                if fault:
                    yield f"{page}:{number}: error: the link '{link}' {fault}"
        yield from self.outside_the_menu()
        yield from self.unnamed()

    def fault_of(self, page: PurePosixPath, link: str) -> str:
        if OTHER_HOST.match(link):
            return ""
        path, _, anchor = link.partition("#")
        if path.startswith("/"):
            return "is absolute: write it relative to the page"
        target = target_of(page, path)
        if target in self.folders:
            return "names a folder, which the site cannot show: name a file, or use no link"
        if target not in self.files:
            return "names no file of the tree"
        if anchor and target in self.lines and anchor not in anchors(self.lines[target]):
            return f"names no heading of {target}"
        return ""

    def outside_the_menu(self) -> Iterator[str]:
        """Pages of docs/ that no menu names."""
        if START not in self.lines:
            yield f"{START}:1: error: is missing: it says in which order to read the pages"
            return
        in_menu = {START}
        for menu in MENUS:
            lines = self.lines.get(menu, [])
            first = next((at for at, line in enumerate(lines) if line.startswith("## ")), len(lines))
            in_menu |= {target_of(menu, link.partition("#")[0]) for _, link in links(lines[first:])}
        for page in self.lines:
            if page.parts[0] == "docs" and page not in in_menu:
                yield f"{page}:1: error: the menu lacks this page: link it from a section of {START}"

    def unnamed(self) -> Iterator[str]:
        """Raw files of measurements that no page names."""
        text = "\n".join("\n".join(lines) for page, lines in self.lines.items() if page.parent == RAW)
        for path in sorted(self.files):
            if path.parent == RAW and path.suffix != ".md" and not names(text, path.name):
                yield f"{path}:1: error: no page of {RAW} names it: delete it, or say what it is"


def target_of(page: PurePosixPath, path: str) -> PurePosixPath:
    return PurePosixPath(os.path.normpath(page.parent / path)) if path else page


def names(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None


def is_document(path: PurePosixPath) -> bool:
    """Templates of questions and exports, and golden files, do not count as documents."""
    return len(path.parts) == 1 or path.parts[0] not in ("prompts", "python", "tests")


def main(arguments: list[str]) -> int:
    root = Path(arguments[0] if arguments else Path(__file__).resolve().parent.parent)
    pages = Pages(root, sources.tracked(root))
    faults = list(pages.faults())
    for fault in faults:
        print(fault)
    print(f"docs: {len(pages.lines)} pages, {len(faults)} problem(s)")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
