# SPDX-License-Identifier: Apache-2.0
"""tools/mutation.py and tools/mutants.py: the faults that they make in kernels, and how they count them."""
from __future__ import annotations

import json
import sys
import tempfile
import unittest
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import mutants  # noqa: E402
import mutation  # noqa: E402

KERNEL = """// SPDX-License-Identifier: Apache-2.0
// a[i] < b in a comment
#include <cute/tensor.hpp>
#include <cutegen/reduce.cuh>

using namespace cute;
constexpr int kVector = 4;
extern "C" __global__ void f(float const* x, float* out, int n) {
  __shared__ float shared[32];
  cutegen::Max best;
  for (int j = threadIdx.x; j < n; j += kWidth) best.add(x[j] - out[0]);
  if (threadIdx.x < 32) shared[threadIdx.x] = 1.0f;
  __syncthreads();
  cutegen::combine_warp<32>(best);
}
"""
PLAN = {"symbols": {"v": "n % 4 == 0 ? 4 : 1"},
        "steps": [{"grid": ["ceil_div(n,256)", 1, 1], "args": [{"i32": "n"}]}]}


class Mutation(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        mutation.save({"kernel.cu": KERNEL, "plan.json": json.dumps(PLAN)}, Path(self.folder.name))
        self.program = mutation.load(self.folder.name, ROOT / "include")

    def changes(self, operator: str) -> list[tuple[str, str]]:
        return [(m.told(self.program)["old"], m.told(self.program)["new"])
                for m in mutation.all_mutants(self.program)[operator]]

    def test_only_used_components_come_in(self) -> None:
        text = self.program["kernel.cu"]
        for name in ("struct Max", "combine_warp(", "shuffle_xor("):
            self.assertIn(name, text)
        for name in ("struct Sum", "struct ArgMax", "void combine_row", "#include <cutegen/reduce.cuh>"):
            self.assertNotIn(name, text)

    def test_definitions_are_told_apart(self) -> None:
        folder = Path(self.folder.name) / "include"
        (folder / "cutegen").mkdir(parents=True)
        (folder / "cutegen/pair.cuh").write_text("""#pragma once
namespace cutegen {
template <int N, class T>
struct Pair {
  T first, second;
};
using Two = Pair<2, int>;
template <class T>
CUTE_DEVICE bool operator==(Pair<2, T> a, Pair<2, T> b) {
  return a.first == b.first;
}
template <class T>
CUTE_DEVICE Pair<2, T> both(T value) {
  return {value, value};
}
}
""", encoding="utf-8")
        source = "#include <cutegen/pair.cuh>\nusing namespace cute;\n"
        unused = mutation.used_components(source + "int x;\n", folder)
        for name in ("struct Pair", "using Two", "operator==", "both("):
            self.assertNotIn(name, unused)
        for use in ("Two x;", "auto x = both(1);"):
            self.assertIn("struct Pair", mutation.used_components(source + use, folder))

    def test_plain_cuda_stays_whole(self) -> None:
        source = "struct Map {\n  int words[16];\n};\nvoid pool(Map map) {}\n"
        self.assertEqual(mutation.used_components(source, Path()), source)

    def test_operators_find_their_places(self) -> None:
        self.assertEqual(self.changes("drop a barrier"), [("__syncthreads();", ";")])
        self.assertIn(("x[j] - out[0]", "out[0] - x[j]"), self.changes("swap operands"))
        self.assertIn(("j", "j + 1"), self.changes("shift an index"))
        self.assertIn(("if (threadIdx.x < 32)", "if (true)"), self.changes("no bounds check"))
        self.assertIn(("-infinity()", "0.0f"), self.changes("wrong identity"))
        self.assertIn(("0xffffffffu", "0x0000ffffu"), self.changes("missing warp"))
        self.assertEqual(self.changes("wrong vector width"), [("4", "4 * 2")])
        self.assertIn(("kWidth", "kWidth + 1"), self.changes("wrong step"))
        self.assertEqual(self.changes("wrong grid"), [
            ("ceil_div(n,256)", "(n)/(256)"), ("ceil_div(n,256)", "max(1,ceil_div(n,256)-1)")])
        self.assertEqual(self.changes("wrong argument"), [("n", "n+1")])
        self.assertEqual(self.changes("wrong define"), [("n % 4 == 0 ? 4 : 1", "4")])

    def test_comments_and_sizes_of_arrays_are_left_alone(self) -> None:
        for name, found in mutation.all_mutants(self.program).items():
            for m in found:
                self.assertFalse(m.line.lstrip().startswith(("//", "#")), m)
                self.assertNotIn(" shared[32];", m.line if name == "shift an index" else "")

    def test_a_mutant_differs_in_its_place_only(self) -> None:
        for found in mutation.all_mutants(self.program).values():
            for m in found:
                changed = m.apply(self.program)
                self.assertEqual(changed[m.file][:m.begin], self.program[m.file][:m.begin])
                self.assertTrue(changed[m.file].endswith(self.program[m.file][m.end:]))
                self.assertNotEqual(changed, self.program)

    def test_the_order_takes_turns_and_repeats(self) -> None:
        drawn = mutation.drawn_mutants(self.program, "seed")
        self.assertEqual(drawn, mutation.drawn_mutants(self.program, "seed"))
        self.assertNotEqual(drawn, mutation.drawn_mutants(self.program, "another"))
        every = mutation.all_mutants(self.program)
        self.assertEqual(len(drawn), sum(map(len, every.values())))
        kinds = sum(1 for found in every.values() if found)
        self.assertEqual(len({m.operator for m in drawn[:kinds]}), kinds)


def verdict(status: str, rung: str | None = None, mismatches: Sequence[dict[str, Any]] = (),
            headline: str = "h") -> dict[str, Any]:
    rungs = [{"rung": r, "result": "failed" if r == rung else "passed"}
             for r in ("lint", "compile", "load", "correctness")]
    return {"status": status, "rungs": rungs,
            "feedback": {"mismatches": list(mismatches), "headline": headline}}


class Counting(unittest.TestCase):
    def test_kinds(self) -> None:
        self.assertEqual(mutants.kind_of(verdict("failed", "compile"), False), "stillborn")
        self.assertEqual(mutants.kind_of(verdict("rejected", "lint"), False), "stillborn")
        self.assertEqual(mutants.kind_of(verdict("failed", "load"), False), "caught")
        self.assertEqual(mutants.kind_of(verdict("failed", "correctness"), False), "caught")
        self.assertEqual(mutants.kind_of(verdict("correct"), True), "same code")
        self.assertEqual(mutants.kind_of(verdict("correct"), False), "missed")
        self.assertEqual(mutants.kind_of(verdict("unsupported"), False), "missed")

    def test_causes(self) -> None:
        found = verdict("failed", "correctness", headline="reduction: shared_race: read of 4 bytes")
        self.assertEqual(mutants.cause_of(found), "shared_race")
        self.assertEqual(mutants.cause_of(verdict("failed", "correctness", [{}])), "wrong values")
        self.assertEqual(mutants.cause_of(verdict("failed", "load")), "rung load")

    def test_a_proof_may_hold_for_some_programs(self) -> None:
        row = {"task": "t", "program": "c1", "operator": "o", "line": "l", "old": "a", "new": "b"}
        entry = {k: row[k] for k in ("operator", "line", "old", "new")} | {"proof": "because"}
        self.assertEqual(mutants.proof_of(row, [entry]), "because")
        self.assertEqual(mutants.proof_of(row, [entry | {"programs": ["t c1"]}]), "because")
        self.assertIsNone(mutants.proof_of(row, [entry | {"programs": ["t c2"]}]))
        self.assertIsNone(mutants.proof_of(row | {"old": "c"}, [entry]))


if __name__ == "__main__":
    unittest.main()
