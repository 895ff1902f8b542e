# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900 cost=25
"""`cutegen compare` with a scripted model: table, Ctrl-C, continuing, curves, trace, user errors."""
from __future__ import annotations

import csv
import json
import signal
from collections.abc import Sequence

import harness
import models
from harness import Json

CHANGE = "CHANGE: other sizes\nMore blocks hide more latency.\nSPAN plan.json\n"
RULES = [models.rule("Your turn: (judge|diagnose)", ["BOTTLENECK: too few threads\n"]),
         models.rule("Your turn: propose tests", ['```json\n{"cases": []}\n```\n']),
         models.rule("Your turn: read the profile", ["BOTTLENECK: few blocks\n"]),
         models.rule("Your turn: suggest", ["BOTTLENECK: few blocks\nCHANGE: more blocks\nRISK: none\n"]),
         models.rule("Your turn: plan one change", [CHANGE]),
         models.rule("Your turn: plan", ["APPROACH 1: a loop over the grid\nThreads take neighbours.\n"]),
         models.rule("", [models.program(f"grid {grid}", grid=grid, block=128) for grid in range(8, 520, 4)])]
STRATEGIES = ("cutegen", "cudaforge", "stark", "astra", "astra-single", "best-of-n", "climb")


class Compare(harness.Case):
    def setUp(self) -> None:
        super().setUp()
        self.task = self.write("relu_plus.py", harness.ADD.replace("4096", "8192"))
        self.keys = {"ANTHROPIC_API_KEY": models.KEY}

    def arguments(self, server: harness.ModelServer | None, *more: object,
                  strategies: Sequence[str] = STRATEGIES) -> list[object]:
        return ["compare", self.task, "--strategies", ",".join(strategies), "--model", models.MODEL,
                "--model-url", server.base + "/v1" if server else "http://127.0.0.1:9/v1",
                "--runs", self.folder / "runs", "--dialect", "cuda", "--chains", 1, "--evaluations", 2,
                "--budget-usd", 2, "--budget-tokens", 10**6, "--out", "out", "--no-planner", *more]

    def compare(self, server: harness.ModelServer | None, *more: object,
                strategies: Sequence[str] = STRATEGIES) -> harness.Result:
        return self.cutegen(*self.arguments(server, *more, strategies=strategies), env=self.keys, timeout=400)

    def test_a_comparison_is_interrupted_and_goes_on(self) -> None:
        with models.scripted(self.folder, RULES) as server:
            process = self.start(*self.arguments(server), env=self.keys)
            assert process.stderr
            for line in process.stderr:
                if f"1/{len(STRATEGIES)}".encode() in line:
                    break
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, out)
            self.assertIn(b"Run the same command again", out)
            result = self.compare(server, "--json", "--trace", "trace.json")
            self.assert_code(result, 0)
            self.check_document(result.json(), len(server.log()))
        self.check_files()
        table = self.compare(None)  # nothing is left to ask
        self.assert_code(table, 0)
        self.assertRegex(table.out, r"relu_plus +cutegen +1 correct .* [\d.]+x +2 +\d")
        self.assertRegex(table.out, r"climb +1/1 +1/1 +[\d.]+x +- +2 +0 ")
        self.assertIn("over the 1 task that every strategy solved", table.out)
        self.check_mistakes()

    def test_repeats_have_an_interval_and_equal_evaluations(self) -> None:
        """More evaluations than the ten rounds of cudaforge and astra: every run uses them all."""
        names = ("cudaforge", "astra-single")
        with models.scripted(self.folder, RULES) as server:
            arguments = self.arguments(server, "--repeats", 2, "--json", strategies=names)
            arguments[arguments.index("--evaluations") + 1] = 11
            result = self.cutegen(*arguments, env=self.keys, timeout=600)
        self.assert_code(result, 0)
        document = result.json()
        self.assertEqual([cell["evaluations"] for cell in document["cells"]], [11] * 4)
        for summary in document["summary"]:
            low, high = summary["floor_ratio_interval"]
            self.assertLessEqual(low, summary["floor_ratio_geomean"] + 1e-9)
            self.assertGreaterEqual(high, summary["floor_ratio_geomean"] - 1e-9)

    def check_document(self, document: Json, asked: int) -> None:
        self.assertEqual(document["schema"], "cutegen.compare.v1")
        cells = {c["strategy"]: c for c in document["cells"]}
        self.assertEqual(set(cells), set(STRATEGIES))
        for name, cell in cells.items():
            self.assertEqual(cell["status"], "correct", name)
            self.assertEqual(cell["evaluations"], 2, name)
            self.assertEqual(len(cell["curve_ns"]), 2, name)
            self.assertLessEqual(cell["models"]["usd"], 2)
        self.assertEqual(cells["climb"]["models"]["calls"], 0)
        calls = sum(c["models"]["calls"] for c in cells.values())
        self.assertIn(asked - calls, (0, 1), "a call that Ctrl-C cut off was asked again")
        self.assertAlmostEqual(sum(c["models"]["usd"] for c in cells.values()),
                               calls * models.CALL_USD, places=6)
        self.assertEqual(document["common_tasks"], ["relu_plus"])
        for name in STRATEGIES:
            curve = document["curves"][name]
            self.assertEqual([p["evaluations"] for p in curve], [1, 2])
            self.assertLessEqual(curve[1]["floor_ratio_geomean"], curve[0]["floor_ratio_geomean"])
        runs = self.cutegen("runs", "--runs", self.folder / "runs", "--json").json()["runs"]
        self.assertEqual({r["run"] for r in runs}, {c["run"] for c in cells.values()})

    def check_files(self) -> None:
        out = self.folder / "out"
        with open(out / "curves.csv", encoding="utf-8", newline="") as file:
            self.assertEqual(len(list(csv.DictReader(file))), 2 * len(STRATEGIES))
        self.assertTrue((out / "programs/relu_plus/cudaforge-1/plan.json").exists())
        trace = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
        names = {e["name"] for e in trace if e["ph"] == "X"}
        self.assertTrue({"compile", "correctness", "timing", "coder"} <= names, names)

    def check_mistakes(self) -> None:
        self.assert_error(self.compare(None, "--seed", 9), 2, "different settings", "another --out")
        self.assert_error(self.compare(None, strategies=("climb",)), 2, "also has")
        self.assert_error(self.compare(None, strategies=("magic",)), 2, "unknown strategy 'magic'",
                          "best-of-n")
        self.assert_error(self.cutegen("compare", self.task), 2, "needs a model", "climb")
        self.assert_error(self.cutegen("compare", "none.py", "--strategies", "climb"), 2, r"none\.py")
        self.assert_error(self.cutegen("compare", "--strategies", "climb"), 2, "task")
        broken = self.write("broken.py", "x = 1\n")
        self.assert_error(self.cutegen("compare", broken, "--strategies", "climb", "--device", "sim:h20"),
                          2, "did you mean")
        result = self.cutegen("compare", broken, "--strategies", "climb", "--out", "broken", "--json",
                              "--runs", self.folder / "runs")
        self.assert_code(result, 2)
        self.assertIn("Model", result.json()["cells"][0]["reason"])


if __name__ == "__main__":
    harness.main()
