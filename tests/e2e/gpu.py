# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=300 cost=40
"""cuda: devices from end to end. Without a GPU, the tests use a driver without one (tests/fake_cuda), and drivers that
fail; with a GPU, a program runs on it.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

import harness
from harness import Json

FAKE = harness.BIN.parent / "tests/libfake_cuda.so"
SEVENS = '''import torch
import torch.nn as nn

size = 4096


class Model(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x) + 7


def get_inputs():
    return [torch.randint(0, 9, (64, size), dtype=torch.int32)]


def get_init_inputs():
    return []
'''
SOURCE = 'extern "C" __global__ void {}(int* out) {{ out[blockIdx.x] = 7; }}\n'
RELU = '''extern "C" __global__ void f(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], 0.0f) + 1.0f;
}
'''
ONE_SHAPE = '''import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x.view(2 ** 12, 2 ** 11)) + 1


def get_inputs():
    return [torch.randn(4096, 2048)]


def get_init_inputs():
    return []
'''


PROPOSER = '''import json, sys
program = {program!r}
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "task":
        answer = {{"type": "ready"}}
    elif message["evaluations"]:
        answer = {{"type": "nothing", "reason": "that is all"}}
    else:
        answer = {{"type": "candidate", "program": program, "summary": "sevens"}}
    print(json.dumps(answer), flush=True)
'''


def plan(kernel: str) -> Json:
    return {"cutegen": 1, "dialect": "cuda", "arch": ["sm_80+"], "sources": ["kernel.cu"],
            "steps": [{"kernel": kernel, "grid": ["size(x)", 1, 1], "block": [1, 1, 1],
                       "args": [{"tensor": "out"}]}]}


class FakeGpu(harness.Case):
    def driver(self, how: str) -> dict[str, str]:
        """The fake driver; its name says how it fails."""
        link = FAKE.parent / "fake_cuda" / f"{how}.so"
        link.parent.mkdir(exist_ok=True)
        try:
            link.symlink_to(FAKE)
        except FileExistsError:
            pass
        return {"CUTEGEN_CUDA_DRIVER": str(link)}

    def program(self, kernel: str) -> Path:
        self.write(f"{kernel}/plan.json", json.dumps(plan(kernel)))
        self.write(f"{kernel}/kernel.cu", SOURCE.format(kernel))
        return self.folder / kernel


class WithoutAGpu(FakeGpu):
    def test_a_fault_and_a_hang_between_good_programs(self) -> None:
        task = self.write("sevens.py", SEVENS)
        good, fault, hang = (self.program(name) for name in ("sevens", "fault", "hang"))
        result = self.cutegen("eval", task, good, fault, good, hang, good, "--device", "cuda:0", "--json",
                              env=self.driver("good"), timeout=240)
        self.assert_code(result, 3)
        verdicts = [entry["verdict"] for entry in result.json()["verdicts"]]
        self.assertEqual([v["status"] for v in verdicts],
                         ["correct", "failed", "correct", "failed", "correct"],
                         [v["feedback"]["headline"] for v in verdicts])
        good = verdicts[0]
        self.assertEqual((good["device"], good["gpu"]), ("cuda:0", "NVIDIA H200"))
        self.assertEqual(good["driver"], "of CUDA 13.0")
        self.assertEqual(good["timing"]["origin"], "measured")
        self.assertEqual(good["timing"]["time_ns"], 5e5)
        self.assertGreaterEqual(good["timing"]["samples"], 5)
        self.assertTrue(good["sandbox"]["held"]["seccomp"])
        self.assertIn("fault: out_of_bounds", verdicts[1]["feedback"]["headline"])
        self.assertIn("does not end within its time", verdicts[3]["feedback"]["headline"])

    def test_a_batch_of_two_evaluators(self) -> None:
        for n in range(6):
            folder = self.program("sevens" if n % 3 else "fault")
            folder.rename(self.folder / f"in_{n}")
            self.write(f"in_{n}/task.py", SEVENS)
        (self.folder / "in").mkdir()
        for n in range(6):
            (self.folder / f"in_{n}").rename(self.folder / f"in/{n}")
        result = self.cutegen("eval", "--batch", self.folder / "in", "--out", "verdicts", "--device", "cuda:0",
                              "--evaluators", "2", "--json", env=self.driver("good"), timeout=240)
        self.assert_code(result, 0)
        entries = result.json()["entries"]
        self.assertEqual([e["status"] for e in entries], ["failed", "correct", "correct"] * 2, entries)
        key = json.loads((self.folder / "verdicts/1.json").read_text())["key"]
        self.assertEqual(key["device"], "NVIDIA H200")

    def test_what_is_missing_is_said_with_code_6(self) -> None:
        task = self.write("sevens.py", SEVENS)
        folder = self.program("sevens")
        for how, words in (("no_device", "shows no gpu"), ("old", "too old"), ("memory", "out of memory"),
                           ("busy", "another program uses this GPU"), ("unknown", "no file describes")):
            result = self.cutegen("eval", task, folder, "--device", "cuda:0", env=self.driver(how))
            self.assert_error(result, 6, words)
        nothing = {"CUTEGEN_CUDA_DRIVER": "/no/such/libcuda.so.1"}
        result = self.cutegen("eval", task, folder, "--device", "cuda:0", env=nothing)
        self.assert_error(result, 6, "no gpu driver here", "sim:h200")
        result = self.cutegen("eval", task, folder, "--device", "cuda:0",
                              env={**self.driver("good"), "CUTEGEN_PYTHON": "/usr/bin/python3"})
        if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True,
                          check=False).returncode:
            self.assert_error(result, 6, "torch")

    def test_a_run_says_its_machine_and_why_nothing_is_certified(self) -> None:
        """The fake driver runs no torch, so eager and the certificate have a reason instead of times."""
        task = self.write("sevens.py", SEVENS)
        program = {"plan": plan("sevens"), "sources": {"kernel.cu": SOURCE.format("sevens")}}
        self.write("propose.py", PROPOSER.format(program=program))
        command = ("optimize", task, "--device", "cuda:0", "--proposer", f"{sys.executable} propose.py",
                   "--out", "best", "--runs", "runs", "--no-profile")
        environment = {**self.driver("good"), "CUTEGEN_NCU": "/no/such/ncu"}
        result = self.cutegen(*command, env=environment, timeout=240)
        self.assert_code(result, 0)
        for part in (r"device +NVIDIA H200 \(cuda:0, driver of CUDA 13.0\)",
                     r"counters +none: CUTEGEN_NCU is not a program: /no/such/ncu; profiles use",
                     r"vs best so far +SM clock", r"c1 +500 us +- +\S+( GHz)? +1\.00x .*better +\d+\.\d s +0:\d\d",
                     r"stopped +that is all", r"best +c1, 500 us measured", r"saved +launches \d+ -> 1",
                     r"certified +no: \S", r"shapes official", r"on other shapes, dtypes and GPUs",
                     r"written .*best: plan.json, kernel.cu, verdict.json\n"):
            self.assertRegex(result.out, part)
        below = self.cutegen(*command, "--fail-under", "1.05", "--certify-minutes", "0", "--json",
                             env=environment, timeout=240)
        self.assert_code(below, 7)
        document = below.json()
        self.assertEqual(document["fail_under"], {"wanted": 1.05, "reached": False})
        self.assertIn("--certify-minutes 0", document["certified"]["why"])
        self.assertEqual(document["gpu"]["name"], "NVIDIA H200")

    def test_doctor_shows_the_gpu(self) -> None:
        result = self.cutegen("doctor", "--json", env=self.driver("good"))
        driver = next(c for c in result.json()["checks"] if c["name"] == "GPU driver")
        self.assertEqual(driver["state"], "ok")
        self.assertIn("cuda:0 NVIDIA H200 (sm_90a", driver["detail"])


    def test_doctor_prints_the_commands_that_mend_a_gpu_machine(self) -> None:
        """If the driver is older than every NVRTC here, torch has no CUDA, or ncu is missing, simulators still work."""
        result = self.cutegen("doctor", "--json", env={**self.driver("cuda12"), "CUTEGEN_NCU": "/no/ncu"})
        checks = {check["name"]: check for check in result.json()["checks"]}
        nvrtc = checks["NVRTC"]
        self.assertEqual(nvrtc["state"], "warning")
        self.assertIn("newer than the driver's CUDA 12.2, so cuda: devices cannot use it", nvrtc["detail"])
        self.assertIn("pip install 'nvidia-cuda-nvrtc-cu12<=12.2.999'", nvrtc["mend"])
        if "+cpu" in checks["Python and PyTorch"]["detail"]:
            self.assertEqual(checks["Python and PyTorch"]["state"], "warning")
            self.assertIn("torch with CUDA", checks["Python and PyTorch"]["mend"])
        self.assertIn("CUTEGEN_NCU", checks["hardware counters"]["detail"])
        self.assertTrue(checks["hardware counters"]["mend"])
        self.assert_code(result, 0)
        text = self.cutegen("doctor", env=self.driver("cuda12"))
        self.assertRegex(text.out, r"(?m)^warning +NVRTC .*\n +-> update the driver")
        self.assertIn("Ready", text.out)


class OnAGpu(harness.Case):
    def judged(self, text: str, kernel: str = RELU) -> Json:
        """The verdict on a program."""
        doctor = self.cutegen("doctor", "--json").json()
        driver = next(c for c in doctor["checks"] if c["name"] == "GPU driver")
        if driver["state"] != "ok":
            self.skipTest("no GPU here: " + driver["detail"])
        self.write("p/kernel.cu", kernel)
        steps = [{"kernel": "f", "grid": ["ceil_div(size(x),256)", 1, 1], "block": [256, 1, 1],
                  "args": [{"tensor": "x"}, {"tensor": "out"}, {"i32": "size(x)"}]}]
        self.write("p/plan.json", json.dumps({**plan("f"), "steps": steps}))
        result = self.cutegen("eval", self.write("task.py", text), self.folder / "p", "--device", "cuda:0", "--json")
        return result.json()["verdicts"][0]["verdict"]

    def test_a_program_is_judged(self) -> None:
        verdict = self.judged(harness.ADD)
        self.assertEqual(verdict["status"], "correct", verdict["feedback"]["headline"])
        self.assertEqual(verdict["timing"]["origin"], "measured")

    def test_the_official_shape_is_enough_if_the_module_permits_no_other(self) -> None:
        verdict = self.judged(ONE_SHAPE)
        self.assertEqual(verdict["status"], "correct", verdict["feedback"]["headline"])
        self.assertIn("no other shape than the official one was tested", "; ".join(verdict["marks"]))
        self.assertGreaterEqual(verdict["sets_judged"], 3)
        wrong = self.judged(ONE_SHAPE, RELU.replace("i < n", "i < n - 1"))
        self.assertEqual(wrong["status"], "failed", wrong["feedback"]["headline"])


if __name__ == "__main__":
    if not FAKE.exists() and "CUTEGEN_BIN" not in os.environ:
        raise unittest.SkipTest(f"no {FAKE}: build the tests first")
    harness.main()
