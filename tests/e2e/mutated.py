# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=600 cost=40
"""Tasks that mutate inputs or buffers, from the description to the verdict.

attacks.py judges the programs of tests/attacks; this test judges two of them from the command line, third-party
solutions, and tasks that no recipe covers. A commit chooses half of the tasks with third-party solutions; with
CUTEGEN_ALL_CASES=1 the test judges all of them.
"""
from __future__ import annotations

import json
import shutil

import harness
from harness import Json

ATTACKS = harness.ROOT / "tests/attacks"
TASKS = ATTACKS / "tasks"
OWN_NORM = '''
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale, self.shift = (torch.nn.Parameter(torch.ones(features)) for _ in range(2))
        for name in ("mean", "var"):
            self.register_buffer(name, torch.zeros(features))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        {body}
        return torch.nn.functional.batch_norm(x, {statistics}, self.scale, self.shift, True)
'''
ROWS = """
import torch

tokens, slots, width = 4096, 16384, 128


class Model(torch.nn.Module):
    def forward(self, new, cache, ids):
        {statement}


def get_inputs():
    return [torch.randn(tokens, width), torch.randn(slots, width), torch.randperm(slots)[:tokens]]


def get_init_inputs():
    return []
"""


def solution(task: str, *changes: tuple[str, str]) -> str:
    """The reference's own text, with these replacements, as a third-party solution."""
    text = (TASKS / f"{task}.py").read_text().replace("class Model", "class ModelNew")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


class Mutated(harness.Case):
    def describe(self, task: str) -> Json:
        result = self.cutegen("describe", TASKS / f"{task}.py", "--json")
        self.assert_code(result, 0)
        return result.json()["tasks"][0]

    def test_what_describe_says(self) -> None:
        task = self.describe("cache")
        self.assertEqual([t["name"] for t in task["tensors"] if t["mutated"]], ["k_cache", "v_cache"])
        self.assertNotIn("returns", task)
        self.assertEqual(self.describe("relu_in_place")["returns"], ["x"])
        text = self.cutegen("describe", TASKS / "relu_in_place.py").out
        self.assertIn("(mutated)", text)
        self.assertRegex(text, r"returns +x\n")

    def test_shapes_have_an_index_for_each_row(self) -> None:
        """Meta kernels of index_put and index_reduce accept numbers that do not fit; forward() raises when it runs."""
        for statement in ("cache[ids] = new", 'cache.index_reduce_(0, ids, new, "amax")',
                          "cache.index_copy_(0, ids, new)"):
            task = self.write("rows.py", ROWS.format(statement=statement))
            result = self.cutegen("describe", task, "--json")
            self.assert_code(result, 0)
            shapes = [s["tensors"] for s in result.json()["tasks"][0]["shapes"]]
            self.assertGreater(len(shapes), 3)
            self.assertEqual([s["new"][0] for s in shapes], [s["ids"][0] for s in shapes], statement)

    def test_programs_from_the_command_line(self) -> None:
        """attacks.py judges the other programs of these tasks."""
        kept, forgotten = ATTACKS / "cache_kept", ATTACKS / "cache_forgotten"
        result = self.cutegen("eval", TASKS / "cache.py", kept, forgotten, "--json", timeout=300)
        self.assert_code(result, 3)
        good, bad = (entry["verdict"] for entry in result.json()["verdicts"])
        self.assertEqual(good["status"], "correct", str(good["feedback"]))
        self.assertEqual(good["timing"]["origin"], "modelled")
        self.assertEqual(bad["status"], "failed", str(bad["feedback"]))
        self.assertRegex(bad["feedback"]["headline"], r"[kv]_cache: .*never written")

    def test_a_plan_has_to_pass_what_forward_mutates(self) -> None:
        shutil.copytree(ATTACKS / "sum_kept", self.folder / "p")
        plan = json.loads((self.folder / "p/plan.json").read_text())
        plan["steps"][0]["args"][1] = {"tensor": "x"}
        self.write("p/plan.json", json.dumps(plan))
        checked = self.cutegen("check", self.folder / "p", TASKS / "moving_sum.py")
        self.assert_code(checked, 2)
        self.assertIn("no step gets the mutated tensor 'total'", checked.out)

    def test_no_recipe_forgets_it(self) -> None:
        written = {"relu_in_place": {"x"}, "moving_sum": {"total"},
                   "train_norm": {"norm_running_mean", "norm_running_var", "norm_num_batches_tracked"}}
        for task, tensors in written.items():
            out = self.folder / task
            made = self.cutegen("optimize", TASKS / f"{task}.py", "--evaluations", 1, "--model", "builtin",
                                "--out", out, "--runs", self.folder / "runs", timeout=240)
            self.assert_code(made, 0)
            plan = json.loads((out / "plan.json").read_text())
            last = {arg.get("tensor") for step in plan["steps"] for arg in step["args"]}
            self.assertLessEqual(tensors, last, task)

    def test_third_party_solutions(self) -> None:
        norm = "x, self.mean, self.var"
        told = {
            "cache": {"good": (solution("cache"), ""),
                      "copies": (solution("cache", ("        k_cache.index", "        k_cache = k_cache.clone()\n"
                                                    "        k_cache.index")), "k_cache: .*never written")},
            "relu_in_place": {"good": (solution("relu_in_place"), ""),
                              "new": (solution("relu_in_place", ("inplace=True", "")), "x: .*never written")},
            "moving_sum": {"replaces": (solution("moving_sum", ("self.total.mul_(0.75).add_(x * x)",
                                                                "self.total = self.total * 0.75 + x * x")), ""),
                           "twice": (solution("moving_sum", ("self.total.mul_(0.75)", "self.total.mul_(0.5625)")),
                                     "total: ")},
            "train_norm": {"own_names": (OWN_NORM.format(body="self.count += 1", statistics=norm[3:]), ""),
                           "forgets": (OWN_NORM.format(body="self.count += 1", statistics="None, None"),
                                       "norm.running_mean: .*never written")},
        }
        for task, solutions in harness.in_turn(told, 2).items():
            files = [self.write(f"{task}/{name}.py", text) for name, (text, _) in solutions.items()]
            result = self.cutegen("eval", TASKS / f"{task}.py", *files, "--json", timeout=300)
            self.assertIn(result.code, (0, 3), str(result))
            for (name, (_, words)), entry in zip(solutions.items(), result.json()["verdicts"]):
                with self.subTest(f"{task}: {name}"):
                    verdict = entry["verdict"]
                    self.assertEqual(verdict["status"], "failed" if words else "correct", str(verdict["feedback"]))
                    self.assertRegex(verdict["feedback"]["headline"], words or "^correct")


if __name__ == "__main__":
    harness.main()
