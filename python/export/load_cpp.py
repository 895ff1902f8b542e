# SPDX-License-Identifier: Apache-2.0
"""Loads what test and bench compare: the C++ function, which c++ builds here, as a PyTorch module."""

import ctypes
import importlib.util
import json
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent


def _load(name: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("exported_cpp_" + name, _HERE / (name + ".py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["exported_cpp_" + name] = module
    spec.loader.exec_module(module)
    return module


reference, _runtime = _load("reference"), _load("runtime")
data = json.loads((_HERE / "launches.json").read_text(encoding="utf-8"))


class Library:
    """@FILE@.cpp as a shared library, in place of the kernels of the Python export."""

    def __init__(self) -> None:
        path = _HERE / "@FILE@.so"
        if not path.exists() or path.stat().st_mtime < (_HERE / "@FILE@.cpp").stat().st_mtime:
            command = [os.environ.get("CXX", "c++"), "-std=c++17", "-O2", "-shared", "-fPIC", "-o", str(path)]
            subprocess.run([*command, str(_HERE / "@FILE@.cpp"), "-ldl"], check=True)
        self.call = ctypes.CDLL(str(path)).@FILE@_run
        self.call.restype, self.call.argtypes = ctypes.c_char_p, [ctypes.c_void_p] * 3
        self.tensors = sum(len(data[key]) for key in ("inputs", "state", "outputs"))

    def run(self, case: int, pointers: list[int], stream: int) -> None:
        tensors = (ctypes.c_uint64 * self.tensors)(*pointers[: self.tensors])
        scratch = pointers[self.tensors] if len(pointers) > self.tensors else None
        trouble = self.call(ctypes.addressof(tensors), scratch, stream)
        if trouble:
            raise RuntimeError(trouble.decode())


class Built(_runtime.Exported):
    def program_of(self, device: int) -> Any:
        if device not in self.programs:
            self.programs[device] = None if self.trouble(f"cuda:{device}") else Library()
        return self.programs[device]


data = {**data, "shapes": data["shapes"][:1], "namespace": data["namespace"] + "_cpp"}
exported = Built(data, [], reference)


class Model(reference.Model):
    """The reference. The C++ function computes what it supports."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._kernels = exported.adopt(self, args, kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        found = exported.accept(self, self._kernels, args, kwargs)
        return super().forward(*args, **kwargs) if found is None else exported.answer(*found)
