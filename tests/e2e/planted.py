# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=1200 cost=40
"""The simulator catches planted faults of synchronisation in programs for Hopper.

The programs are the builtin proposer's own, with so few stages and CTAs that every ring buffer wraps. Each fault
changes one statement of a component or of the program (plant.py). The programs without faults pass. A commit chooses
one program and about five of its faults; with CUTEGEN_ALL_CASES=1 the test judges all of them.
tests/planted/survivors.json lists the faults that are not caught, each with the reason.
"""
from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import harness
import plant
from evaluator_client import Evaluator, load_program
from harness import Json

PLANTED = harness.ROOT / "tests/planted"
JUDGED = 5  # faults a commit
KERNEL = "kernel.cu"
TASK = """import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = {layer}

    def forward(self, {names}):
        return {result}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


@dataclasses.dataclass(frozen=True)
class Case:
    headers: tuple[str, ...]  # each is included by the program or by the header before it
    names: str
    result: str
    inputs: str
    change: tuple[tuple[str, str], ...] = ()  # patterns in kernel.cu, and what replaces them
    step: Json = dataclasses.field(default_factory=dict)  # fields of the step that launches `kernel`
    kernel: str = "matmul"
    layer: str = "None"
    mode: str = ""
    only: str = ""  # pattern of the faults' names: the others lie in code of other cases

    @property
    def task(self) -> tuple[str, str]:
        side = f'math_mode = "{self.mode}"\n' if self.mode else ""
        return TASK.format(names=self.names, result=self.result, inputs=self.inputs, layer=self.layer), side

    def faults(self, program: Json) -> dict[str, plant.Fault]:
        texts = {**{name: plant.header(name) for name in self.headers}, KERNEL: program["sources"][KERNEL]}
        return {fault.name: fault for file, text in texts.items() for fault in plant.plant(file, text)
                if re.search(self.only, fault.name)}

    def changed(self, program: Json) -> Json:
        """The program with fewer stages, and other changes of the case."""
        source, plan = program["sources"][KERNEL], program["plan"]
        for pattern, replacement in self.change:
            source, count = re.subn(pattern, replacement, source)
            if count == 0:
                raise ValueError(f"no {pattern!r} in the program")
        steps = [{**step, **self.step} if step.get("kernel") == self.kernel else step for step in plan["steps"]]
        return {**program, "sources": {KERNEL: source}, "plan": {**plan, "steps": steps}}

    def with_fault(self, program: Json, fault: plant.Fault | None) -> Json:
        """The program with the text of its headers."""
        source = program["sources"][KERNEL] if fault is None or fault.file != KERNEL else fault.text
        for name in self.headers:
            source = plant.inline(source, name, fault.text if fault and fault.file == name else plant.header(name))
        return {**program, "sources": {KERNEL: source}}


THREE_STAGES = ((r"kStages = \d+", "kStages = 3"),)
SHORT_RINGS = ((r"kPatches = \d+, kWeights = \d+", "kPatches = 2, kWeights = 2"),)
WITHOUT_TMA = r"\(2\)$|tma_store_fence|no swizzle|arrive_barrier\(full\)"
# Code that is compiled only for convolutions with three products, or only for convolutions that read runs
# without copies ahead.
OF_RUNS = (r"patch_empty\[patch_\], patch_phase_ \^ 1\);$|arrive_barrier\(storage.patch_full\[patch_\]\);$|"
           r"tma_store_fence|warpgroup_wait<0>\(\); \(2\)$|kLow|arrival too few|conv_loads.*sync\(\)")
# Code that only warpgroups which take turns run.
IN_TURNS = r"storage\.order|order\["
CONVOLUTION = ("conv_wgmma.cuh", "conv_loads.cuh")
CASES = {
    "product": Case(("gemm_wgmma.cuh",), "x, w", "x @ w",
                    "torch.randn(256, 2560, dtype=torch.bfloat16), torch.randn(2560, 384, dtype=torch.bfloat16)",
                    THREE_STAGES, {"grid": [1, 4, 1]}, only=f"^(?!.*({IN_TURNS}))"),
    "product in turns": Case(("gemm_wgmma.cuh",), "x, w", "x @ w",
                             "torch.randn(2048, 192, dtype=torch.bfloat16), "
                             "torch.randn(192, 2048, dtype=torch.bfloat16)",
                             THREE_STAGES, {"grid": [1, 1, 1]}, only=IN_TURNS),
    "product in clusters": Case(("gemm_wgmma.cuh",), "x, w", "x @ w",
                                "torch.randn(1536, 512, dtype=torch.bfloat16), "
                                "torch.randn(512, 1536, dtype=torch.bfloat16)",
                                (*THREE_STAGES, (r"kTileN = \d+", "kTileN = 256"), (r"kCluster = 1", "kCluster = 2")),
                                {"cluster": [2, 1, 1], "grid": [2, 1, 1]},
                                only=f"^(?!.*({IN_TURNS})).*(cluster|multicast|setmaxnreg|half the stride|"
                                   "arrival too few)"),
    "product of floats": Case(("gemm_wgmma_fp32.cuh",), "x, w", "x @ w",
                              "torch.randn(512, 1024), torch.randn(1024, 384)", THREE_STAGES),
    "attention": Case(("attention_wgmma.cuh",), "q, k, v", "F.scaled_dot_product_attention(q, k, v)",
                      "torch.randn(1, 2, 1100, 128, dtype=torch.bfloat16), "
                      "*(torch.randn(1, 2, 1100, 128, dtype=torch.bfloat16) for _ in range(2))",
                      step={"grid": [1, 1, 1]}, kernel="attention", only=f"^(?!.*({WITHOUT_TMA}))"),
    "attention without TMA": Case(("attention_wgmma.cuh",), "q, k, v", "F.scaled_dot_product_attention(q, k, v)",
                                  "torch.randn(1, 2, 1100, 36, dtype=torch.bfloat16), "
                                  "*(torch.randn(1, 2, 1100, 36, dtype=torch.bfloat16) for _ in range(2))",
                                  step={"grid": [1, 1, 1]}, kernel="attention",
                                  only=f"{WITHOUT_TMA}|arrival too few"),
    "convolution": Case(CONVOLUTION, "x", "torch.relu(self.layer(x))", "torch.rand(1, 144, 20, 70)", SHORT_RINGS,
                        {"grid": [3, 1, 1]}, "window", layer="nn.Conv2d(144, 136, 3, padding=1)",
                        only=r"^(?!.*(kernel\.cu|sync\(threadIdx|cp_async_fence.*\(2\)))"),
    "convolution of runs": Case(CONVOLUTION, "x", "self.layer(x)", "torch.rand(1, 96, 10, 36)", SHORT_RINGS,
                                {"grid": [1, 1, 1]}, "window", layer="nn.Conv2d(96, 20, 3, padding=1)", mode="fp32",
                                only=OF_RUNS),
    "softmax": Case(("resident.cuh",), "x", "torch.softmax(x, 1)", "torch.randn(16, 131072)"),
}


class Planted(harness.Case):
    def solved(self, name: str) -> Json:
        """The program of the builtin proposer, with the changes of the case."""
        task = self.solve({name: CASES[name].task})[name]
        self.assertEqual(task.status, "correct", f"{name}: {task.reason}")
        return CASES[name].changed(load_program(task.folder))

    def test_planted_faults_are_caught(self) -> None:
        survivors = json.loads((PLANTED / "survivors.json").read_text())
        self.assertLessEqual(set(survivors), set(CASES))
        with Evaluator(self.environment()) as evaluator:
            for name in harness.in_turn({name: name for name in CASES}, len(CASES)):
                case, program, excused = CASES[name], self.solved(name), survivors.get(name, {})
                faults = case.faults(program)
                self.assertLessEqual(set(excused), set(faults), f"survivors.json names no fault of {name}")
                wanted = {key: fault for key, fault in faults.items() if key not in excused}
                text, side = case.task
                file = self.write(f"{name}.py", text)
                if side:
                    self.write(f"{name}.toml", side)
                evaluator.open_task(file)
                self.assertEqual(evaluator.evaluate(case.with_fault(program, None))["status"], "correct")
                for key, fault in harness.in_turn(wanted, -(-len(wanted) // JUDGED)).items():
                    with self.subTest(key):
                        rungs = evaluator.evaluate(case.with_fault(program, fault))["rungs"]
                        failed = [rung["rung"] for rung in rungs if rung["result"] == "failed"]
                        self.assertTrue(failed, "the fault is not caught")
                        self.assertNotIn(failed[0], ("lint", "compile", "audit"), "the fault does not run")


if __name__ == "__main__":
    harness.main()
