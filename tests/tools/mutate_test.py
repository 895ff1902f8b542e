# SPDX-License-Identifier: Apache-2.0
"""tools/mutate.py: the faults that it finds in a line, and that each switch causes its own fault only."""
from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import mutate  # noqa: E402

PROGRAM = '''#include <cstdio>
#include <string>
constexpr int kTen = 10;
bool is_low(int x) {
  if (x < kTen && x != 3) return true;
  return false;
}
int main() {
  int n = 0, steps = 0;
  std::string text = "x < y";
  for (int i = 0; i < 20; ++i) {
    n += 2;
    if (is_low(i)) steps = steps + 1;  // a < b in words
    if (i > 17) text.append("#");
  }
  text.append("z");
  std::printf("%d %d %d %s\\\\n", n, steps, n * 2 - steps, text.c_str());
}
'''.replace("\\\\", "\\")


def whats(line: str) -> list[str]:
    return [what for what, *_ in mutate.mutants_of_line(line)]


class Lines(unittest.TestCase):
    def test_what_is_found(self) -> None:
        self.assertEqual(whats("  if (a < b && c) {"), ["operator <", "condition negated", "logic"])
        self.assertEqual(whats("  if (a) return false;"), ["condition negated", "result negated"])
        self.assertEqual(whats("  x += 3;"), ["statement removed"])
        self.assertEqual(whats("  ++count;"), ["statement removed"])
        self.assertEqual(whats("  out.push_back(a - b);"), ["operator -", "statement removed"])
        self.assertEqual(whats("constexpr int kMost = 7;"), ["constant kMost"])

    def test_what_is_left_alone(self) -> None:
        for line in ["  // a < b", '  f("a < b")', "#include <x>", "template <class T>", "  int x = 3;",
                     "  if (auto x = f()) {", "  CG_TRY(auto x, f());", "  return x;", "  T* p(a);"]:
            self.assertEqual(whats(line), [], line)

    def test_the_outermost_logic_only(self) -> None:
        self.assertEqual(mutate.other_logic("a && (b || c)"), "((a ) || ( (b || c)))")
        self.assertIsNone(mutate.other_logic("a && b || c"))
        self.assertIsNone(mutate.other_logic("f(a && b)"))

    def test_of_what_overlaps_one_stays(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "a.cpp"
            source.write_text("  if (a < b && c) {\n  x += 3;\n")
            every = mutate.mutants_of(source, 5)
            self.assertEqual([m.number for m in every], [5, 6, 7, 8])
            stay = [mutate.one_of_each_place(every, random.Random(s)) for s in range(30)]
            for kept in stay:
                self.assertEqual(sum(m.line == 0 for m in kept), 1)
                self.assertEqual(kept[-1].number, 8)
            self.assertEqual({kept[0].number for kept in stay}, {5, 6, 7})


class Switches(unittest.TestCase):
    def test_each_throws_its_fault(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            source, text = Path(folder) / "a.cpp", Path(folder) / "b.cpp"
            source.write_text(PROGRAM)
            (Path(folder) / "mutant.h").write_text(mutate.SUPPORT)
            for seed in (1, 2):
                mutants = mutate.one_of_each_place(mutate.mutants_of(source, 1), random.Random(seed))
                content, owners = mutate.mutated_text(source, mutants)
                self.assertEqual(len(content.split("\n")), len(owners))
                text.write_text(content)
                program = Path(folder) / "a.out"
                subprocess.run(["g++", "-std=c++20", "-O0", "-w", str(text), "-o", str(program)],
                               check=True)
                plain = self.output(program, 0)
                self.assertEqual(plain, "40 9 71 x < y##z\n")
                for m in mutants:
                    self.assertNotEqual(self.output(program, m.number), plain, m.told())
                self.assertEqual(self.output(program, 999), plain)

    @staticmethod
    def output(program: Path, number: int) -> str:
        done = subprocess.run([program], env={**os.environ, "CG_MUTANT": str(number)}, check=False,
                              capture_output=True, text=True, timeout=20)
        return done.stdout


if __name__ == "__main__":
    unittest.main()
