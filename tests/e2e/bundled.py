# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=300 cost=30
"""The bundle works in another folder and with an empty environment."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import harness
from harness import Json

PYTHON = os.environ.get("CUTEGEN_PYTHON") or str(harness.ROOT / ".venv/bin/python")
KERNEL = '''#include <cute/tensor.hpp>
extern "C" __global__ void f(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  auto in = cute::make_tensor(cute::make_gmem_ptr(x), cute::make_shape(n));
  if (i < n) out[i] = fmaxf(in(i), 0.0f) + 1.0f;
}
'''
PLAN = {"cutegen": 1, "dialect": "cute", "arch": ["sm_80+"], "sources": ["kernel.cu"],
        "symbols": {"n": "size(x)"},
        "steps": [{"id": "f", "kernel": "f", "grid": ["ceil_div(n,256)", 1, 1], "block": [256, 1, 1],
                   "args": [{"tensor": "x"}, {"tensor": "out"}, {"i32": "n"}]}]}


class Bundle(harness.Case):
    def pack(self) -> Path:
        """The bundle, moved out of the folder in which it was made."""
        made = self.folder / "made"
        subprocess.run([sys.executable, harness.ROOT / "tools/bundle.py", "--bin", harness.BIN, "--out",
                        made], check=True, stdout=subprocess.DEVNULL)
        moved = self.folder / "a place" / "cutegen"
        moved.parent.mkdir()
        made.rename(moved)
        return moved

    def judge(self, bundle: Path, **more: str) -> tuple[Json, str]:
        """A verdict in an environment with two variables: the path of programs, and a folder for files."""
        task = self.write("add.py", harness.ADD)
        self.write("program/plan.json", json.dumps(PLAN))
        self.write("program/kernel.cu", KERNEL)
        result = subprocess.run([bundle / "bin/cutegen", "eval", task, self.folder / "program", "--device",
                                 "sim:h200", "--python", PYTHON, "--json"], cwd=self.folder, text=True,
                                env={"PATH": "/usr/bin:/bin", "HOME": str(self.home), **more},
                                capture_output=True, timeout=240, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return json.loads(result.stdout)["verdicts"][0]["verdict"], result.stderr

    def test_runs_from_another_folder_with_an_empty_environment(self) -> None:
        if not Path(PYTHON).exists():
            self.skipTest(f"no interpreter {PYTHON}")
        bundle = self.pack()
        verdict, _ = self.judge(bundle)
        self.assertEqual(verdict["status"], "correct")
        self.assertEqual(verdict["sandbox"]["held"].get("seccomp"), True)
        self.assertGreater(verdict["timing"]["time_ns"], 0)

        old = next(Path(PYTHON).parent.parent.glob("lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.12"),
                   None)
        if old is None:
            self.skipTest(f"the environment of {PYTHON} has no NVRTC 12")
        verdict, told = self.judge(bundle, CUTEGEN_NVRTC=str(old))
        self.assertEqual(verdict["status"], "correct")
        self.assertIn("this NVRTC has no precompiled headers", told)  # it was the old one

    def test_doctor_says_what_the_machine_lacks(self) -> None:
        bundle = self.pack()
        link = self.folder / "cutegen"
        link.symlink_to(bundle / "bin/cutegen")  # the script follows links to itself
        result = subprocess.run([link, "doctor", "--json"], cwd=self.folder, text=True,
                                env={"PATH": "/usr/bin:/bin", "HOME": str(self.home),
                                     "CUTEGEN_PYTHON": "/bin/true"},
                                capture_output=True, timeout=120, check=False)
        self.assertEqual(result.returncode, 6, result.stdout + result.stderr)
        checks = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
        self.assertEqual(checks["Python and PyTorch"]["state"], "missing")
        self.assertIn("GPU driver", checks)


if __name__ == "__main__":
    harness.main()
