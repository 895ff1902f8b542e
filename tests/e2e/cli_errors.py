# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900 cost=50
"""Bad input on the command line: each error has one line with the cause, the place and the remedy, and no process
stays.
"""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
from harness import Json

# A task file without its model, in which each test makes a mistake.
TASK = """import torch
import torch.nn as nn

{model}

def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""
RELU = "class Model(nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n"


def task(model: str = RELU, inputs: str = "torch.randn(64, 256)") -> str:
    return TASK.format(model=model, inputs=inputs)


def forward(line: str) -> str:
    """A module whose forward() has this line as line 6 of the file."""
    return f"class Model(nn.Module):\n    def forward(self, x):\n        {line}\n"


def bad(content: str | bytes, *words: str) -> tuple[str | bytes, tuple[str, ...]]:
    """The content of a task file, and the expected error."""
    return content, words


BAD = {
    "empty": bad("", "empty|no class|no 'model'|model"),
    "binary": bad(bytes(range(256)) * 64),
    "unparsable": bad("import torch\n\ndef broken(:\n    pass\n", r"task\.py:3"),
    "no_model": bad("import torch\nx = 1\n", "model"),
    "no_get_inputs": bad("import torch.nn as nn\nclass Model(nn.Module):\n    pass\n", "get_inputs"),
    "an_import_that_is_not_there": bad("import no_such_package_at_all\n" + task(), r"task\.py:1",
                                       "no_such_package_at_all"),
    "raises_when_made": bad(task("class Model(nn.Module):\n    def __init__(self):\n"
                                 "        raise ValueError('made of glass')\n"), r"task\.py:6", "made of glass"),
    "raises_when_called": bad(task(forward("raise RuntimeError('not today')")), r"task\.py:6", "not today"),
    "escapes_in_a_message": bad(task("class Model(nn.Module):\n    raise ValueError('\\x1b[31mred\\x07')\n"),
                                r"task\.py:5"),
    "shapes_that_do_not_fit": bad(task(forward("return x @ x"), "torch.randn(3, 5)"), r"task\.py:6"),
    "shapes_that_overflow": bad(task(inputs="torch.randn(1 << 40, 1 << 40)")),
    "inputs_that_are_no_tensors": bad(task(inputs="object()"), "input|get_inputs"),
    "inputs_that_are_no_list": bad(task().replace("return [torch.randn(64, 256)]", "return 7"), "get_inputs"),
    "exits": bad("import sys; sys.exit(0)\n" + task()),
    "ends_its_process": bad("import os; os._exit(0)\n" + task()),
    "kills_itself": bad("import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n" + task()),
}


class TaskFiles(harness.Case):
    """`describe` of a bad file; `optimize` and `eval` read files with the same code."""

    def test_each_bad_file_gets_one_line_and_does_not_disturb_the_next(self) -> None:
        files = [self.write(f"{name}/task.py", content) for name, (content, _) in BAD.items()]
        good = self.write("good/task.py", task())
        result = self.cutegen("describe", *files, good)
        self.assert_code(result, 2)
        self.assertIn(f"1 described, {len(BAD)} failed", result.out)
        self.assertNotIn("good/task.py", result.err)
        self.assertNotIn("\x1b", result.err)
        self.assert_no_crash(result)
        lines = [line for line in result.err.splitlines() if "error: " in line]
        self.assertEqual(len(lines), len(BAD), str(result))
        for line, (name, (_, parts)) in zip(lines, BAD.items()):
            with self.subTest(name):
                self.assert_error_line(line, f"{name}/task\\.py", *parts)

    def test_one_bad_file(self) -> None:
        self.assert_error(self.cutegen("describe", self.write("task.py", "import torch\n")), 2, r"task\.py", "model")

    def test_missing(self) -> None:
        self.assert_error(self.cutegen("describe", "no_such_file.py"), 2, "no_such_file.py",
                          "no such file")

    def test_a_folder(self) -> None:
        self.assert_error(self.cutegen("describe", self.folder), 2, "folder")

    def test_errors_speak_json(self) -> None:
        result = self.cutegen("describe", self.write("task.py", "x = 1\n"), "--json")
        self.assert_code(result, 2)
        failed = result.json()["failed"]
        self.assertEqual(len(failed), 1)
        self.assertIn("task.py", failed[0]["where"] + failed[0]["message"])


class Settings(harness.Case):
    def test_an_unknown_gpu_lists_the_known(self) -> None:
        file = self.write("task.py", task())
        self.write("program/plan.json", json.dumps(PLAN))
        self.write("program/kernel.cu", KERNEL)
        program = self.folder / "program"
        for command in (("optimize", file), ("eval", file, program), ("describe", file)):
            with self.subTest(command=command[0]):
                device = "--gpu" if command[0] == "describe" else "--device"
                name = "h2000" if command[0] == "describe" else "sim:h2000"
                self.assert_error(self.cutegen(*command, device, name), 2, "h2000", "h200")

    def test_a_device_of_another_kind(self) -> None:
        self.assert_error(self.cutegen("optimize", self.write("task.py", task()), "--device",
                                       "tpu:0"), 2, "tpu:0", "sim:")

    def test_an_unknown_model(self) -> None:
        self.assert_error(self.cutegen("optimize", self.write("task.py", task()), "--model",
                                       "no-such-model"), 2, "no-such-model", "builtin")

    def test_an_interpreter_that_is_none(self) -> None:
        result = self.cutegen("describe", self.write("task.py", task()), "--python", "/no/python")
        self.assertIn(result.code, (2, 6), str(result))
        self.assertRegex(result.err, "/no/python")

    def test_a_run_that_is_not_there(self) -> None:
        for command in ("show", "report", "resume"):
            with self.subTest(command=command):
                self.assert_error(self.cutegen(command, "nosuchrun"), 2, "nosuchrun|no run")


KERNEL = """extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] > 0.f ? x[i] : 0.f;
}
"""
LOOP = KERNEL.replace("  if (i < n)", "  while (n == n) __syncthreads();\n  if (i < n)")
PLAN = {
    "cutegen": 1, "dialect": "cuda", "arch": ["sm_80+"], "sources": ["kernel.cu"],
    "symbols": {"n": "size(x)"},
    "steps": [{"kernel": "relu", "grid": ["ceil_div(n,256)", 1, 1], "block": [256, 1, 1],
               "args": [{"tensor": "x"}, {"tensor": "out"}, {"i32": "n"}]}]}


class Programs(harness.Case):
    """`check DIR TASK` and `eval TASK DIR` of a bad kernel program."""

    def setUp(self) -> None:
        super().setUp()
        self.task = self.write("task.py", task())

    def program(self, change: Callable[[Json], object] = lambda plan: None, kernel: str = KERNEL,
                text: str | None = None, name: str = "program") -> Path:
        plan = json.loads(json.dumps(PLAN))
        change(plan)
        self.write(f"{name}/plan.json", text if text is not None else json.dumps(plan))
        self.write(f"{name}/kernel.cu", kernel)
        return self.folder / name

    def refused(self, program: Path, *parts: str) -> None:
        """`check` refuses the program as a user error, before it compiles anything."""
        result = self.cutegen("check", program, self.task)
        self.assert_code(result, 2)
        for part in parts:
            self.assertRegex(result.err + result.out, part)

    def test_a_good_program_passes(self) -> None:
        self.assert_code(self.cutegen("check", self.program()), 0)

    def test_verdicts_of_programs_beside_each_other(self) -> None:
        def other_tensor(plan: Json) -> None:
            plan["steps"][0]["args"][0]["tensor"] = "y"

        def fewer_arguments(plan: Json) -> None:
            plan["steps"][0]["args"].pop()

        def kernel(old: str, new: str) -> dict[str, str]:
            return {"kernel": KERNEL.replace(old, new)}

        # {name: (difference from a good program, status, text in the verdict)}
        wanted: dict[str, tuple[dict[str, Any], str, str]] = {
            "good": ({}, "correct", "correct on"),
            "wrong": (kernel(": 0.f", ": 1.f"), "failed", "elements wrong"),
            "broken": (kernel("float* out", "flaot* out"), "failed", r"kernel\.cu[:(]1"),
            "unknown_tensor": ({"change": other_tensor}, "failed", r"'y'.*did you mean 'x'"),
            "fewer_arguments": ({"change": fewer_arguments}, "failed", "argument|parameter"),
            "endless": ({"kernel": LOOP}, "failed", "instruction|budget|time"),
            "good_at_the_end": ({}, "correct", "correct on"),
        }
        programs = [self.program(name=name, **differs) for name, (differs, *_) in wanted.items()]
        result = self.cutegen("eval", self.task, *programs, "--json", timeout=300)
        self.assert_code(result, 3)
        for entry, (name, (_, status, words)) in zip(result.json()["verdicts"], wanted.items(), strict=True):
            with self.subTest(name):
                self.assertEqual(entry["verdict"]["status"], status, json.dumps(entry))
                self.assertRegex(json.dumps(entry["verdict"]), words)

    def test_what_is_no_baseline_and_what_is_no_gpu_cannot_be_certified(self) -> None:
        program = self.program()
        self.assert_error(self.cutegen("certify", self.task, program, "--baseline", "egaer"), 2,
                          "egaer", "eager, eager-fp32")
        self.assert_error(self.cutegen("certify", self.task, program, "--baseline", "a:b", "c:d"),
                          2, "more than one")
        self.assert_error(self.cutegen("certify", self.task, program), 5, "measured times",
                          "--device cuda:0")

    def test_baselines_need_tasks_known_names_and_a_gpu(self) -> None:
        self.assert_error(self.cutegen("baselines"), 2, "give task files or --kernelbench")
        self.assert_error(self.cutegen("baselines", self.task, "--baseline", "egaer"), 2, "egaer",
                          "eager, eager-fp32")
        self.assert_error(self.cutegen("baselines", self.task), 6, "baselines need a GPU",
                          "--device cuda:0")

    def test_no_folder(self) -> None:
        self.assert_error(self.cutegen("check", self.folder / "nothing"), 2, "nothing")

    def test_a_file(self) -> None:
        self.assert_error(self.cutegen("eval", self.task, self.write("kernel.cu", "x")), 2,
                          "the folder of a program, found a file")

    def test_an_empty_folder(self) -> None:
        (self.folder / "hollow").mkdir()
        self.assert_error(self.cutegen("check", self.folder / "hollow"), 2, r"plan\.json")

    def test_a_plan_that_is_no_json(self) -> None:
        self.refused(self.program(text="{\n  \"cutegen\": 1,,\n}"), r"plan\.json:2")

    def test_an_empty_and_a_binary_plan(self) -> None:
        for text in ("", "\x00\x01\x02" * 100, "[" * 100000):
            self.refused(self.program(text=text), r"plan\.json")

    def test_a_misspelt_field(self) -> None:
        def change(plan: Json) -> None:
            plan["stpes"] = plan.pop("steps")
        self.refused(self.program(change), "stpes", "steps")

    def test_a_reserved_field_is_refused_by_name(self) -> None:
        def change(plan: Json) -> None:
            plan["states"] = []
        self.refused(self.program(change), "states")

    def test_an_unknown_tensor(self) -> None:
        def change(plan: Json) -> None:
            plan["steps"][0]["args"][0]["tensor"] = "y"
        self.refused(self.program(change), r"plan\.json(#/steps/0/args/0|:1)", "'y'", "did you mean 'x'")

    def test_an_unknown_symbol(self) -> None:
        def change(plan: Json) -> None:
            plan["steps"][0]["grid"][0] = "ceil_div(m,256)"
        self.refused(self.program(change), r"plan\.json", "'m'")

    def test_a_missing_source(self) -> None:
        program = self.program()
        (program / "kernel.cu").unlink()
        self.refused(program, r"kernel\.cu")

    def test_a_source_outside_the_folder(self) -> None:
        def change(plan: Json) -> None:
            plan["sources"] = ["../../secret.cu"]
        self.refused(self.program(change), "secret")

    def test_a_grid_of_zero(self) -> None:
        def change(plan: Json) -> None:
            plan["steps"][0]["grid"][0] = 0
        self.refused(self.program(change), "grid")

    def test_three_gigabytes_of_shared_memory(self) -> None:
        def change(plan: Json) -> None:
            plan["steps"][0]["shared_bytes"] = 3 << 30
        self.refused(self.program(change), "shared")


if __name__ == "__main__":
    harness.main()
