# SPDX-License-Identifier: Apache-2.0
"""Loads what test and bench compare: the launcher of the source file, which nvcc builds here, as a PyTorch module."""

import importlib.util
import json
import sys
import types
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent


def _load(name: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("exported_source_" + name, _HERE / (name + ".py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["exported_source_" + name] = module
    spec.loader.exec_module(module)
    return module


reference, _runtime, source = _load("reference"), _load("runtime"), _load("@FILE@_op")
data = json.loads((_HERE / "launches.json").read_text(encoding="utf-8"))


class Library:
    """@FILE@_launch, in place of the kernels of the Python export."""

    def __init__(self) -> None:
        self.launcher = source.launcher()
        self.names = [name for key in ("inputs", "state", "outputs") for name, _ in data[key]]

    def run(self, case: int, pointers: list[int], stream: int) -> None:
        sizes = data["shapes"][case]["tensors"]
        self.launcher.run(dict(zip(self.names, pointers)), sizes, source.SIGNATURE["scalars"], stream)


class Built(_runtime.Exported):
    def program_of(self, device: int) -> Any:
        if device not in self.programs:
            self.programs[device] = None if self.trouble(f"cuda:{device}") else Library()
        return self.programs[device]


data = {**data, "namespace": data["namespace"] + "_source"}
exported = Built(data, [], reference)


class Model(reference.Model):
    """The reference. The launcher computes what it supports."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._kernels = exported.adopt(self, args, kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        found = exported.accept(self, self._kernels, args, kwargs)
        return super().forward(*args, **kwargs) if found is None else exported.answer(*found)
