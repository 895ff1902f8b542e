# SPDX-License-Identifier: Apache-2.0
"""@NAME@: @FILE@_launch of @FILE@.cu as an operator of PyTorch.

Usage: from @FILE@_op import op; op(@ARGUMENTS@)

The operator writes its results into the tensors that it receives, as the kernel does. nvcc builds
@FILE@.so at the first call ($NVCC names another compiler, $CUTLASS_INCLUDE a folder with CuTe).
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import torch

_HERE = Path(__file__).resolve().parent
SIGNATURE: dict[str, Any] = json.loads("""@SIGNATURE@""")
_NUMBERS = {"i32": ctypes.c_int32, "u32": ctypes.c_uint32, "i64": ctypes.c_int64,
            "f32": ctypes.c_float, "f64": ctypes.c_double}
_ADDRESS = 256  # bytes; for other addresses the launcher uses the source kernel


def build() -> Path:
    """Compiles @FILE@.cu unless @FILE@.so is newer."""
    source, library = _HERE / "@FILE@.cu", _HERE / "@FILE@.so"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        command = [*shlex.split(os.environ.get("NVCC", "nvcc")), "-O3", "-std=c++17", "-arch=@ARCH@", "-shared",
                   "-Xcompiler", "-fPIC", "-I", str(_HERE)]
        if folder := os.environ.get("CUTLASS_INCLUDE"):
            command += ["--expt-relaxed-constexpr", "-I", folder]
        subprocess.run([*command, "-o", str(library), str(source)], check=True)
    return library


class Launcher:
    """Calls the C function with addresses and sizes."""

    def __init__(self) -> None:
        self.call = getattr(ctypes.CDLL(str(build())), SIGNATURE["function"])
        self.call.restype = ctypes.c_int

    def run(self, addresses: dict[str, int], sizes: dict[str, list[int]], scalars: dict[str, Any],
            stream: int) -> None:
        given: list[Any] = []
        for arg in SIGNATURE["args"]:
            if "tensor" in arg:
                given.append(ctypes.c_void_p(addresses[arg["tensor"]]))
                continue
            value: Any = 0  # the launcher computes it from the sizes
            if "dim" in arg:
                value = sizes[arg["dim"][0]][arg["dim"][1]]
            elif "scalar" in arg:
                value = scalars[arg["scalar"]]
            given.append(_NUMBERS[arg["type"]](value))
        given += [ctypes.c_int64(sizes[tensor][axis]) for tensor, axis in SIGNATURE["sizes"]]
        if status := self.call(*given, ctypes.c_void_p(stream)):
            raise RuntimeError(f"@FILE@_launch fails: CUDA error {status}")


@functools.cache
def launcher() -> Launcher:
    return Launcher()


def _check(given: dict[str, torch.Tensor]) -> None:
    devices = {t.device for t in given.values()}
    if len(devices) != 1:
        raise ValueError(f"the tensors are on several devices: {sorted(map(str, devices))}")
    for name, t in given.items():
        wanted, rank = SIGNATURE["tensors"][name]
        if str(t.dtype) != "torch." + wanted or t.dim() != rank or not t.is_contiguous():
            raise ValueError(f"'{name}' must be a contiguous {wanted} tensor with {rank} dimensions")


def _run(*values: Any, **scalars: Any) -> None:
    names = [a["tensor"] for a in SIGNATURE["args"] if "tensor" in a]
    given = dict(zip(names, values))
    numbers = {**SIGNATURE["scalars"], **dict(zip(SIGNATURE["scalars"], values[len(names) :])), **scalars}
    _check(given)
    with torch.cuda.device(next(iter(given.values())).device):
        launcher().run({n: t.data_ptr() for n, t in given.items()}, {n: list(t.shape) for n, t in given.items()},
                       numbers, torch.cuda.current_stream().cuda_stream)


_library = torch.library.Library("@NAMESPACE@", "DEF")
_library.define(SIGNATURE["schema"])
_library.impl("@FILE@", _run, "CUDA")
torch.library.register_fake("@NAMESPACE@::@FILE@", lambda *values, **scalars: None, lib=_library)
op = getattr(getattr(torch.ops, "@NAMESPACE@"), "@FILE@")
