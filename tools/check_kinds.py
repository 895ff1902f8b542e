#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that C++ code does not compare kinds with string literals.

Usage: check_kinds.py [ROOT]
A status, role, event type or other kind is an enumeration, or a named constant if the list is open. Only parsers turn
text into a kind; PARSERS names their files. No other file of src/ and apps/, except tests, may have `x == "word"` or
`kind.starts_with("word")`. Each pattern of PARSERS must match a file that has such a comparison.
"""
from __future__ import annotations

import fnmatch
import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import sources  # noqa: E402

HOME = Path(__file__).resolve().parent.parent
# The parsers, each with the language that it reads.
PARSERS = {
    "src/ptx/text/*": "PTX",
    "src/ptx/decode/*": "PTX",
    "src/ptx/ops/*": "PTX",
    "src/ptx/model/pipes.cpp": "names of SASS instructions",
    "src/recipes/algebra/*": "operators of torch.fx",
    "src/recipes/composites/*": "operators of torch.fx",
    "src/recipes/graph/*": "operators of torch.fx",
    "src/recipes/spatial/*": "operators of torch.fx",
    "src/recipes/views/*": "operators of torch.fx",
    "src/recipes/fuse/*": "operators of torch.fx",
    "src/recipes/nest/*": "operators of torch.fx",
    "src/agent/algebra.cpp": "operators of torch.fx",
    "src/agent/fences.cpp": "a model's answer",
    "src/agent/library.cpp": "components' pages",
    "src/agent/source_map.cpp": "C++",
    "src/agent/tools.cpp": "a model's answer",
    "src/base/config.*": "settings",
    "src/core/plan_parse.cpp": "plans",
    "src/core/task.cpp": "numbers of the torch worker",
    "src/engine/propose/command_proposer.cpp": "messages of a proposer",
    "src/eval/diagnosis/dependence.cpp": "operators of torch.fx",
    "src/eval/source/*": "C++",
    "src/llm/anthropic.cpp": "messages of a provider",
    "src/llm/api_json.cpp": "JSON schemas",
    "src/llm/faults.cpp": "messages of providers",
    "src/llm/http.cpp": "addresses",
    "src/llm/openai_*.cpp": "messages of a provider",
    "src/llm/prices.cpp": "price files",
    "src/llm/sse.cpp": "event streams",
    "src/sandbox/cgroup.cpp": "/proc/mounts",
    "src/search/structure.cpp": "C++",
    "src/toolchain/cuts.cpp": "C++",
    "src/toolchain/ncu_report.cpp": "reports of ncu",
    "src/toolchain/ptx_use.cpp": "PTX",
    "src/toolchain/scan.cpp": "C++",
    "src/torch/foreign_process.cpp": "messages of the torch worker",
    "apps/compiler/*": "/proc/self/maps",
}
WORD = r'"[a-z][a-z0-9_-]*"'
KIND = r"\b(?:kind|mode|outcome|role|source|status|strategy|type)_?(?:\(\))?"
COMPARED = re.compile(rf"[=!]=\s*{WORD}|{WORD}\s*[=!]=|{KIND}\.(?:starts|ends)_with\({WORD}\)")
COMMENT = re.compile(r"//.*")
PATH = re.compile(r"\b(?:filename|extension|stem)\(\)\s*[=!]=")  # a part of a path is not a kind


def is_checked(path: Path) -> bool:
    return (path.parts[0] in ("src", "apps") and path.suffix in (".h", ".cpp")
            and not path.stem.endswith("_test") and "testing" not in path.parts)


def compared(text: str) -> Iterator[tuple[int, str]]:
    """Yields (line, comparison) of each comparison with a word."""
    for number, line in enumerate(text.splitlines(), 1):
        code = COMMENT.sub("", line)
        found = COMPARED.search(code)
        if found and not PATH.search(code):
            yield number, found.group()


def main(arguments: list[str]) -> int:
    root = Path(arguments[0] if arguments else HOME)
    count, used = 0, set()
    for path in filter(is_checked, sources.tracked(root)):
        parsers = {pattern for pattern in PARSERS if fnmatch.fnmatch(str(path), pattern)}
        for number, comparison in compared((root / path).read_text(encoding="utf-8")):
            used |= parsers
            if parsers:
                continue
            print(f"{path}:{number}: compares a kind by its text ({comparison}); use an enumeration or a named "
                  "constant, or add the parser to PARSERS in tools/check_kinds.py")
            count += 1
    unused = sorted(set(PARSERS) - used) if root.samefile(HOME) else []
    for pattern in unused:
        print(f"tools/check_kinds.py: no file of PARSERS' {pattern} compares a kind by its text; delete the line")
    print(f"{count} comparisons of kinds with string literals")
    return 1 if count or unused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
