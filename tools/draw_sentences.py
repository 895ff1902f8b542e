#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws sentences at random from the documents and the comments of public headers, for a reader to judge.

Usage: draw_sentences.py SEED N [ROOT]
Prints `file:line: sentence`, sorted by place. The same seed draws the same sentences from the same tree.
It draws nothing from headings, heads of component pages, code, examples and the tables of docs/measurements.
"""
from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import sources  # noqa: E402

DOCUMENTS = {"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"}
LEAST_WORDS = 4
END = re.compile(r"(?<=[.!?])[)\"'*]*\s+(?=[A-Z`(\[\"*])")
FIELD = re.compile(r"(symbols|classes|arch|products|operators): ")  # the head of a component page
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
Sentence = tuple[int, str]  # line, text


def split_sentences(lines: Iterable[tuple[int, str]]) -> Iterator[Sentence]:
    """The sentences of one paragraph, each with the line on which it begins."""
    text, starts = "", []
    for number, line in lines:
        starts.append((len(text), number))
        text += line.strip() + " "
    begin = 0
    for end in [*(m.end() for m in END.finditer(text)), len(text)]:
        sentence = text[begin:end].strip()
        if len(sentence.split()) >= LEAST_WORDS:
            yield max(number for at, number in starts if at <= begin), sentence
        begin = end


def paragraphs(lines: Iterable[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """Groups of lines that belong together: split at blank lines and before list items."""
    group: list[tuple[int, str]] = []
    for number, line in lines:
        item = ITEM.match(line)
        if group and (item or not line.strip()):
            yield group
            group = []
        if line.strip():
            group.append((number, line[item.end():] if item else line))
    if group:
        yield group


def document_sentences(text: str, tables: bool) -> Iterator[Sentence]:
    """The sentences of a Markdown page, and with `tables` those of its cells."""
    prose: list[tuple[int, str]] = []
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        plain = not (fenced or FIELD.match(line) or line.lstrip().startswith(("```", "#", "|")))
        prose.append((number, line if plain else ""))
        if tables and not fenced and line.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", line)[1:-1]:
                yield from split_sentences([(number, cell)])
    for group in paragraphs(prose):
        yield from split_sentences(group)


def comment_sentences(text: str) -> Iterator[Sentence]:
    """The sentences of the // comments of C++ text, without examples and the licence line."""
    lines: list[tuple[int, str]] = []
    last = (0, 0)  # line and column
    for match in sources.TOKENS.finditer(text):
        if not match.group().startswith("//"):
            continue
        number = text.count("\n", 0, match.start()) + 1
        line = match.group()[2:].strip()
        begin = text.rfind("\n", 0, match.start()) + 1
        column = match.start() - begin
        trailing = bool(text[begin:match.start()].strip())
        if trailing or (number, column) != (last[0] + 1, last[1]):
            lines.append((number, ""))  # another comment begins
        if "SPDX-License-Identifier" not in line:
            lines.append((number, line))
        last = (number, column)
    for group in paragraphs(lines):
        if not group[0][1].startswith("Example"):
            yield from split_sentences(group)


def is_public_header(path: Path) -> bool:
    return path.suffix in {".h", ".cuh"} and path.parts[0] in {"src", "include"} and "internal" not in path.parts


def all_sentences(root: Path) -> list[tuple[Path, int, str]]:
    """Every sentence that may be drawn, in the order of files and lines."""
    found: list[tuple[Path, int, str]] = []
    for path in sources.tracked(root):
        drawn: Iterator[Sentence]
        if str(path) in DOCUMENTS or (path.parts[0] == "docs" and path.suffix == ".md"):
            drawn = document_sentences((root / path).read_text(encoding="utf-8"),
                                       tables="measurements" not in path.parts)
        elif is_public_header(path):
            drawn = comment_sentences((root / path).read_text(encoding="utf-8"))
        else:
            continue
        found += sorted((path, line, sentence) for line, sentence in drawn)
    return found


def main(arguments: list[str]) -> int:
    if len(arguments) not in (2, 3) or not all(a.isdecimal() for a in arguments[:2]):
        print("usage: draw_sentences.py SEED N [ROOT]", file=sys.stderr)
        return 2
    root = Path(arguments[2]) if len(arguments) == 3 else Path(__file__).resolve().parent.parent
    sentences = all_sentences(root)
    count = min(int(arguments[1]), len(sentences))
    for path, line, sentence in sorted(random.Random(int(arguments[0])).sample(sentences, count)):
        print(f"{path}:{line}: {sentence}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
