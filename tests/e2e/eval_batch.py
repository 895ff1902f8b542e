# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=300 cost=20
"""A folder of good and broken programs gets its verdicts, and a second call continues where the first one stopped."""
from __future__ import annotations

import json
import shutil
from typing import Any

import harness

HONEST = harness.ROOT / "tests" / "honest"


class EvalBatch(harness.Case):
    def setUp(self) -> None:
        super().setUp()
        self.proposed = self.folder / "proposed"
        for name in ("elementwise", "softmax"):
            shutil.copytree(HONEST / name, self.proposed / name)
        shutil.copytree(HONEST / "norm", self.proposed / "broken")
        (self.proposed / "broken" / "plan.json").write_text('{"cutegen": 1,')

    def batch(self, *more: object, **settings: Any) -> harness.Result:
        return self.cutegen("eval", "--batch", self.proposed, "--out", "verdicts", "--json", *more,
                            **settings)

    def test_broken_entries_do_not_stop_the_others(self) -> None:
        result = self.batch("--up-to", "correctness")
        self.assert_code(result, 2)
        document = result.json()
        self.assertEqual(document["counts"], {"error": 1, "correct": 2})
        verdict = json.loads((self.folder / "verdicts/softmax.json").read_text())
        self.assertEqual(verdict["verdict"]["status"], "correct")
        broken = json.loads((self.folder / "verdicts/broken.json").read_text())
        self.assertIn("plan.json", json.dumps(broken["error"]))

        shutil.rmtree(self.proposed / "broken")
        again = self.batch("--up-to", "correctness")
        self.assert_code(again, 0)
        self.assertTrue(all(entry["kept"] for entry in again.json()["entries"]))

        told = self.cutegen("eval", "--batch", self.proposed, "--out", "verdicts", "--up-to", "correctness")
        lines = told.err.splitlines()  # a header, then a line for each entry as soon as it has ended
        self.assertEqual(len(lines), 3, told.err)
        self.assertRegex(lines[0], r"^ +entry +verdict +time +took$")
        self.assertRegex(lines[2], r"^2/2 +\w+ +correct .*kept$")

    def test_errors(self) -> None:
        self.assert_error(self.cutegen("eval", "--batch", self.proposed), 2, "--out DIR")
        mixed = self.cutegen("eval", "--batch", self.proposed, "--out", "x", "--device", "sim:a100,sim:h200")
        self.assert_error(mixed, 2, "cannot be compared")
        nothing = {"CUTEGEN_CUDA_DRIVER": "/no/such/libcuda.so.1"}
        gpu = self.cutegen("eval", "--batch", self.proposed, "--out", "x", "--device", "cuda:0", env=nothing)
        self.assert_error(gpu, 6, "driver")
        self.assert_error(self.cutegen("eval", "--batch", "none", "--out", "x"), 2, "cannot be read")
        self.assert_error(self.cutegen("eval", self.proposed / "softmax/task.py"), 2, "folder of a program")


if __name__ == "__main__":
    harness.main()
