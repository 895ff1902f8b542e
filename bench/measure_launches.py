#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs exported programs on a GPU, compares their results with float64, and times them and PyTorch.

Usage: measure_launches.py TASK_FOLDER EXPORT_FOLDER...      (a machine with a GPU, its driver, torch)
Each EXPORT_FOLDER holds NAME.json and NAME.I.ptx from bench/export_launches.cpp; NAME.py must be in TASK_FOLDER. Prints
one line of JSON per program:
  time_us   median device time of one call with a cold L2, between events
  steps_us  the same for each kernel, if there are several: the events keep the kernels from overlapping
  eager_us  the same for the module in eager mode, in the task's math mode: TF32 allowed, or autocast to
            float16 or bfloat16
  wrong     share of elements further from float64 than 32 times the module's own mean error and
            1e-4 of the largest value
"""
from __future__ import annotations

import copy
import ctypes
import importlib.util
import json
import math
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

Json = dict[str, Any]
CALLS = 25
DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16,
          "bf16": torch.bfloat16, "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2,
          "i64": torch.int64, "i32": torch.int32, "i8": torch.int8, "u8": torch.uint8}
SHARED, ANY_CLUSTER = 8, 14  # the driver's numbers: attributes of a function
CLUSTER, OVERLAP = 4, 6  # attributes of a launch: its cluster, programmatic dependent launch
PROMOTE_TO_128_BYTES = 2
cuda = ctypes.CDLL("libcuda.so.1")


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint32 * 16)]


class Launch(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3), ("shared", ctypes.c_uint32),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint32)]


def check(code: int, what: str) -> None:
    if code:
        name = ctypes.c_char_p()
        cuda.cuGetErrorString(code, ctypes.byref(name))
        raise RuntimeError(f"{what}: {(name.value or b'?').decode()}")


class Program:
    """Modules and launches of one exported program over tensors by name."""

    def __init__(self, folder: Path, name: str) -> None:
        self.spec = json.loads((folder / f"{name}.json").read_text())
        self.modules = []
        for file in self.spec["modules"]:
            module = ctypes.c_void_p()
            check(cuda.cuModuleLoadData(ctypes.byref(module), (folder / file).read_bytes() + b"\0"), file)
            self.modules.append(module)
        self.functions = [self.function(s) for s in self.spec["steps"]]

    def function(self, step: Json) -> ctypes.c_void_p:
        function = ctypes.c_void_p()
        check(cuda.cuModuleGetFunction(ctypes.byref(function), self.modules[step["module"]],
                                       step["kernel"].encode()), step["kernel"])
        if step["shared_bytes"] > 48 << 10:
            check(cuda.cuFuncSetAttribute(function, SHARED, step["shared_bytes"]), "shared memory")
        if math.prod(step["cluster"]) > 8:
            check(cuda.cuFuncSetAttribute(function, ANY_CLUSTER, 1), "a large cluster")
        return function

    def launches(self, tensors: dict[str, Tensor], stream: int) -> Launches:
        """Prepares the arguments of all launches, so that run() takes little time on the host."""
        launches = []
        for number, (step, function) in enumerate(zip(self.spec["steps"], self.functions)):
            kept, places = [], []  # memory, and the place of the values in it
            for a in step["args"]:
                if "map" in a:
                    memory, place = tensor_map(tensors[a["buffer"]].data_ptr(), a["map"])
                else:
                    raw = (tensors[a["buffer"]].data_ptr().to_bytes(8, "little") if "buffer" in a
                           else bytes.fromhex(a["hex"]))
                    memory = ctypes.create_string_buffer(raw, len(raw))
                    place = ctypes.addressof(memory)
                kept.append(memory)
                places.append(place)
            pointers = (ctypes.c_void_p * len(places))(*places)
            attributes, count = attributes_of(step, number == 0)
            launch = Launch((ctypes.c_uint32 * 3)(*step["grid"]), (ctypes.c_uint32 * 3)(*step["block"]),
                            step["shared_bytes"], stream, ctypes.addressof(attributes), count)
            launches.append(OneLaunch(step["kernel"], function, launch, pointers, [attributes, kept]))
        return Launches(launches)


class OneLaunch(NamedTuple):
    kernel: str
    function: ctypes.c_void_p
    launch: Launch
    pointers: ctypes.Array[ctypes.c_void_p]
    kept: list[Any]  # memory that the launch refers to


class Launches(NamedTuple):
    steps: list[OneLaunch]

    def run(self, after: Callable[[], None] = lambda: None) -> None:
        """Launches all steps, and calls `after` after each step."""
        for one in self.steps:
            check(cuda.cuLaunchKernelEx(ctypes.byref(one.launch), one.function, one.pointers, None), one.kernel)
            after()


def attributes_of(step: Json, first: bool) -> tuple[ctypes.Array[Attribute], int]:
    """The attributes of a launch, and how many there are."""
    attributes, count = (Attribute * 2)(), 0
    if math.prod(step["cluster"]) > 1:
        attributes[count].id = CLUSTER
        attributes[count].value[:3] = step["cluster"]
        count += 1
    if step.get("pdl", False) and not first:
        attributes[count].id = OVERLAP
        attributes[count].value[0] = 1
        count += 1
    return attributes, count


def tensor_map(address: int, fields: Json) -> tuple[ctypes.Array[ctypes.c_char], int]:
    """The driver's tensor map, aligned to 64 bytes: its memory and its place in it."""
    memory = ctypes.create_string_buffer(192)
    place = (ctypes.addressof(memory) + 63) // 64 * 64
    rank = len(fields["sizes"])
    wide, narrow = ctypes.c_uint64 * rank, ctypes.c_uint32 * rank
    if "im2col" in fields:
        pixels, near = fields["im2col"], ctypes.c_int * 3
        check(cuda.cuTensorMapEncodeIm2col(
            ctypes.c_void_p(place), fields["type"], rank, ctypes.c_void_p(address), wide(*fields["sizes"]),
            wide(*fields["pitches"], 0), near(*pixels["lower"]), near(*pixels["upper"]), fields["box"][0],
            fields["box"][1], narrow(*pixels["steps"]), 0, fields["swizzle"], PROMOTE_TO_128_BYTES, 0),
            "a tensor map")
        return memory, place
    check(cuda.cuTensorMapEncodeTiled(
        ctypes.c_void_p(place), fields["type"], rank, ctypes.c_void_p(address), wide(*fields["sizes"]),
        wide(*fields["pitches"], 0), narrow(*fields["box"]), narrow(*[1] * rank), 0, fields["swizzle"],
        PROMOTE_TO_128_BYTES, 0), "a tensor map")
    return memory, place


class Task:
    """The module and its inputs on the GPU, and its results in its own dtype and in float64."""

    def __init__(self, path: Path, mode: str) -> None:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        torch.manual_seed(7)
        with torch.device("cuda"):
            self.model = module.Model(*module.get_init_inputs()).cuda().eval()
            self.inputs = [x.cuda() if isinstance(x, torch.Tensor) else x for x in module.get_inputs()]
        self.state = dict(self.model.named_parameters()) | dict(self.model.named_buffers())
        half = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(mode)
        torch.backends.cuda.matmul.allow_tf32 = mode == "tf32"
        with torch.autocast("cuda", dtype=half, enabled=half is not None, cache_enabled=False):
            self.native = self.model(*self.inputs)
            self.eager_us = round(median_us(lambda: self.model(*self.inputs)), 2)
        try:
            self.truth = copy.deepcopy(self.model).double()(*[
                x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x
                for x in self.inputs])
        except RuntimeError:  # out of memory, or a module that does not run in float64
            self.truth = None

    def tensors(self, buffers: list[Json]) -> dict[str, Tensor]:
        """A tensor for each buffer: outputs and scratch are poisoned."""
        out, inputs = {}, iter(x for x in self.inputs if isinstance(x, torch.Tensor))
        for b in buffers:
            if b["role"] == "input":
                out[b["name"]] = next(inputs)
            elif b["role"] in ("parameter", "buffer"):
                out[b["name"]] = self.state[b["name"]]
            elif b["role"] == "scratch":
                out[b["name"]] = torch.full((max(1, b["bytes"]),), 255, dtype=torch.uint8, device="cuda")
            else:
                out[b["name"]] = torch.full(b["shape"], -77, dtype=DTYPES[b["dtype"]], device="cuda")
        return out


def median_us(call: Callable[[], object]) -> float:
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    times = []
    for _ in range(CALLS + 3):
        flush.zero_()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(600_000)  # so that all launches are queued before the work begins
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times[3:])


def steps_us(launches: Launches) -> list[float]:
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    rounds = []
    for _ in range(CALLS + 3):
        flush.zero_()
        events = [torch.cuda.Event(enable_timing=True) for _ in range(len(launches.steps) + 1)]
        ahead = iter(events)
        torch.cuda._sleep(1_000_000)
        next(ahead).record()
        launches.run(lambda: next(ahead).record())
        torch.cuda.synchronize()
        rounds.append([a.elapsed_time(b) * 1e3 for a, b in zip(events, events[1:])])
    return [round(statistics.median(step), 1) for step in zip(*rounds[3:])]


def share_wrong(got: Tensor, native: Tensor, truth: Tensor) -> float:
    if not got.dtype.is_floating_point:
        return (got != truth).double().mean().item()
    error, own = (got.double() - truth).abs(), (native.double() - truth).abs()
    allowed = 32 * own.mean() + 1e-4 * truth.abs().max()
    return (~(error <= allowed)).double().mean().item()


def measure(folder: Path, task: Task, name: str) -> Json:
    program = Program(folder, name)
    tensors = task.tensors(program.spec["buffers"])
    launches = program.launches(tensors, torch.cuda.current_stream().cuda_stream)
    call = launches.run
    call()
    torch.cuda.synchronize()
    wrong = None if task.truth is None else share_wrong(tensors["out"], task.native, task.truth)
    line = {"task": name, "folder": folder.name, "wrong": wrong,
            "time_us": round(median_us(call), 2), "eager_us": task.eager_us}
    return line | ({"steps_us": steps_us(launches)} if len(launches.steps) > 1 else {})


def mode_of(folders: list[Path], name: str) -> str:
    """The task's math mode, from its exports."""
    file = next(folder / f"{name}.json" for folder in folders if (folder / f"{name}.json").exists())
    return json.loads(file.read_text()).get("math_mode", "fp32")


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    tasks, folders = Path(sys.argv[1]), [Path(f) for f in sys.argv[2:]]
    check(cuda.cuInit(0), "cuInit")
    for name in sorted({file.stem for folder in folders for file in folder.glob("*.json")}):
        with torch.no_grad():
            task = Task(next(tasks.rglob(f"{name}.py")), mode_of(folders, name))
            for folder in folders:
                if not (folder / f"{name}.json").exists():
                    continue
                try:
                    line = measure(folder, task, name)
                except (RuntimeError, KeyError) as error:  # report a failure in the program's line
                    line = {"task": name, "folder": folder.name, "error": str(error)[:300]}
                print(json.dumps(line), flush=True)
                torch.cuda.empty_cache()
        del task
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
