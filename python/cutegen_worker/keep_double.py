# SPDX-License-Identifier: Apache-2.0
"""Float64 runs of modules that name their dtypes: `x.float()` must not round the truth to float.

A cast from float64 to float, half or bfloat16 keeps float64. With `integers`, such a cast of integers gives float64,
too: packed weights then multiply float64 inputs, and an angle such as arange(n).float() * step has no rounding error. A
tensor that the module creates in such a dtype, as by ones_like(x, dtype=torch.float32), has float64 as well. A cast to
float8 rounds, because the module means to compute with the rounded values. If the cast itself is an output, the truth
stays unrounded, so that a result next to a rounding tie can pass.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from .float8 import FLOAT8

if TYPE_CHECKING:
    from torch._ops import OpOverload

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
TO_COPY = torch.ops.aten._to_copy.default
SCALED_MM = torch.ops.aten._scaled_mm.default


class KeepDouble(TorchDispatchMode):
    def __init__(self, integers: bool = False) -> None:
        super().__init__()
        self.integers = integers
        self.widened = (torch.float64, *FLOAT8, *(INTEGERS if integers else ()))
        self.casts: dict[int, tuple[Tensor, Tensor]] = {}  # id of a float8 tensor -> (it, its unrounded values)

    def __torch_dispatch__(self, func: OpOverload, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        if func is TO_COPY:
            return self.cast(args[0], kwargs)
        if func is SCALED_MM and torch.float64 in (args[0].dtype, args[1].dtype):
            return scaled_product(*args, **kwargs)
        if kwargs.get("dtype") in FLOATS and self.integers:
            kwargs = {**kwargs, "dtype": torch.float64}
        return func(*args, **kwargs)

    def cast(self, tensor: Tensor, kwargs: dict[str, Any]) -> Tensor:
        wanted = kwargs.get("dtype")
        if wanted in FLOATS and tensor.dtype in self.widened:
            kwargs = {**kwargs, "dtype": torch.float64}
        made = TO_COPY(tensor, **kwargs)
        if wanted in FLOAT8 and tensor.dtype == torch.float64:
            self.casts[id(made)] = made, tensor
        return made

    def unrounded(self, tensor: Tensor) -> Tensor:
        """The values of an output before its cast to float8; returns any other tensor unchanged."""
        return self.casts.get(id(tensor), (None, tensor))[1]


def scaled_product(a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor, bias: Tensor | None = None,
                   scale_result: Tensor | None = None, out_dtype: torch.dtype | None = None,
                   use_fast_accum: bool = False) -> Tensor:
    """torch._scaled_mm in float64. Ignores arguments that only change the rounding."""
    product = (a.double() @ b.double()) * scale_a.double() * scale_b.double()
    return product if bias is None else product + bias.double()


@contextlib.contextmanager
def keeping_double(wanted: bool, integers: bool) -> Iterator[KeepDouble]:
    """A KeepDouble, active only if `wanted`."""
    mode = KeepDouble(integers)
    with mode if wanted else contextlib.nullcontext():
        yield mode
