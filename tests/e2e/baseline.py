# SPDX-License-Identifier: Apache-2.0
"""How far a baseline's result is from eager's (classes of values count, not only numbers), and whose turn
on the GPU it is while torch.compile tries kernels."""
import json
import os
import subprocess
import unittest
from pathlib import Path

import harness

PYTHON = os.environ.get("CUTEGEN_PYTHON") or str(harness.ROOT / ".venv/bin/python")
CASES = [  # wanted, got, distance
    ("[1., nan]", "[1., nan]", 0),
    ("[1., nan]", "[1., 2.]", float("inf")),
    ("[1., 2.]", "[nan, 2.]", float("inf")),
    ("[1., inf]", "[1., inf]", 0),
    ("[1., inf]", "[1., -inf]", float("inf")),
    ("[2., 1.]", "[2., 1.5]", 0.25),
    ("[]", "[]", 0),
]
SCRIPT = """import json, torch
from math import inf, nan
from cutegen_worker.baseline import distance
print(json.dumps([distance(torch.tensor(w), torch.tensor(g)) for w, g in [{pairs}]]))
"""
# Inductor's benchmarker with a lock that another holder asks for meanwhile: what it is called with, and
# whether the lock was held then; the same for a worker that has the lock only while it opens.
SLOT = """import fcntl, json, os, tempfile, types
import torch._inductor.runtime.benchmarking as benchmarking
from cutegen_worker.slot import Slot
def free(name):
    with open(name) as other:
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False
told = []
for opening in (False, True):
    file = tempfile.NamedTemporaryFile()
    def plain(run, estimation_iters=5, max_benchmark_duration=25):
        return [estimation_iters, max_benchmark_duration, free(file.name)]
    benchmarking.benchmarker = types.SimpleNamespace(benchmark_gpu=plain)
    slot = Slot()
    slot.take_over(os.open(file.name, os.O_RDONLY))
    slot.for_opening = opening
    slot.guard_autotuning()
    told.append([benchmarking.benchmarker.benchmark_gpu(None), free(file.name)])
    slot.opened()
    told[-1].append(benchmarking.benchmarker.benchmark_gpu(None)[2])
print(json.dumps(told))
"""


@unittest.skipUnless(Path(PYTHON).exists(), f"no interpreter {PYTHON}")
class Baseline(unittest.TestCase):
    def run_inside(self, script):
        done = subprocess.run([PYTHON, "-B", "-c", script], text=True, check=True, capture_output=True,
                              env={**os.environ, "PYTHONPATH": str(harness.ROOT / "python")})  # fmt: skip
        return json.loads(done.stdout)

    def test_kernels_are_tried_behind_the_lock(self):
        suite, certificate = self.run_inside(SLOT)
        self.assertEqual(suite, [[2, 10, False], True, False])  # briefly; and the lock stays its own
        self.assertEqual(certificate, [[5, 25, False], True, True])  # as PyTorch does; no lock once all are open

    def test_distance(self):
        pairs = ", ".join(f"({wanted}, {got})" for wanted, got, _ in CASES)
        self.assertEqual(self.run_inside(SCRIPT.format(pairs=pairs)), [distance for *_, distance in CASES])


if __name__ == "__main__":
    unittest.main()
