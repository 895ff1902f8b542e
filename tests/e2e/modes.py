# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900 cost=45
"""Math modes and bounds from end to end: modes that follow from dtypes, modes that a user asks for, and the verdict's
text.
"""
from __future__ import annotations

import json

import harness
from harness import Json

TASK = '''import torch
import torch.nn as nn
import torch.nn.functional as F

rows = 64


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = {layer}

    def forward(self, x):
        return {result}


def get_inputs():
    return [torch.randn({shape}, dtype=torch.{dtype})]


def get_init_inputs():
    return []
'''


class Modes(harness.Case):
    def task(self, name: str, result: str, dtype: str = "float32", layer: str = "nn.Identity()",
             shape: str = "rows, 256", side: str | None = None) -> str:
        if side is not None:
            self.write(f"{name}.toml", side)
        return self.write(f"{name}.py", TASK.format(result=result, dtype=dtype, layer=layer, shape=shape))

    def optimized(self, task: str, *flags: str) -> tuple[harness.Result, Json]:
        result = self.cutegen("optimize", task, "--evaluations", 2, "--out", "best", *flags, timeout=400)
        self.assert_code(result, 0)
        return result, json.loads((self.folder / "best/verdict.json").read_text())

    def test_bf16_tasks_are_solved_in_bf16(self) -> None:
        # Some probabilities of the second module are subnormal numbers.
        tasks = {"softmax": ("F.softmax(x, -1)", "nn.Identity()"),
                 "far_softmax": ("F.softmax(x - 88 * (x > 0), -1)", "nn.Identity()"),
                 "linear": ("self.layer(x)", "nn.Linear(256, 128).bfloat16()"),
                 "norm": ("self.layer(x)", "nn.LayerNorm(256).bfloat16()")}
        texts = {name: TASK.format(result=result, layer=layer, dtype="bfloat16", shape="rows, 256")
                 for name, (result, layer) in tasks.items()}
        for name, row in self.solve(texts).items():
            with self.subTest(name):
                self.assertEqual(row.status, "correct", row.reason)
                self.assertEqual(row.verdict["math_mode"], "bf16")

    def test_what_is_asked_for_reaches_verdict_journal_and_report(self) -> None:
        task = self.task("relu", "torch.relu(x) + 1")
        result, verdict = self.optimized(task, "--math-mode", "tf32", "--rtol", "1e-3")
        self.assertEqual(verdict["math_mode"], "tf32 (asked for)")
        self.assertRegex(result.out, r"task +relu: elementwise, tf32 \(asked for\)\n")
        self.assert_code(self.cutegen("report", "last", "--out", "page.html"), 0)
        page = (self.folder / "page.html").read_text(encoding="utf-8")
        self.assertIn("tf32 (asked for)", page)
        self.assertIn("--math-mode tf32 --rtol 0.001", page)
        judged = self.cutegen("eval", task, "best", "--math-mode", "tf32")
        self.assert_code(judged, 0)
        self.assertRegex(judged.out, r"(?m)^  math mode +tf32 \(asked for\)$")
        plain = self.cutegen("eval", task, "best", "--json").json()["verdicts"][0]["verdict"]
        self.assertEqual(plain["math_mode"], "fp32")
        self.assertNotEqual(plain["task_id"], verdict["task_id"])
        self.assert_code(self.cutegen("optimize", "--replay", "last"), 0)

    def test_describe_says_mode_and_bound(self) -> None:
        conv = self.task("conv", "self.layer(x[:, None])", layer="nn.Conv1d(1, 4, 3)")
        result = self.cutegen("describe", conv)
        self.assertRegex(result.out, r"mode +fp32, convolutions in tf32 \(as PyTorch ships\); eval mode")
        self.assertRegex(result.out, r"floor +\d.*no kernel is faster unless a degenerate solution .* is correct")
        strict = self.cutegen("describe", conv, "--math-mode", "fp32", "--atol", "1e-6")
        self.assertRegex(strict.out, r"mode +fp32 \(asked for\); eval mode")
        self.assertRegex(strict.out, r"bound +\|y - truth\| <= 1e-06 \+ 0 \|truth\|")
        document = self.cutegen("describe", conv, "--json").json()["tasks"][0]
        self.assertTrue(document["tf32_convolutions"])

    def test_what_no_convolution_reaches_stays_in_fp32(self) -> None:
        both = self.task("both", "(self.layer(x[:, None]), x @ x.T)", layer="nn.Conv1d(1, 4, 3)")
        self.assertRegex(self.cutegen("describe", both).out,
                         r"mode +fp32, convolutions in tf32 \(as PyTorch ships\), out\.1 in fp32; eval mode")
        depthwise = self.task("depthwise", "self.layer(x.view(4, 16, -1))", layer="nn.Conv1d(16, 16, 3, groups=16)")
        self.assertRegex(self.cutegen("describe", depthwise).out, r"mode +fp32; eval mode")

    def test_contradictions_name_both_places(self) -> None:
        task = self.task("torn", "torch.relu(x)", dtype="float16", side='mode = "eval"\nmath_mode = "fp16"\n')
        for command in (("describe", task), ("optimize", task), ("eval", task, "best")):
            if command[0] == "eval":
                self.assert_code(self.cutegen("new", task, "--out", "best"), 0)
            self.assert_error(self.cutegen(*command, "--math-mode", "bf16"), 2, "torn.toml:2",
                              "flag --math-mode asks for math_mode bf16, the side file for fp16",
                              "give both the same value")
        self.write("cutegen.toml", 'math_mode = "bf16"\n')
        self.assert_error(self.cutegen("describe", task), 2, "torn.toml:2", "cutegen.toml")

    def test_a_mode_coarser_than_the_dtypes_is_refused(self) -> None:
        task = self.task("single", "torch.relu(x) + 1")
        self.assert_error(self.cutegen("describe", task, "--math-mode", "bf16"), 2, "flag --math-mode",
                          "math_mode bf16 would loosen the check: 'out' depends on float32 tensors", "omit it")

    def test_bounds_that_accept_nothing_are_refused(self) -> None:
        task = self.task("plain", "torch.relu(x)")
        self.assert_error(self.cutegen("describe", task, "--rtol", "0"), 2, "flag --rtol",
                          "this bound", "give a number above 0")
        for value in ("nan", "inf", "much", "-1"):
            self.assert_error(self.cutegen("describe", task, f"--rtol={value}"), 2, "--rtol",
                              "finite number")
        self.assert_error(self.cutegen("describe", task, "--math-mode", "fp322"), 2, "--math-mode",
                          "did you mean 'fp32'?")
        self.write("plain.toml", "tolerance = nan\n")
        self.assert_error(self.cutegen("describe", task), 2, "plain.toml:1", "tolerance is nan")


if __name__ == "__main__":
    harness.main()
