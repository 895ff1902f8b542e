#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks rules for all text files.

Usage: check_text.py [ROOT]
Sources begin with the licence line. No file names a folder of one machine or a package registry's host. No file has
trailing blanks or lacks the last line break; C++ and Python have no tabs. Python lines have at most 120 columns.
Documents have no table cell over 120 characters. Documents, and comments and string literals of C++, CUDA and Python,
avoid the phrases that are hard to read (CONTRIBUTING.md, "Words").
"""
from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import sources  # noqa: E402

LICENCE = "SPDX-License-Identifier: Apache-2.0"
LICENSED = sources.CPP | {".py", ".sh", ".cmake"}
PYTHON_COLUMNS = 120
NO_TABS = sources.CPP | {".py", ".json", ".toml"}
BINARY = {".png", ".npz", ".npy", ".sqlite", ".gz", ".bin"}
# Written in pieces, so that this file passes its own check.
FORBIDDEN = [
    (re.compile(r"(?<![\w.~}/])/(?:home|" + r"root|" + r"work|Users)/\w"),
     "names a folder of one machine"),
    (re.compile(r"\b(?:files\.pythonhosted|pypi" + r"|registry\.npmjs|test\.pypi)\.org"),
     "names a package registry's host"),
    (re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX)\b"), "leaves work behind; do it or file it"),
]
# Phrases that hide who does what.
HARD = re.compile(r"can be " + r"had|\bso many " + r"of\b|\bis " + r"told\b|\bleft out " + r"of\b|"
                  r"(?<!here )\bis " + r"(?-i:none)\b|\bthat " + r"of\b|\bof " + r"which\b", re.IGNORECASE)
# Parts of an f-string that are code.
F_STRING_CODE = re.compile(r"\{[^{}]*\}")
MOST_CELL = 120


def prose_of_cpp(text: str) -> Iterator[tuple[int, str]]:
    """Yields (line, text) of each comment and literal."""
    for token in sources.TOKENS.finditer(text):
        first = text.count("\n", 0, token.start()) + 1
        yield from enumerate(token.group().split("\n"), first)


def prose_of_python(text: str) -> Iterator[tuple[int, str]]:
    """Yields (line, text) of each comment and string. Stops at the fault if the file does not parse."""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            name = tokenize.tok_name[token.type]
            if name in ("COMMENT", "STRING", "FSTRING_MIDDLE"):
                is_format = name == "STRING" and "f" in token.string.split(token.string[-1], 1)[0].lower()
                shown = F_STRING_CODE.sub("", token.string) if is_format else token.string
                yield from enumerate(shown.split("\n"), token.start[0])
    except (tokenize.TokenError, SyntaxError):
        return


def check_prose(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Yields the hard phrases in the comments and literals of a source."""
    prose = (prose_of_cpp(text) if path.suffix in sources.CPP else
             prose_of_python(text) if path.suffix == ".py" else iter(()))
    for number, line in prose:
        found = HARD.search(line)
        if found:
            yield number, f"'{found.group()}' is hard to read: say who does what"


def check_document(line: str) -> Iterator[str]:
    """Yields the faults of one line of a document."""
    found = HARD.search(line)
    if found:
        yield f"'{found.group()}' is hard to read: say who does what"
    if line.startswith("|") and max(map(len, line.split(" | "))) > MOST_CELL + 4:
        yield f"has a table cell over {MOST_CELL} characters: use a list below the table"


def check_file(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Yields (line, fault) of one file."""
    lines = text.splitlines()
    golden = {"golden", "seeds"} & set(path.parts)  # kept unchanged, byte by byte
    if not golden and path.suffix in LICENSED and not any(LICENCE in line for line in lines[:2]):
        yield 1, f"lacks '{LICENCE}' in its first two lines"
    if text and not text.endswith("\n") and not golden:
        yield len(lines), "has no line break at its end"
    if not golden:
        yield from check_prose(path, text)
    for number, line in enumerate(lines, 1):
        for pattern, fault in FORBIDDEN:
            if pattern.search(line):
                yield number, fault
        if golden:
            continue
        if path.suffix == ".md":
            for fault in check_document(line):
                yield number, fault
        if line != line.rstrip() and path.suffix != ".md":
            yield number, "ends in blanks"
        if "\t" in line and path.suffix in NO_TABS:
            yield number, "has a tab"
        if len(line) > PYTHON_COLUMNS and path.suffix == ".py":
            yield number, f"is longer than {PYTHON_COLUMNS} columns"


def main(arguments: list[str]) -> int:
    root = Path(arguments[0] if arguments else Path(__file__).resolve().parent.parent)
    problems, checked = 0, 0
    for path in sources.tracked(root):
        if path.suffix in BINARY:
            continue
        data = (root / path).read_bytes()
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            if path.parts[0] != "tests":  # tests keep broken files on purpose
                print(f"{path}:1: error: is not UTF-8")
                problems += 1
            continue
        checked += 1
        for number, fault in check_file(path, text):
            print(f"{path}:{number}: error: {fault}")
            problems += 1
    print(f"text: {checked} files, {problems} problem(s)")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
