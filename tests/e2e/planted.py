# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=1200 cost=40
"""The simulator catches planted faults of synchronisation in programs for Hopper.

The programs are the builtin proposer's own, with rings of stages so short that every ring wraps. Each fault changes
one statement of a component (tests/planted/plant.py). The originals pass. A commit chooses a few of the faults; with
CUTEGEN_ALL_CASES=1 all of them are judged. tests/planted/harmless.json lists the faults that change no result, each
with the reason.
"""
from __future__ import annotations

import dataclasses
import json
import re
import sys

import harness
from evaluator_client import Evaluator, load_program
from harness import Json

PLANTED = harness.ROOT / "tests/planted"
sys.path.insert(0, str(PLANTED))
import plant  # noqa: E402

PARTS = 40
TASK = """import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, {names}):
        return {result}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


@dataclasses.dataclass(frozen=True)
class Case:
    header: str
    names: str
    result: str
    inputs: str
    shorter: tuple[tuple[str, str], ...] = ()  # patterns in kernel.cu, and what replaces them

    @property
    def task(self) -> str:
        return TASK.format(names=self.names, result=self.result, inputs=self.inputs)


CASES = {
    "product": Case("gemm_wgmma.cuh", "x, w", "x @ w",
                    "torch.randn(256, 512, dtype=torch.bfloat16), torch.randn(512, 384, dtype=torch.bfloat16)",
                    ((r"kStages = \d+", "kStages = 3"),)),
    "product_fp32": Case("gemm_wgmma_fp32.cuh", "x, w", "x @ w", "torch.randn(256, 512), torch.randn(512, 256)",
                         ((r"kStages = \d+", "kStages = 3"),)),
    "attention": Case("attention_wgmma.cuh", "q, k, v", "F.scaled_dot_product_attention(q, k, v, is_causal=True)",
                      ", ".join(["torch.randn(1, 4, 640, 64, dtype=torch.bfloat16)"] * 3)),
    "convolution": Case("conv_wgmma.cuh", "x, w", "torch.relu(F.conv2d(x, w, padding=1))",
                        "torch.randn(4, 64, 28, 28), torch.randn(64, 64, 3, 3)",
                        ((r"kPatches = \d+, kWeights = \d+", "kPatches = 2, kWeights = 4"),)),
    "softmax": Case("resident.cuh", "x", "torch.softmax(x, 1)", "torch.randn(16, 131072)"),
}  # fmt: skip


class Planted(harness.Case):
    def solved(self, cases: list[str]) -> dict[str, Json]:
        """The programs of the builtin proposer, with shorter rings."""
        tasks = {name: CASES[name].task for name in cases}
        programs = {}
        for name, task in self.solve(tasks).items():
            self.assertEqual(task.status, "correct", f"{name}: {task.reason}")
            program = load_program(task.folder)
            file = program["plan"]["sources"][0]
            for pattern, shorter in CASES[name].shorter:
                self.assertRegex(program["sources"][file], pattern)
                program["sources"][file] = re.sub(pattern, shorter, program["sources"][file])
            programs[name] = program
        return programs

    def test_planted_faults_are_caught(self) -> None:
        harmless = json.loads((PLANTED / "harmless.json").read_text())
        faults = {f"{name}: {fault.name}": (name, fault)
                  for name, case in CASES.items() for fault in plant.plant(case.header)}  # fmt: skip
        self.assertEqual([], [name for name in harmless if name not in faults], "harmless.json names no fault")
        chosen = harness.in_turn({k: v for k, v in faults.items() if k not in harmless}, PARTS)
        programs = self.solved(sorted({name for name, _ in chosen.values()}))
        with Evaluator(self.environment()) as evaluator:
            for name, program in programs.items():
                evaluator.open_task(self.write(f"{name}.py", CASES[name].task))
                self.assertEqual(self.judged(evaluator, name, program, None), "correct")
                for full, (case, fault) in chosen.items():
                    if case == name:
                        with self.subTest(full):
                            self.assertEqual(self.judged(evaluator, name, program, fault), "failed")

    def judged(self, evaluator: Evaluator, name: str, program: Json, fault: plant.Fault | None) -> str:
        header = CASES[name].header
        text = fault.text if fault else (plant.HEADERS / header).read_text()
        file = program["plan"]["sources"][0]
        sources = {**program["sources"], file: plant.inline(program["sources"][file], header, text)}
        return evaluator.evaluate({**program, "sources": sources})["status"]


if __name__ == "__main__":
    harness.main()
