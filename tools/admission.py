#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the degenerate solutions of every task file in a folder. Prints a Markdown table.

    nice python3 tools/admission.py KERNELBENCH/KernelBench/level1 > docs/measurements/admission.md
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

Which solutions that compute nothing pass on which input families
([evaluation.md](../evaluation.md#degenerate-solutions)), for each task of a folder, at the small and odd shapes. A
task is admitted if each degenerate solution fails on some family. The last column names those that pass on one
family.

| task | admitted | degenerate solutions | passes, by family |
|---|---|---|---|
"""


def number(path: Path) -> tuple[int, str]:
    match = re.match(r"\d+", path.stem)
    return (int(match[0]) if match else 0, path.stem)


def grouped(passing: list[str]) -> str:
    """{"zeros passes on 'made'", ...} by family."""
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
    print(f"\n{tally['yes']} tasks admitted ({tally['answers']} degenerate solutions judged on them, none "
          f"passes everywhere), {tally['no']} not admitted, {tally['not judged']} not judged; "
          f"{time.monotonic() - began:.0f} s.")
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
