# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900 cost=50
"""`cutegen bench` over a suite made of shipped tasks: table, files, Ctrl-C and --resume."""
from __future__ import annotations

import csv
import json
import shutil
import signal
import time

import harness

TASKS = {"19_ReLU": "relu.py", "23_Softmax": "softmax.py"}


class Bench(harness.Case):
    def setUp(self) -> None:
        super().setUp()
        level = self.folder / "suite/KernelBench/level1"
        level.mkdir(parents=True)
        for name, file in TASKS.items():
            shutil.copy(harness.ROOT / "tasks" / file, level / f"{name}.py")
        scan = harness.ADD.replace("torch.relu(x) + 1.0", "torch.digamma(x)")
        (level / "89_Scan.py").write_text(scan)

    def arguments(self, *more: object) -> tuple[object, ...]:
        return ("bench", "--kernelbench", self.folder / "suite", "--runs", self.folder / "runs",
                "--evaluations", 2, "--out", "level1", *more)

    def test_a_suite_and_its_table(self) -> None:
        result = self.cutegen(*self.arguments(), timeout=400)
        self.assert_code(result, 0)
        # The first program of a ReLU is at the reachable bound already.
        self.assertRegex(result.out, r"1 +19_ReLU +elementwise +correct .*x +1 ")
        self.assertRegex(result.out, r"23_Softmax +softmax +correct .*x +2 ")
        self.assertRegex(result.out, r"89_Scan .*no_recipe .*digamma")
        self.assertRegex(result.out, r"3 tasks: 2 correct, 1 no_recipe")
        self.assertIn("modelled", result.out)
        self.assertNotIn("\x1b", result.out + result.err)
        self.assertIn("3/3", result.err)
        out = self.folder / "level1"
        self.assertTrue((out / "programs/level1_19_ReLU/plan.json").exists())
        with open(out / "bench.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([r["status"] for r in rows], ["correct", "correct", "no_recipe"])
        saved = json.loads((out / "bench.json").read_text())
        self.assertEqual(saved["counts"]["correct"], 2)
        runs = self.cutegen("runs", "--runs", self.folder / "runs", "--json").json()["runs"]
        self.assertEqual({r["run"] for r in runs}, {t["run"] for t in saved["tasks"]})
        again = self.cutegen(*self.arguments("--resume", "--json"), timeout=100)
        self.assert_code(again, 0)
        self.assertEqual(again.json(), saved)

    def test_ctrl_c_and_resume(self) -> None:
        process = self.start(*self.arguments("--tasks", "19,23"))
        assert process.stderr
        for line in process.stderr:
            if b"19_ReLU" in line:
                break
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, out)
        self.assertIn(b"--resume", out)
        result = self.cutegen(*self.arguments("--tasks", "19,23", "--resume", "--json"), timeout=400)
        self.assert_code(result, 0)
        document = result.json()
        self.assertEqual([t["status"] for t in document["tasks"]], ["correct", "correct"])
        self.assertFalse(document["interrupted"])

    def test_mistakes(self) -> None:
        self.assert_error(self.cutegen("bench", "--kernelbench", self.folder / "none"), 2,
                          "is not a folder", "checkout of kernelbench")
        self.assert_error(self.cutegen(*self.arguments("--levels", "2")), 2, "no level 2")
        self.assert_error(self.cutegen(*self.arguments("--tasks", "5-3")), 2, "--tasks", "19-32,36")
        self.assert_error(self.cutegen(*self.arguments("--model", "gpt")), 2, "unknown model")
        self.assert_error(self.cutegen(*self.arguments("--resume")), 2, "bench.json")
        self.assert_error(self.cutegen(*self.arguments("--device", "sim:h20")), 2, "did you mean")


if __name__ == "__main__":
    harness.main()
