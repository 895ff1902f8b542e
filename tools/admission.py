#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the degenerate solutions of every task file in a folder. Prints a Markdown table.

A degenerate solution returns zeros, constants, a copy of an input, or the like, instead of doing the task's work
(docs/evaluation.md). The evaluator judges these solutions when it opens a task.

    nice python3 tools/admission.py KERNELBENCH/KernelBench/level1 > level1.md
"""
from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/e2e"))
import harness  # noqa: E402
from evaluator_client import Closed, Evaluator, Refused  # noqa: E402
from soak import environment  # noqa: E402

HEAD = """# Degenerate solutions

A degenerate solution returns zeros, constants, a copy of an input, or the like, instead of doing the task's work
([evaluation.md](../evaluation.md#degenerate-solutions)). cutegen judged the degenerate solutions of each task at the
task's small and odd shapes, on several input families. A task is admitted if each degenerate solution fails on at
least one family. For an admitted task, the last column names the degenerate solutions that pass on some family. For
any other task, it gives the reason.

| task | admitted | degenerate solutions | passes, by family |
|---|---|---|---|
"""


def number(path: Path) -> tuple[int, str]:
    match = re.match(r"\d+", path.stem)
    return (int(match[0]) if match else 0, path.stem)


def grouped(passing: list[str]) -> str:
    """Groups texts such as "zeros passes on 'made'" by family. The result is a text such as "made: zeros, copy"."""
    families: dict[str, list[str]] = {}
    for text in passing:
        match = re.match(r"(.*) passes on '(\w+)'$", text)
        if match:
            families.setdefault(match[2], []).append(match[1])
    return "; ".join(f"{f}: {', '.join(names)}" for f, names in families.items())


def one(evaluator: Evaluator, path: Path, tally: dict[str, int]) -> str:
    try:
        admission = evaluator.open_task(path)["admission"]
    except Refused as error:
        tally["not judged"] += 1
        return f"| {path.stem} | not judged | | {error.args[0]['message'][:120]} |"
    judged = bool(admission["families"])
    word = "yes" if admission["admitted"] else "no" if judged else "not judged"
    tally[word] += 1
    tally["answers"] += admission["lazy_answers_tried"] if word == "yes" else 0
    note = grouped(admission["passing"]) if admission["admitted"] else admission["remark"]
    return f"| {path.stem} | {word} | {admission['lazy_answers_tried']} | {note} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", default="1/1", metavar="I/N", help="judge every N-th task, from the I-th on")
    arguments = parser.parse_args()
    part, parts = map(int, arguments.part.split("/"))
    tally = {"yes": 0, "no": 0, "not judged": 0, "answers": 0}
    print(HEAD, end="")
    began, evaluator = time.monotonic(), None
    with tempfile.TemporaryDirectory(prefix="cutegen-admission-") as home:
        for path in sorted(arguments.folder.glob("*.py"), key=number)[part - 1 :: parts]:
            try:
                evaluator = evaluator or Evaluator(environment(home))
                print(one(evaluator, path, tally), flush=True)
            except (Closed, OSError):
                print(f"| {path.stem} | not judged | | the evaluator died |", flush=True)
                tally["not judged"] += 1
                evaluator = None
        if evaluator:
            evaluator.close()
    print(f"\n{tally['yes']} tasks are admitted ({tally['answers']} degenerate solutions were judged on them, and none "
          f"passes on every family), {tally['no']} are not admitted, and {tally['not judged']} were not judged. This "
          f"took {time.monotonic() - began:.0f} s.")
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
