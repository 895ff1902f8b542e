# SPDX-License-Identifier: Apache-2.0
"""Names of a task's tensors and scalars."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from .errors import WorkerError

DTYPES = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "f8e4m3",
    torch.float8_e5m2: "f8e5m2",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint64: "u64",
    torch.uint32: "u32",
    torch.uint16: "u16",
    torch.uint8: "u8",
    torch.bool: "bool",
}
TORCH = {name: dtype for dtype, name in DTYPES.items()}


def dtype_name(tensor: Tensor, what: str, file: str) -> str:
    name = DTYPES.get(tensor.dtype)
    if name is None:
        raise WorkerError(f"{what} has dtype {tensor.dtype}, which is not supported", file,
                          "use a floating, integer or boolean dtype")
    if tensor.layout is not torch.strided:
        raise WorkerError(f"{what} is {tensor.layout}, not a dense tensor", file,
                          "sparse tensors are not supported: use .to_dense()")
    return name


def parameter_names(model: Any, count: int) -> list[str]:
    """Names of forward's first `count` positional parameters."""
    names: list[str] = []
    for p in inspect.signature(model.forward).parameters.values():
        if p.kind == p.VAR_POSITIONAL:
            names += [f"{p.name}.{i}" for i in range(count - len(names))]
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            names.append(p.name)
    names += [f"arg.{i}" for i in range(count - len(names))]
    return names[:count]


def flatten(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yields (name, leaf) of everything in nested lists, tuples and dictionaries."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from flatten(f"{name}.{key}", item)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from flatten(f"{name}.{i}", item)
    else:
        yield name, value


class Inputs:
    """The result of get_inputs(): arguments, and their named leaves."""

    def __init__(self, value: Any, model: Any, file: str) -> None:
        if isinstance(value, torch.Tensor) or not isinstance(value, (list, tuple, dict)):
            raise WorkerError(f"get_inputs() returns {type(value).__name__}, not a list", file,
                              "return the arguments of forward in a list: [x]")
        self.keyword = isinstance(value, dict)
        self.args: list[Any] = [] if self.keyword else list(value)
        self.kwargs: dict[str, Any] = dict(value) if self.keyword else {}
        named: Iterable[tuple[Any, Any]] = self.kwargs.items()
        if not self.keyword:
            named = zip(parameter_names(model, len(self.args)), self.args)
        self.leaves = [leaf for name, item in named for leaf in flatten(str(name), item)]
        for name, leaf in self.leaves:
            if not isinstance(leaf, (torch.Tensor, bool, int, float, str, type(None))):
                raise WorkerError(
                    f"input '{name}' is {type(leaf).__name__}, not a tensor or a scalar", file,
                    "get_inputs() returns tensors, numbers, booleans or strings")
        if not any(isinstance(leaf, torch.Tensor) for _, leaf in self.leaves):
            raise WorkerError("get_inputs() returns no tensor", file,
                              "return at least one torch.Tensor in the list")

    def tensors(self) -> list[tuple[str, Tensor]]:
        return [(n, v) for n, v in self.leaves if isinstance(v, torch.Tensor)]

    def map(self, change: Callable[[str, Tensor], Tensor]) -> tuple[Any, dict[str, Any]]:
        """The same structure with change(name, tensor) for each tensor, as (args, kwargs)."""
        leaves = iter(self.leaves)

        def walk(value: Any) -> Any:
            if isinstance(value, dict):
                return {k: walk(v) for k, v in value.items()}
            if isinstance(value, (list, tuple)):
                made = [walk(v) for v in value]
                if isinstance(value, list):
                    return made
                return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
            name, leaf = next(leaves)
            return change(name, leaf) if isinstance(leaf, torch.Tensor) else leaf

        if self.keyword:
            return [], walk(self.kwargs)
        return walk(self.args), {}


def stray_tensors(model: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module, str, Tensor]]:
    """Yields (path, owner, attribute, tensor) of plain tensor attributes, which torch's methods do not list."""
    for path, module in model.named_modules():
        for key, value in list(vars(module).items()):
            if isinstance(value, torch.Tensor):
                yield (f"{path}.{key}" if path else key), module, key, value


def state_tensors(model: torch.nn.Module) -> Iterator[tuple[str, str, Tensor]]:
    """Yields (name, role, tensor) of parameters, buffers and plain tensor attributes."""
    for name, parameter in model.named_parameters():
        yield name, "parameter", parameter
    for name, tensor in model.named_buffers():
        yield name, "buffer", tensor
    for name, _, _, tensor in stray_tensors(model):
        yield name, "buffer", tensor


def scalars(model: torch.nn.Module) -> dict[str, Any]:
    """Scalar attributes of the module and its submodules, by dotted path."""
    found = {}
    for path, module in model.named_modules():
        for key, value in vars(module).items():
            if key.startswith("_") or key == "training":
                continue
            name = f"{path}.{key}" if path else key
            if isinstance(value, (bool, int, float, str)):
                found[name] = value
            elif isinstance(value, (tuple, list)) and 0 < len(value) <= 8:
                if all(isinstance(v, (bool, int, float)) for v in value):
                    found.update({f"{name}.{i}": v for i, v in enumerate(value)})
    return {k: v for k, v in found.items() if not isinstance(v, int) or abs(v) < 1 << 63}


def scalar_json(value: Any) -> Any:
    if isinstance(value, float) and value != value:
        return {"float": "nan"}
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return {"float": "inf" if value > 0 else "-inf"}
    return value[:4096] if isinstance(value, str) else value
