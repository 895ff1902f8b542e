# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=600 cost=30
"""Rewrites by algebra, from a task file to the verdict: each rule changes the program and stays correct on every input
family, nothing changes unless the user asks, and the summary of a bench keeps rewritten tasks apart.

A commit chooses a sixth of the rules; with CUTEGEN_ALL_CASES=1 all of them are applied.
"""
from __future__ import annotations

import json

import harness

TASK = '''import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        {body}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''
LINEAR = "self.fc = nn.Linear(72, 40)"


RULES = {  # {name: (rule, __init__, the body of forward(), inputs)}
    "sum_of_a_product": ("sum-of-product", LINEAR, "return (self.fc(x) / 2).sum(1, keepdim=True) * 1.5",
                         "torch.rand(48, 72)"),
    "mean_of_a_half_precision_product": (
        "sum-of-product", "self.w = nn.Parameter(torch.randn(72, 40, dtype=torch.float16))",
        "return (x @ self.w).mean(1)",
        "torch.randn(48, 72).half()"),
    "mean_of_a_transposed_convolution_with_padding_on_both_sides": (
        "mean-of-convolution", "self.conv = nn.ConvTranspose2d(5, 7, 3, stride=2, padding=1)",
        "return (self.conv(x) * 0.5).mean([2, 3])", "torch.rand(3, 5, 12, 14)"),
    "mean_of_a_convolution_over_lines": (
        "mean-of-convolution", "self.conv = nn.Conv1d(5, 7, 3, padding=1)", "return self.conv(x).mean(2)",
        "torch.rand(3, 5, 50)"),
    "one_element": (
        "one-element", "pass",
        "return torch.softmax(x.amax(1, keepdim=True), 1) + x.sum(1, keepdim=True).mean(1, keepdim=True)",
        "torch.randn(48, 72)"),
    "clamps": ("merge-clamps", "pass", "return torch.clamp(torch.relu(x), 0.25, 5)", "torch.randn(48, 72)"),
    "factors": ("fold-scales", "pass", "return torch.tanh(x * 3.0 / 7.0)", "torch.randn(48, 72)"),
}


class Rewrites(harness.Case):
    def task(self, name: str, init: str, body: str, inputs: str) -> str:
        return self.write(name, TASK.format(init=init, body=body, inputs=inputs))

    def with_rules(self, names: list[str], *options: object) -> dict[str, harness.SolvedTask]:
        """The best program of each named task, which has to be correct."""
        solved = self.solve({name: TASK.format(init=init, body=body, inputs=inputs)
                             for name, (_, init, body, inputs) in RULES.items() if name in names}, *options)
        for name, row in solved.items():
            self.assertEqual(row.status, "correct", f"{name}: {row.reason}")
        return solved

    def test_each_rule_alone_is_named_as_possible_and_applied_if_chosen(self) -> None:
        rules = harness.in_turn(dict.fromkeys(rule for rule, *_ in RULES.values()), 5)
        before = self.with_rules([name for name in RULES if RULES[name][0] in rules])
        for rule in rules:
            after = self.with_rules([name for name in RULES if RULES[name][0] == rule], "--rewrites", rule)
            for name, row in after.items():
                with self.subTest(name):
                    offered = [(r["rule"], r["applied"]) for r in before[name].rewrites]
                    self.assertIn((rule, False), offered)
                    self.assertNotIn(True, [applied for _, applied in offered])
                    self.assertIn((rule, True), [(r["rule"], r["applied"]) for r in row.rewrites])
                    self.assertNotEqual(before[name].verdict["program_id"], row.verdict["program_id"])
                    if name == "sum_of_a_product":
                        self.assertNotIn("matmul", json.dumps(row.plan))

    def test_a_constant_result_is_said_to_be_one(self) -> None:
        task = self.task("task.py", LINEAR, "y = self.fc(x).amax(1, keepdim=True)\n"
                         "        return nn.functional.gelu(y - y.mean(1, keepdim=True))", "torch.rand(48, 72)")
        result = self.cutegen("optimize", task, "--device", "sim:h200", "--evaluations", 1, "--no-profile",
                              "--rewrites", "all", "--out", "best", timeout=300)
        self.assert_code(result, 0)
        self.assertIn("constant-result: every element of 'gelu' is 0 whatever the inputs are", result.out)

    def test_the_summary_names_what_was_not_used(self) -> None:
        task = self.task("task.py", LINEAR, "return self.fc(x).sum(1)", "torch.rand(48, 72)")
        result = self.cutegen("optimize", task, "--device", "sim:h200", "--evaluations", 1, "--no-profile",
                              "--out", "best", timeout=300)
        self.assert_code(result, 0)
        self.assertIn("not used: sum-of-product would apply: the sum over 40 results", result.out)
        self.assertIn("--rewrites sum-of-product", result.out)
        self.assert_code(self.cutegen("show", "last", "--json"), 0)

    def test_a_run_with_rewrites_replays(self) -> None:
        task = self.task("task.py", LINEAR, "return self.fc(x).sum(1)", "torch.rand(48, 72)")
        result = self.cutegen("optimize", task, "--evaluations", 1, "--no-profile", "--rewrites", "all",
                              "--out", "best",
                              timeout=300)
        self.assert_code(result, 0)
        self.assert_code(self.cutegen("optimize", "--replay", "last"), 0)

    def test_an_unknown_rewrite_is_an_error(self) -> None:
        task = self.task("task.py", LINEAR, "return self.fc(x).sum(1)", "torch.rand(48, 72)")
        result = self.cutegen("optimize", task, "--rewrites", "sum-of-products")
        self.assert_code(result, 2)
        self.assertIn("did you mean 'sum-of-product'?", result.err)

    def test_a_bench_counts_rewritten_tasks_apart(self) -> None:
        self.task("suite/level1/1_sum.py", LINEAR, "return self.fc(x).sum(1)", "torch.rand(48, 72)")
        self.task("suite/level1/2_relu.py", "pass", "return torch.relu(x)", "torch.randn(48, 72)")
        self.task("suite/level1/3_zero.py", "pass", "return x - x", "torch.randn(48, 72)")
        result = self.cutegen("bench", "--kernelbench", "suite", "--evaluations", 1, "--rewrites", "sum-of-product",
                              "--out", "bench", "--json", timeout=400)
        self.assert_code(result, 0)
        summary = result.json()["summary"]["rewrites"]
        self.assertEqual([summary[k]["tasks"] for k in ("rewritten", "as_written", "constant")], [1, 1, 1])
        self.assertEqual(result.json()["settings"]["rewrites"], "sum-of-product")


if __name__ == "__main__":
    harness.main()
