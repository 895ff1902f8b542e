# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=1200 cost=35
"""Correct programs of each class (tests/honest) pass: the evaluator rejects no honest arithmetic.

A commit chooses a quarter of the programs; with CUTEGEN_ALL_CASES=1 the test judges all of them.
"""
from __future__ import annotations

import harness
from evaluator_client import Evaluator, load_program

HONEST = harness.ROOT / "tests/honest"


class Honest(harness.Case):
    def test_a_correct_program_of_each_class_passes(self) -> None:
        folders = harness.in_turn({folder.name: folder for folder in sorted(HONEST.iterdir())}, 4)
        with Evaluator(self.environment()) as evaluator:
            for name, folder in folders.items():
                with self.subTest(name):
                    evaluator.open_task(folder / "task.py")
                    verdict = evaluator.evaluate(load_program(folder))
                    self.assertEqual(verdict["status"], "correct", verdict["feedback"])


if __name__ == "__main__":
    harness.main()
