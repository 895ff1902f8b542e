# SPDX-License-Identifier: Apache-2.0
"""How far a baseline's result is from eager's: classes of values count, not only numbers."""
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


class Baseline(unittest.TestCase):
    def test_distance(self):
        if not Path(PYTHON).exists():
            self.skipTest(f"no interpreter {PYTHON}")
        pairs = ", ".join(f"({wanted}, {got})" for wanted, got, _ in CASES)
        done = subprocess.run([PYTHON, "-B", "-c", SCRIPT.format(pairs=pairs)], text=True, check=True,
                              capture_output=True, env={**os.environ, "PYTHONPATH": str(harness.ROOT / "python")})  # fmt: skip
        self.assertEqual(json.loads(done.stdout), [distance for *_, distance in CASES])


if __name__ == "__main__":
    unittest.main()
