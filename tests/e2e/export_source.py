# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=600 cost=35
"""cutegen export --to source: nvcc compiles the file, and its launcher queues the plan's launches.

Without a GPU, a library replaces CUDA's runtime and records each launch. The tests compare the launches with
launches.json. At sizes that the program does not accept, they expect the launches of the source kernel.
"""
from __future__ import annotations

import ctypes
import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import harness
import kernel_tasks
from harness import Json

TASKS = harness.ROOT / "tasks/astra"
PYTHON = os.environ.get("CUTEGEN_PYTHON", str(harness.ROOT / ".venv/bin/python"))
NVCC = shutil.which("nvcc") or next((str(p) for p in sorted(Path("/usr/local").glob("cuda*/bin/nvcc"))), None)

RUNTIME = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct { unsigned grid[3], block[3]; size_t shared; void *stream, *attributes; unsigned count; } Config;
static struct { const void* host; const char* name; } known[64];
static int kernels, wanted;
static char told[1 << 16];
void** __cudaRegisterFatBinary(void* p) { static void* handle; (void)p; return &handle; }
void __cudaRegisterFatBinaryEnd(void** h) { (void)h; }
void __cudaUnregisterFatBinary(void** h) { (void)h; }
void __cudaRegisterVar(void** h) { (void)h; }
char __cudaInitModule(void** h) { (void)h; return 0; }
void __cudaRegisterFunction(void** h, const void* host, char* device, const char* name) {
  (void)h, (void)device;
  known[kernels].host = host, known[kernels++].name = name;
}
int __cudaPushCallConfiguration(void) { return 0; }
int __cudaPopCallConfiguration(void) { return 0; }
int cudaLaunchKernel(void) { return 0; }
int __cudaLaunchKernel(void) { return 0; }
int __cudaGetKernel(void** kernel, const void* host) { *kernel = (void*)host; return 0; }
int cudaGetDevice(int* d) { *d = 0; return 0; }
int cudaDeviceGetAttribute(int* v, int which, int d) { (void)which, (void)d; *v = 132; return 0; }
int cudaFuncSetAttribute(const void* f, int which, int v) {
  (void)f, sprintf(told + strlen(told), "set %d %d\n", which, v);
  return 0;
}
int cudaMallocAsync(void** p, size_t n, void* s) {
  (void)s, *p = malloc(n), sprintf(told + strlen(told), "malloc %zu\n", n);
  return 0;
}
int cudaFreeAsync(void* p, void* s) { (void)s, free(p), strcat(told, "free\n"); return 0; }
int cudaMemsetAsync(void* p, int v, size_t n, void* s) {
  (void)s, memset(p, v, n), sprintf(told + strlen(told), "memset %zu\n", n);
  return 0;
}
int cudaLaunchKernelExC(const Config* c, const void* f, void** args) {
  const char* name = "?";
  for (int i = 0; i < kernels; ++i) if (known[i].host == f) name = known[i].name;
  sprintf(told + strlen(told), "launch %s %u %u %u %u %u %u %zu %u", name, c->grid[0], c->grid[1], c->grid[2],
          c->block[0], c->block[1], c->block[2], c->shared, c->count);
  const int few = strstr(name, "fill_kernel") || strstr(name, "5count") ? 3 : wanted;
  for (int i = 0; i < few; ++i) {
    unsigned long long v = 0;
    memcpy(&v, args[i], 8);
    sprintf(told + strlen(told), " %016llx", v);
  }
  strcat(told, "\n");
  return 0;
}
const char* tell(int arguments) {
  static char out[1 << 16];
  strcpy(out, told), told[0] = 0, wanted = arguments;
  return out;
}
"""
# Uses a vector width from a define, a module's constant, scratch, a fill, and a step that seldom
# runs.
PROGRAM = """#include <cutegen/math.cuh>
#define SPREAD 2
struct Storage { float part[32]; };
extern "C" __device__ const int storage_bytes = sizeof(Storage);
extern "C" __global__ void count(float* part, const int* seen, int n) { if (!threadIdx.x) part[0] = n + seen[0] * 0; }
extern "C" __global__ void add(const float* x, float* out, int n, float* part) {
  extern __shared__ float memory[];
  memory[threadIdx.x] = 1.0f;
  for (int i = (blockIdx.x * blockDim.x + threadIdx.x) * WIDTH; i < n; i += gridDim.x * blockDim.x * WIDTH)
    for (int j = 0; j < WIDTH; ++j) out[i + j] = fmaxf(x[i + j], 0.0f) + memory[threadIdx.x];
}
"""
PLAN: Json = {
    "cutegen": 1, "dialect": "cuda", "sources": ["kernel.cu"], "symbols": {"n": "size(x)", "cols": "dim(x,1)"},
    "defines": {"WIDTH": "cols % 4 == 0 ? 4 : 1"}, "requires": ["cols % 2 == 0"],
    "scratch": [{"name": "part", "dtype": "f32", "shape": ["dim(x,0)", 3], "init": "zero"},
                {"name": "seen", "dtype": "i32", "shape": [5]}],
    "steps": [{"fill": "seen", "value": 7},
              {"id": "count", "kernel": "count", "grid": [1], "block": [32], "when": "n > 100000",
               "args": [{"tensor": "part"}, {"tensor": "seen"}, {"i32": "n"}]},
              {"id": "add", "kernel": "add", "grid": ["min(ceil_div(n, 256*4), gpu.sms)"], "block": [256],
               "shared_bytes": "k(storage_bytes)*8",
               "args": [{"tensor": "x"}, {"tensor": "out"}, {"i32": "n"}, {"tensor": "part"}]}]}


@unittest.skipUnless(NVCC, "no nvcc here")
class ExportSource(harness.Case):
    place: Path
    runtime: ctypes.CDLL

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.place = Path(tempfile.mkdtemp(prefix="cutegen-runtime-"))
        cls.addClassCleanup(shutil.rmtree, cls.place)
        (cls.place / "runtime.c").write_text(RUNTIME)
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", "libruntime.so", "runtime.c"], cwd=cls.place, check=True)
        cls.runtime = ctypes.CDLL(str(cls.place / "libruntime.so"), mode=ctypes.RTLD_GLOBAL)
        cls.runtime.tell.restype = ctypes.c_char_p

    def program(self, source: str, plan: Json) -> Path:
        self.write("program/kernel.cu", source)
        self.write("program/plan.json", json.dumps(plan))
        return self.folder / "program"

    def export(self, program: Path, task: str | Path, *more: object) -> Path:
        result = self.cutegen("export", program, "--task", task, "--to", "source", "--device", "sim:h200",
                              "--out", "drop",
                              *more, timeout=200)
        self.assert_code(result, 0)
        return self.folder / "drop"

    def build(self, folder: Path, name: str) -> tuple[ctypes.CDLL, Json]:
        """The compiled library, linked with a runtime that records launches, and its signature."""
        done = subprocess.run([PYTHON, "-B", "-c",
                               f"import {name}_op as o, json; o.build(); print(json.dumps(o.SIGNATURE))"],
                              cwd=folder, capture_output=True, text=True, check=False,
                              env={**os.environ, "NVCC": f"{NVCC} -cudart none"})
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-4000:])
        alone = self.place / f"{name}.so"  # a library of one path is loaded once
        shutil.copy(folder / f"{name}.so", alone)
        return ctypes.CDLL(str(alone)), json.loads(done.stdout)

    def launches(self, library: ctypes.CDLL, signature: Json, sizes: Mapping[str, Sequence[int]], arguments: int,
                 scalars: Mapping[str, float] | None = None, offset: int = 0) -> tuple[list[str], dict[str, int]]:
        """What one call queues: (recorded lines, addresses by tensor)."""
        self.runtime.tell(arguments)
        numbers: dict[str, type[Any]] = {"i32": ctypes.c_int32, "f32": ctypes.c_float, "i64": ctypes.c_int64}
        given: list[Any] = []  # numbers and pointers of ctypes, which share no public type
        addresses: dict[str, int] = {}
        for arg in signature["args"]:
            if "tensor" in arg:
                addresses[arg["tensor"]] = 0x10000 * (len(addresses) + 1) + offset
                given.append(ctypes.c_void_p(addresses[arg["tensor"]]))
            elif "dim" in arg:
                given.append(numbers[arg["type"]](sizes[arg["dim"][0]][arg["dim"][1]]))
            else:
                given.append(numbers[arg["type"]]((scalars or {}).get(arg.get("scalar"), 0)))
        given += [ctypes.c_int64(sizes[tensor][axis]) for tensor, axis in signature["sizes"]]
        self.assertEqual(getattr(library, signature["function"])(*given, None), 0)
        return self.runtime.tell(arguments).decode().splitlines(), addresses

    def check_launch(self, line: str, step: Json, names: list[str], addresses: dict[str, int]) -> None:
        """A recorded launch equals one of launches.json."""
        words = line.split()
        self.assertIn(step["kernel"], words[1], line)
        wanted = [*step["grid"], *step["block"], step["shared"]]
        self.assertEqual([int(w) for w in words[2:9]], wanted, line)
        for word, arg in zip(words[10:], step["args"]):
            value = struct.pack("<Q", int(word, 16))
            if "value" in arg:
                self.assertEqual(value.hex()[: len(arg["value"])], arg["value"], line)
            elif arg["buffer"] < len(names):
                self.assertEqual(int(word, 16), addresses[names[arg["buffer"]]], line)

    def check_shapes(self, folder: Path, name: str,
                     scalars: Mapping[str, float] | None = None) -> tuple[ctypes.CDLL, Json, Json]:
        """At every exported shape, the launcher queues the launches of launches.json."""
        library, signature = self.build(folder, name)
        data = json.loads((folder / "launches.json").read_text())
        names = [n for key in ("inputs", "state", "outputs") for n, _ in data[key]]
        for shape in data["shapes"]:
            with self.subTest(shape["name"]):
                steps = [s for s in shape["steps"] if "kernel" in s]
                most = max(len(s["args"]) for s in steps)
                lines, addresses = self.launches(library, signature, shape["tensors"], most, scalars)
                queued = [line for line in lines if line.startswith("launch") and "fill_kernel" not in line]
                self.assertEqual(len(queued), len(steps), lines)
                for line, step in zip(queued, steps):
                    self.assertIn("_program", line.split()[1], "the source kernel runs")
                    self.check_launch(line, step, names, addresses)
        return library, signature, data

    def test_the_three_tasks(self) -> None:
        """The program is the production-grade kernel instead of the simple one."""
        for name in kernel_tasks.VECTORS:
            with self.subTest(name):
                shutil.rmtree(self.folder / "drop", ignore_errors=True)
                program = self.program(*kernel_tasks.vectors(name))
                folder = self.export(program, TASKS / f"{name}.cu")
                text = (folder / f"{name}.cu").read_text()
                self.assertIn((TASKS / f"{name}.cu").read_text().split("\n", 1)[1], text,
                              "the source kernel is not whole")
                library, signature, _ = self.check_shapes(folder, name, {"eps": 1e-6})
                sizes = {"x": [3, 66 if "silu" in name else 33], "out": [3, 33], "residual": [3, 33], "weight": [33],
                         "v_a": [3, 1, 33]}
                lines, _ = self.launches(library, signature, sizes, len(signature["args"]), {"eps": 0.5})
                self.assertEqual(len(lines), 1)
                self.assertRegex(lines[0], f"launch {name} 3 1 1 ", "at sizes that the program refuses")
                if "rms" in name:
                    self.assertEqual(lines[0].split()[-1][-8:], struct.pack(">f", 0.5).hex(), "the caller's eps")
                sizes = {"x": [3, 8192 if "silu" in name else 4096], "out": [3, 4096], "v_a": [3, 1, 128]}
                lines, _ = self.launches(library, signature, sizes, len(signature["args"]), offset=16)
                self.assertRegex(lines[0], f"launch {name} 3 1 1 ", "at addresses that the program was not judged at")

    def test_every_field_of_a_plan(self) -> None:
        self.write("reference.py",
                   harness.ADD.replace("size = 4096", "size = 4096\nrows = 64").replace("(64,", "(rows,"))
        self.write("add.toml", kernel_tasks.SIDE + '[[shapes]]\nname = "pairs"\nconstants = { size = 4098 }\n'
                   '[[shapes]]\nname = "little"\nconstants = { rows = 2 }\n')
        task = self.write("add.cu", kernel_tasks.KERNEL)
        folder = self.export(self.program(PROGRAM, PLAN), task)
        library, signature, data = self.check_shapes(folder, "add")
        self.assertEqual(len(data["modules"]), 2, "two widths")
        self.assertTrue((folder / "cutegen/math.cuh").exists())
        for rows, width in ((64, 4096), (2, 4098)):
            lines, _ = self.launches(library, signature, {"x": [rows, width]}, 4)
            self.assertEqual(lines[0], f"malloc {(rows * 12 + 255) // 256 * 256 + 256}")
            self.assertEqual(lines[1], f"memset {rows * 12}")
            self.assertIn("fill_kernel", lines[2])
            self.assertEqual(lines[2].split()[-2][-8:], "00000007")
            self.assertEqual(lines[-3], "set 8 1024", "static shared memory counts as well")
            self.assertIn(f"add_program{int(width % 4 != 0)}3add", lines[-2])
            self.assertEqual("5count" in "".join(lines), rows * width > 100000)
            self.assertEqual(lines[-1], "free")
        lines, _ = self.launches(library, signature, {"x": [2, 4097]}, 3)
        self.assertRegex(lines[0], "launch add 8 1 1 256 1 1 0 ")

    def test_it_is_checked_like_other_exports(self) -> None:
        name, program = "silu_and_mul", self.folder / "program"
        plan = {"cutegen": 1, "dialect": "cuda", "sources": ["kernel.cu"], "symbols": {"hidden": "dim(out,1)"},
                "steps": [{"kernel": name, "grid": ["dim(x,0)"], "block": [256],
                           "args": [{"tensor": "out"}, {"tensor": "x"}, {"i32": "hidden"}]}]}
        self.program((TASKS / f"{name}_vectors.cu").read_text(), plan)
        folder = self.export(program, TASKS / f"{name}.cu")
        script = (f"import torch, {name}_op as o\nprint(o.op.default._schema)\n"
                  "if True:\n"
                  "    t = [torch.empty(2, n, dtype=torch.float16, device='meta') for n in (8, 16)]\n"
                  "    assert o.op(*t) is None\n"
                  "for bad in (t[0].float(), t[1][:, ::2], t[0][0]):\n"
                  "    try:\n        o._check({'out': bad})\n        raise SystemExit('taken')\n"
                  "    except ValueError as error:\n        assert \"'out' must be\" in str(error), error\n")
        for arguments in (["-c", script], [f"test_{name}.py"]):
            done = subprocess.run([PYTHON, "-B", *arguments], cwd=folder, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr[-3000:])
            self.assertRegex(done.stdout, r"silu_and_mul\(Tensor\(a0!\) out, Tensor x\) -> \(\)|\bok\b")
        self.assertIn("silu_and_mul_launch", (folder / "README.md").read_text())

    def test_what_is_refused(self) -> None:
        self.write("task.py", harness.ADD)
        plan = {**PLAN, "defines": {"WIDTH": 1}}
        program = self.program(PROGRAM, plan)
        result = self.cutegen("export", program, "--task", "task.py", "--to", "source", "--device", "sim:h200")
        self.assert_error(result, 2, "is no CUDA kernel", "--to torch")
        self.write("reference.py", harness.ADD)
        self.write("add.toml", kernel_tasks.SIDE)
        task = self.write("add.cu", kernel_tasks.KERNEL)
        plan["steps"] = [{**PLAN["steps"][2], "grid": ["gpu.sms*occupancy(add)"]}]
        result = self.cutegen("export", self.program(PROGRAM, plan), "--task", task, "--to", "source",
                              "--device", "sim:h200")
        self.assert_error(result, 5, r"occupancy\(add\)", "--to torch and cpp do")


if __name__ == "__main__":
    harness.main()
