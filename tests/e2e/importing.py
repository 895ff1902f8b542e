# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=600 cost=40
"""A run on a simulator hands out its programs, another machine judges them on a GPU (the fake driver of
tests/fake_cuda), and the run imports the verdicts.
"""
from __future__ import annotations

import json
import os
import shutil
import sys
import unittest
from typing import Any

import gpu
import harness


class Importing(gpu.FakeGpu):
    def setUp(self) -> None:
        super().setUp()
        self.task = self.write("sevens.py", gpu.SEVENS)
        program = {"plan": gpu.plan("sevens"), "sources": {"kernel.cu": gpu.SOURCE.format("sevens")}}
        self.write("propose.py", gpu.PROPOSER.format(program=program))

    def ok(self, *arguments: object, code: int = 0, runs: bool = True, **settings: Any) -> harness.Result:
        where = ("--runs", self.folder / "runs") if runs else ()
        result = self.cutegen(*arguments, *where, timeout=300, **settings)
        self.assert_code(result, code)
        return result

    def there_and_back(self) -> None:
        self.ok("optimize", self.task, "--proposer", f"{sys.executable} propose.py", "--out", "best")
        told = self.ok("handout", "last", "proposed").out
        self.assertIn("cutegen import last proposed verdicts", told)
        self.ok("eval", "proposed/sevens.py", "--batch", "proposed", "--out", "verdicts", "--device", "cuda:0",
                runs=False, env=self.driver("good"))

    def test_there_and_back(self) -> None:
        self.there_and_back()
        before = json.loads((self.folder / "best/verdict.json").read_text())
        self.assertEqual((before["device"], before["timing"]["origin"]), ("sim:h200", "modelled"))
        self.assert_error(self.cutegen("handout", "last", "proposed", "--runs", "runs"), 2, "the folder is not empty")
        shutil.copy(self.folder / "verdicts/c1.json", self.folder / "verdicts/stranger.json")

        document = self.ok("import", "last", "proposed", "verdicts", "--json", code=2).json()
        self.assertEqual(document["schema"], "cutegen.import.v1")
        rows = {row["entry"]: row for row in document["entries"]}
        self.assertEqual(rows["stranger"]["status"], "refused")
        self.assertIn("another entry", rows["stranger"]["detail"])
        self.assertIn("the best program itself", rows["c1"]["detail"])
        self.assertEqual((rows["c1"]["candidate"], rows["c1"]["best"]), ("c2", True))
        self.assertEqual(rows["c1"]["device"], "NVIDIA H200 (driver of CUDA 13.0)")

        verdict = json.loads((self.folder / "best/verdict.json").read_text())
        self.assertEqual((verdict["gpu"], verdict["timing"]["origin"]), ("NVIDIA H200", "imported"))
        shown = self.ok("show", "last", "--json").json()
        self.assertEqual(shown["best"]["imported"]["origin"], "measured")
        self.assertEqual(shown["state"], "finished")
        self.assertNotIn("best_gain", shown, "figures of two devices are not compared")
        self.assertIn("the figures are imported: measured on NVIDIA H200", self.ok("show", "last").out)
        self.ok("report", "last", "-o", "page.html")
        self.assertIn("<h2>Imported</h2>", (self.folder / "page.html").read_text())

        (self.folder / "verdicts/stranger.json").unlink()
        self.assertIn("0 of 1 entries imported", self.ok("import", "last", "proposed", "verdicts").out)
        self.assertEqual(len(self.ok("show", "last", "--json").json()["steps"]), len(shown["steps"]))
        self.ok("optimize", "--replay", "last")

    def test_bad_words(self) -> None:
        for arguments in (("import", "last", "a", "b"), ("handout", "last", "a")):
            self.assert_error(self.cutegen(*arguments, "--runs", "runs"), 2, "no run")


if __name__ == "__main__":
    if not gpu.FAKE.exists() and "CUTEGEN_BIN" not in os.environ:
        raise unittest.SkipTest(f"no {gpu.FAKE}: build the tests first")
    harness.main()
