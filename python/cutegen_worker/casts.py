# SPDX-License-Identifier: Apache-2.0
"""Finds results that depend on a cast to an integer, if the cast number is NaN, infinite or too large.

C++ and PyTorch leave the result of such a cast undefined, and CPUs and GPUs differ. The reference runs twice with two
different results of these casts. The evaluator does not judge elements that differ between the two runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from . import float8

if TYPE_CHECKING:
    from torch._ops import OpOverload

aten = torch.ops.aten


class Casts(TorchDispatchMode):
    """Gives undefined casts the result `other`."""

    def __init__(self, other: int) -> None:
        super().__init__()
        self.other, self.seen = other, False

    def __torch_dispatch__(self, func: OpOverload, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func is not aten._to_copy.default or not args[0].is_floating_point() or \
                out.is_floating_point() or out.is_complex() or out.dtype == torch.bool:
            return out
        fits = torch.iinfo(out.dtype)
        x = float8.widened(args[0]).double()
        wild = ~((x > fits.min - 1.0) & (x < fits.max + 1.0))
        if not bool(wild.any()):
            return out
        self.seen = True
        return out.masked_fill(wild, self.other)


def undefined(run: Callable[[], list[Tensor]]) -> list[Tensor]:
    """For each output of a run: where it depends on an undefined cast. An empty list if no cast is undefined."""
    with Casts(0) as casts:
        first = run()
    if not casts.seen:
        return []
    with Casts(1):
        second = run()
    return [~torch.isclose(float8.widened(a), float8.widened(b), 0, 0, equal_nan=True)
            for a, b in zip(first, second)]
