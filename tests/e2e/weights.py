# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=300 cost=30
"""Modelled times from end to end on a simulator: the evaluator times each weighted shape, the headline is the weighted
geometric mean, a search stops by the headline, and cutegen refuses side files without a headline. Results that skipped
blocks did not write do not count as NaN. A side file whose shapes are all too large to be tested is an error.
"""
from __future__ import annotations

import json
import math

import harness
from harness import Json

KERNEL = '''extern "C" __global__ void f(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], 0.0f) + 1.0f;
}
'''
PLAN = {"cutegen": 1, "dialect": "cuda", "sources": ["kernel.cu"],
        "steps": [{"kernel": "f", "grid": ["ceil_div(size(x),256)", 1, 1], "block": [256, 1, 1],
                   "args": [{"tensor": "x"}, {"tensor": "out"}, {"i32": "size(x)"}]}]}
# Runs at no size that is small enough for a test shape.
FIXED = harness.ADD.replace("4096", "3000").replace("randn(64, ", "randn(size, ").replace("return []", "return [size]")
FIXED = FIXED.replace("    def forward", """    def __init__(self, size):
        super().__init__()
        if size < 2.9e3:
            raise ValueError("too small")

    def forward""")
SIDE = '''[[shapes]]
name = "wide"
weight = 3
constants = { size = 262144 }

[[shapes]]
name = "tested"
weight = 0
constants = { size = 100 }
'''


# The second kernel reads the results of other blocks, and may be slow for some of them.
TWO_STEPS = '''extern "C" __global__ void first(const float* x, float* t, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) t[i] = x[i];
}
extern "C" __global__ void second(const float* t, float* out, int n) {
  int i = n - 1 - int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < 0) return;
  float value = t[i];
  if (SLOW)
    for (int k = 0; k < 3000; ++k) value = fmaxf(value, fminf(value, t[(i + k) % n]));
  out[OUT] = fmaxf(value, 0.0f) + 1.0f;
}
'''


class Weights(harness.Case):
    def judge(self, side: str, code: int = 0, plan: Json = PLAN) -> harness.Result:
        task = self.write("add.py", harness.ADD)
        self.write("add.toml", side)
        self.write("p/kernel.cu", KERNEL)
        self.write("p/plan.json", json.dumps(plan))
        result = self.cutegen("eval", task, self.folder / "p", "--json")
        self.assert_code(result, code)
        return result

    def test_the_headline_is_the_weighted_geometric_mean(self) -> None:
        verdict = self.judge(SIDE).json()["verdicts"][0]["verdict"]
        timing = verdict["timing"]
        self.assertEqual(timing["shape"], "weighted shapes")
        self.assertEqual([(s["shape"], s["weight"]) for s in timing["shapes"]], [("official", 1), ("wide", 3)])
        official, wide = (s["time_ns"] for s in timing["shapes"])
        self.assertGreater(wide, 2 * official)
        self.assertAlmostEqual(timing["time_ns"], math.exp((math.log(official) + 3 * math.log(wide)) / 4), delta=1)
        floors = [s["floor_ns"] for s in timing["shapes"]]
        self.assertAlmostEqual(timing["floor_ns"], math.exp((math.log(floors[0]) + 3 * math.log(floors[1])) / 4),
                               delta=1)
        self.assertIn("weighted geometric mean of 2 shapes", verdict["feedback"]["headline"])

    def test_without_weights_nothing_changes(self) -> None:
        side = SIDE.replace("weight = 3", "weight = 0").replace("262144", "1000")  # without a weight it is run whole
        timing = self.judge(side).json()["verdicts"][0]["verdict"]["timing"]
        self.assertEqual(timing["shape"], "official")
        self.assertNotIn("shapes", timing)

    def check_skipped_blocks(self, task: str, out: str) -> None:
        step = {"grid": ["ceil_div(size(x),256)", 1, 1], "block": [256, 1, 1]}
        plan = {**PLAN, "scratch": [{"name": "t", "dtype": "f32", "shape": ["size(x)"]}], "steps": [
            {**step, "kernel": "first", "args": [{"tensor": "x"}, {"tensor": "t"}, {"i32": "size(x)"}]},
            {**step, "kernel": "second", "args": [{"tensor": "t"}, {"tensor": "out"}, {"i32": "size(x)"}]}]}
        conditions = {"plain": "false", "nan": "value != value", "equal": "value == t[i > 0 ? i - 1 : 1]"}
        for name, slow in conditions.items():
            self.write(f"{name}/kernel.cu", TWO_STEPS.replace("SLOW", slow).replace("OUT", out))
            self.write(f"{name}/plan.json", json.dumps(plan))
        result = self.cutegen("eval", task, *(self.folder / name for name in conditions), "--json")
        self.assert_code(result, 0)
        plain, *others = (v["verdict"]["timing"]["time_ns"] for v in result.json()["verdicts"])
        for slow in others:
            self.assertLess(slow, 1.3 * plain)

    def test_results_of_skipped_blocks_are_ordinary_numbers(self) -> None:
        self.check_skipped_blocks(self.write("add.py", harness.ADD.replace("4096", "262144")), "i")

    def test_they_are_ordinary_in_large_scratch_without_an_excerpt(self) -> None:
        flipped = harness.ADD.replace("4096", "100000").replace("torch.relu(x)", "torch.relu(x.flip(0).flip(1))")
        self.check_skipped_blocks(self.write("flip.py", flipped), "n - 1 - i")

    def test_a_search_takes_the_headline(self) -> None:
        task = self.write("add.py", harness.ADD)
        self.write("add.toml", SIDE)
        result = self.cutegen("optimize", task, "--evaluations", 2, "--out", "best", "--runs", "runs", "--json")
        self.assert_code(result, 0)
        verdict = json.loads((self.folder / "best/verdict.json").read_text())
        self.assertEqual(len(verdict["timing"]["shapes"]), 2)
        self.assertEqual(result.json()["best"]["time_ns"], verdict["timing"]["time_ns"])

    def test_a_plan_that_refuses_a_weighted_shape_is_unsupported(self) -> None:
        result = self.judge(SIDE, code=5, plan={**PLAN, "requires": ["dim(x,1) < 100000"]})
        verdict = result.json()["verdicts"][0]["verdict"]
        self.assertEqual(verdict["status"], "unsupported")
        self.assertIn("the plan rejects the shape 'wide', which has a weight", verdict["feedback"]["headline"])

    def test_a_side_file_without_a_headline_is_refused(self) -> None:
        self.write("add.py", harness.ADD)
        self.write("add.toml", SIDE + '[[shapes]]\nname = "official"\nweight = 0\n')
        result = self.cutegen("describe", "add.py")
        self.assert_error(result, 2, "the official shape needs a weight above 0", "add.toml:",
                          "into the task file")

    def test_a_side_file_without_a_test_shape_is_refused(self) -> None:
        self.write("add.py", FIXED)
        self.write("p/kernel.cu", KERNEL)
        self.write("p/plan.json", json.dumps(PLAN))
        self.write("add.toml", '[[shapes]]\nname = "wide"\nconstants = { size = 3200 }\n')
        result = self.cutegen("eval", "add.py", "p")
        self.assert_error(result, 2, "no test shape is left", "add.toml", "add an entry with weight = 0, of at most")


if __name__ == "__main__":
    harness.main()
