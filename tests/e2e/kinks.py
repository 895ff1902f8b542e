# SPDX-License-Identifier: Apache-2.0
"""Just below a ReLU's kink, truth and native result are zero. The changes of the inputs must show that an accurate sum
may be above the kink; otherwise the evaluator would reject a correct product.
"""
from __future__ import annotations

import subprocess
import unittest

import harness

PROGRAM = '''
import itertools
import torch
from cutegen_worker import values

made = torch.Generator().manual_seed(1)
x, y = torch.randn(512, generator=made), torch.randn(512, 4096, generator=made)
y[-1] -= ((x.double() @ y.double()) / x[-1]).float()  # now every sum nearly cancels
below = x.double() @ y.double() < 0
largest = torch.zeros(4096, dtype=torch.float64)
for change, _ in values.moves("bf16", torch.Generator().manual_seed(2), itertools.count()):
    largest = torch.maximum(largest, torch.relu(change("x", x) @ change("y", y)))
print(int((below & (largest == 0)).sum()), int(below.sum() > 1000))
'''

# Two products before the kink. Counts the elements that no move lifts above the kink by a hundredth of a usual move.
PRODUCTS = '''
import torch
from cutegen_worker import values

made = torch.Generator().manual_seed(1)
x, y, z = (torch.randn(*shape, generator=made, dtype=torch.float64) for shape in ((64, 256), (256, 256), (256, 4096)))
below = -(x @ y @ z)  # the sum with these values is zero
for operators in (1, 2):
    largest, count = torch.zeros_like(below), 0
    for shift, roundings in values.shifts("bf16", torch.Generator().manual_seed(2), operators):
        with shift:
            moved = x @ y @ z
        largest, count = torch.maximum(largest, torch.relu(moved + below)), count + 1
    print(count, int((largest < 0.01 * largest.mean()).sum()))
'''


class Kinks(unittest.TestCase):
    def test_some_change_ends_above_the_kink(self) -> None:
        python = harness.ROOT / ".venv/bin/python"
        result = subprocess.run([python, "-c", PROGRAM], cwd=harness.ROOT / "python", capture_output=True,
                                text=True, timeout=200)
        self.assertEqual(result.returncode, 0, result.stderr)
        missed, enough = map(int, result.stdout.split())
        self.assertTrue(enough)
        self.assertLess(missed, 10)  # the opposite changes may agree by chance, to second order

    def test_moves_of_two_products_rarely_cancel_twice(self) -> None:
        python = harness.ROOT / ".venv/bin/python"
        result = subprocess.run([python, "-c", PRODUCTS], cwd=harness.ROOT / "python", capture_output=True,
                                text=True, timeout=200)
        self.assertEqual(result.returncode, 0, result.stderr)
        (moves, missed), (more_moves, fewer) = (map(int, line.split()) for line in result.stdout.splitlines())
        self.assertEqual((moves, more_moves), (2, 4))
        self.assertLess(20 * fewer, missed)


if __name__ == "__main__":
    harness.main()
