#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs exported programs on a GPU: right or wrong against float64, and their time beside PyTorch's.

Usage: measure_launches.py TASK_FOLDER EXPORT_FOLDER...      (a machine with a GPU, its driver, torch)
Each EXPORT_FOLDER holds NAME.json and NAME.I.ptx as bench/export_launches.cpp writes them; NAME.py is
looked for in TASK_FOLDER. One line of JSON a program on stdout:
  time_us   median device time of one call with a cold L2, between events
  eager_us  the same for the module in eager mode
  wrong     share of elements further from float64 than 32 times the module's own mean error and
            1e-4 of the largest value
"""
import ctypes
import importlib.util
import json
import statistics
import sys
from pathlib import Path

import torch

CALLS = 25
DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16,
          "bf16": torch.bfloat16, "i64": torch.int64, "i32": torch.int32, "u8": torch.uint8}
cuda = ctypes.CDLL("libcuda.so.1")


def check(code, what):
    if code:
        name = ctypes.c_char_p()
        cuda.cuGetErrorString(code, ctypes.byref(name))
        raise RuntimeError(f"{what}: {(name.value or b'?').decode()}")


class Program:
    """Modules and launches of one exported program over tensors by name."""

    def __init__(self, folder, name):
        self.spec = json.loads((folder / f"{name}.json").read_text())
        self.modules = []
        for file in self.spec["modules"]:
            module = ctypes.c_void_p()
            check(cuda.cuModuleLoadData(ctypes.byref(module), (folder / file).read_bytes() + b"\0"), file)
            self.modules.append(module)
        self.functions = [self.function(s) for s in self.spec["steps"]]

    def function(self, step):
        function = ctypes.c_void_p()
        check(cuda.cuModuleGetFunction(ctypes.byref(function), self.modules[step["module"]],
                                       step["kernel"].encode()), step["kernel"])
        if step["shared_bytes"] > 48 << 10:
            check(cuda.cuFuncSetAttribute(function, 8, step["shared_bytes"]), "shared memory")
        return function

    def run(self, tensors, stream):
        for step, function in zip(self.spec["steps"], self.functions):
            values = []
            for a in step["args"]:
                raw = (tensors[a["buffer"]].data_ptr().to_bytes(8, "little") if "buffer" in a
                       else bytes.fromhex(a["hex"]))
                values.append(ctypes.create_string_buffer(raw, len(raw)))
            pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
            check(cuda.cuLaunchKernel(function, *step["grid"], *step["block"], step["shared_bytes"],
                                      ctypes.c_void_p(stream), pointers, None), step["kernel"])


def load_task(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch.manual_seed(7)
    model = module.Model(*module.get_init_inputs()).cuda().eval()
    inputs = [x.cuda() if isinstance(x, torch.Tensor) else x for x in module.get_inputs()]
    return model, inputs


def median_us(call):
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    times = []
    for _ in range(CALLS + 3):
        flush.zero_()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(200_000)  # so that launching is done before the work begins
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times[3:])


def share_wrong(got, native, truth):
    if not got.dtype.is_floating_point:
        return (got != truth).double().mean().item()
    error, own = (got.double() - truth).abs(), (native.double() - truth).abs()
    allowed = 32 * own.mean() + 1e-4 * truth.abs().max()
    return (~(error <= allowed)).double().mean().item()


def measure(folder, name, tasks):
    model, inputs = load_task(next(tasks.rglob(f"{name}.py")))
    program = Program(folder, name)
    with torch.no_grad():
        native = model(*inputs)
        state = dict(model.named_parameters()) | dict(model.named_buffers())
        tensors, next_input = {}, iter(x for x in inputs if isinstance(x, torch.Tensor))
        for b in program.spec["buffers"]:
            if b["role"] == "input":
                tensors[b["name"]] = next(next_input)
            elif b["role"] in ("parameter", "buffer"):
                tensors[b["name"]] = state[b["name"]]
            elif b["role"] == "scratch":
                tensors[b["name"]] = torch.full((max(1, b["bytes"]),), 255, dtype=torch.uint8, device="cuda")
            else:
                tensors[b["name"]] = torch.full(b["shape"], -77, dtype=DTYPES[b["dtype"]], device="cuda")
        call = lambda: program.run(tensors, torch.cuda.current_stream().cuda_stream)
        call()
        torch.cuda.synchronize()
        line = {"task": name, "folder": folder.name}
        try:
            double = [x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs]
            truth = model.double()(*double)
            line["wrong"] = share_wrong(tensors["out"], native, truth)
            del double, truth
        except torch.cuda.OutOfMemoryError:
            line["wrong"] = None
        model.float()
        line["time_us"] = round(median_us(call), 2)
        line["eager_us"] = round(median_us(lambda: model(*inputs)), 2)
    return line


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    torch.backends.cuda.matmul.allow_tf32 = False
    check(cuda.cuInit(0), "cuInit")
    torch.zeros(1, device="cuda")
    for folder in map(Path, sys.argv[2:]):
        for file in sorted(folder.glob("*.json")):
            try:
                line = measure(folder, file.stem, Path(sys.argv[1]))
            except Exception as error:  # one program's failure is its line
                line = {"task": file.stem, "folder": folder.name, "error": str(error)[:300]}
            print(json.dumps(line), flush=True)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
