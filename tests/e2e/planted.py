# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=1200 cost=40
"""The simulator catches planted faults of synchronisation in programs for Hopper.

The programs are the builtin proposer's own, with so few stages that every ring buffer wraps. Each fault changes one
statement of a component (plant.py). The programs without faults pass. A commit chooses one program and a tenth of its
faults; with CUTEGEN_ALL_CASES=1 the test judges all of them. tests/planted/survivors.json lists the faults that are not
caught, each with the reason.
"""
from __future__ import annotations

import dataclasses
import json
import re

import harness
import plant
from evaluator_client import Evaluator, load_program
from harness import Json

PLANTED = harness.ROOT / "tests/planted"
PARTS = 10
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
    "softmax": Case("resident.cuh", "x", "torch.softmax(x, 1)", "torch.randn(16, 131072)"),
}


class Planted(harness.Case):
    def solved(self, name: str) -> Json:
        """The program of the builtin proposer, with fewer stages."""
        case = CASES[name]
        task = self.solve({name: case.task})[name]
        self.assertEqual(task.status, "correct", f"{name}: {task.reason}")
        program = load_program(task.folder)
        file = program["plan"]["sources"][0]
        for pattern, shorter in case.shorter:
            self.assertRegex(program["sources"][file], pattern)
            program["sources"][file] = re.sub(pattern, shorter, program["sources"][file])
        return program

    def test_planted_faults_are_caught(self) -> None:
        survivors = json.loads((PLANTED / "survivors.json").read_text())
        faults = {name: {fault.name: fault for fault in plant.plant(case.header)} for name, case in CASES.items()}
        for name, reasons in survivors.items():
            self.assertLessEqual(set(reasons), set(faults[name]), f"survivors.json names no fault of {name}")
        with Evaluator(self.environment()) as evaluator:
            for name in harness.in_turn({name: name for name in CASES}, len(CASES)):
                wanted = {key: fault for key, fault in faults[name].items() if key not in survivors.get(name, {})}
                program = self.solved(name)
                evaluator.open_task(self.write(f"{name}.py", CASES[name].task))
                self.assertEqual(self.judged(evaluator, name, program, None), "correct")
                for key, fault in harness.in_turn(wanted, min(PARTS, len(wanted))).items():
                    with self.subTest(key):
                        self.assertEqual(self.judged(evaluator, name, program, fault), "failed")

    def judged(self, evaluator: Evaluator, name: str, program: Json, fault: plant.Fault | None) -> str:
        header = CASES[name].header
        text = fault.text if fault else (plant.HEADERS / header).read_text()
        file = program["plan"]["sources"][0]
        sources = {**program["sources"], file: plant.inline(program["sources"][file], header, text)}
        return evaluator.evaluate({**program, "sources": sources})["status"]


if __name__ == "__main__":
    harness.main()
