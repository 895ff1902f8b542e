# SPDX-License-Identifier: Apache-2.0
"""Plants faults in programs for Hopper: in the components that a program includes, and in its source.

A fault changes one statement: it drops a wait, a fence or an arrival, waits for the other phase, expects too few bytes,
changes a descriptor or a swizzle, ... plant() yields the faults of a text. inline() puts a header's text into a program
in place of its include, so that the program has the fault.
"""
from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

HEADERS = Path(__file__).resolve().parents[2] / "include" / "cutegen"


@dataclasses.dataclass(frozen=True)
class Operator:
    name: str
    pattern: str  # each match is a place for a fault
    change: str   # what replaces the match, with groups as in re.sub


OPERATORS = (
    Operator("no wait for a barrier", r"cute::wait_barrier\([^;]*\);", ";"),
    Operator("wait for the other phase", r"(cute::wait_barrier\([^;]*), ([^,;]+)\);", r"\1, (\2) ^ 1);"),
    Operator("no arrival", r"cute::arrive_barrier\([^;]*\);", ";"),
    Operator("two arrivals", r"(cute::arrive_barrier\([^;]*\);)", r"{ \1 \1 }"),
    Operator("one arrival too many expected", r"(initialize_barrier\(.*), (.+)\);", r"\1, (\2) + 1);"),
    Operator("one arrival too few expected", r"(initialize_barrier\(.*), (.+)\);", r"\1, (\2) - 1);"),
    Operator("no proxy fence", r"cute::tma_store_fence\(\);", ";"),
    Operator("no fence after mbarrier.init", r'asm volatile\("fence\.mbarrier_init[^;]*;"[^;]*;', ";"),
    Operator("no barrier of the CTA", r"__syncthreads\(\);", ";"),
    Operator("no barrier of the cluster", r"(cute::)?(?<!void )\bcluster_sync\(\);", ";"),
    Operator("no barrier of a warp", r"__syncwarp\(\);", ";"),
    Operator("no named barrier", r"(?<!void )\bsync\([^;{]*\);", ";"),
    Operator("no wgmma.fence", r"cute::warpgroup_arrive\(\);", ";"),
    Operator("no wgmma.commit_group", r"cute::warpgroup_commit_batch\(\);", ";"),
    Operator("no wgmma.wait_group", r"cute::warpgroup_wait<\d>\(\);", ";"),
    Operator("wgmma.wait_group leaves one more", r"cute::warpgroup_wait<(\d)>\(\);",
             r"cute::warpgroup_wait<\1 + 1>();"),
    Operator("no cp.async.commit_group", r"cute::cp_async_fence\(\);|(?<!void )(?:cutegen::)?\bend_group\(\);", ";"),
    Operator("cp.async.wait_group leaves one more", r"cute::cp_async_wait<(\d)>\(\);",
             r"cute::cp_async_wait<\1 + 1>();"),
    Operator("no cp.async.wait_group", r"cute::cp_async_wait<\d>\(\);", ";"),
    Operator("too few bytes expected", r"(set_barrier_transaction_bytes\([^;]*)\);", r"\1 - 16);"),
    Operator("too many bytes expected", r"(set_barrier_transaction_bytes\([^;]*)\);", r"\1 + 16);"),
    Operator("multicast to one CTA less", r"\(1 << Parts\) - 1", "(1 << Parts) - 2"),
    Operator("a ring one stage shorter", r"(\+\+\w+ == )([\w:]+)\)", r"\1\2 - 1)"),
    Operator("no change of phase", r", (\w+(\.\w+)?) \^= 1;", ", 0;"),
    Operator("no setmaxnreg.dec", r"cutlass::arch::warpgroup_reg_dealloc<[^;]*>\(\);", ";"),
    Operator("setmaxnreg.inc beyond the register file", r"(cutlass::arch::warpgroup_reg_alloc)<[^;]*>\(\);",
             r"\1<248>();"),
    Operator("a descriptor one step ahead", r"k \* (\w+::kStep)", r"(k + 1) * \1"),
    Operator("a descriptor one step ahead", r"(shared_(?:high|low) \+ 2 \* )k\b", r"\1(k + 1)"),
    Operator("a descriptor one step ahead", r"(::kBlockStep \+ i % 4 \* 2)\)", r"\1 + 2)"),
    Operator("a descriptor one cell ahead", r"(uint32_t start = input)", r"\1 + 1"),
    Operator("a descriptor with another distance", r"(operand\([\w+ ]+, )(8|rows\(\))\)", r"\1\2 + 8)"),
    Operator("a descriptor with half the distance", r"\(G::kTileN << 16\)", "(G::kTileN / 2 << 16)"),
    Operator("no swizzle", r"\((chunk(?: % 8)?) \^ \w+ % 8\)", r"(\1)"),
    Operator("another swizzle in the tensor map", r"(cg_map_?\w*\[15\] = \{[^}]*), 3, 4\}", r"\1, 2, 4}"),
    Operator("half the rows in the tensor map", r"(cg_map_?\w*\[15\] = \{1, \d, \d+, )(\d+)", r"\1\2 / 2"),
    Operator("more rows in the tensor map", r"(cg_map_?\w*\[15\] = \{1, \d, \d+, )(\d+)", r"\1\2 + 8"),
    Operator("a descriptor with half the stride", r"(kBlock = 64 \* 128) / 16", r"\1 / 32"),
)


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str  # the operator, the file, and the line without the fault
    file: str
    text: str  # the file with the fault


def header(name: str) -> str:
    return (HEADERS / name).read_text()


def plant(file: str, text: str) -> Iterator[Fault]:
    """The faults of a file, in the order of OPERATORS."""
    lines = text.splitlines()
    seen: dict[str, int] = {}
    for operator in OPERATORS:
        for found in re.finditer(operator.pattern, text):
            line = lines[text.count("\n", 0, found.start())].strip()
            if line.startswith("//"):
                continue
            name = f"{operator.name}: {file}: {line}"
            seen[name] = seen.get(name, 0) + 1
            number = f" ({seen[name]})" if seen[name] > 1 else ""
            faulty = text[:found.start()] + found.expand(operator.change) + text[found.end():]
            yield Fault(name + number, file, faulty)


def inline(source: str, name: str, text: str) -> str:
    """The source with the header's text in place of its include."""
    before, found, after = source.partition(f"#include <cutegen/{name}>")
    if not found:
        raise ValueError(f"the source does not include cutegen/{name}")
    return before + text.replace("#pragma once", "") + after
