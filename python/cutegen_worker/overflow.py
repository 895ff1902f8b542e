# SPDX-License-Identifier: Apache-2.0
"""Finds results that depend on the order of sums that may overflow.

The sum 2e38 + 2e38 - 2e38 is infinite in float32 from left to right, and finite from right to left. Both are correct.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from .orders import overloads

if TYPE_CHECKING:
    from torch._ops import OpOverload

MEANS = set(overloads("mean", "mean.dim"))
# With absolute values as operands, these compute the largest absolute value that a partial sum can have.
PRODUCTS = set(overloads("mm", "bmm", "mv", "dot", "addmm", "baddbmm", "addmv", "convolution", "_trilinear"))
SUMS = MEANS | PRODUCTS | set(overloads(
    "sum", "sum.dim_IntList", "nansum", "cumsum", "index_add", "scatter_add", "trace"))
LOW_PART = 2.0**-8  # largest relative size of the low part of an operand that a kernel splits


class Overflows(TorchDispatchMode):
    """Gives NaN if the order of a float64 sum decides whether it overflows in float32.

    A sum that overflows in any order becomes infinite. A kernel may split the operands of a product into high and low
    parts. If the products of the low parts alone overflow, the infinity may have either sign. A sum may overflow if it
    comes within the factor 1 - `edge` of the largest number. `seen`: whether there was such a sum.
    """

    def __init__(self, edge: float) -> None:
        super().__init__()
        most = torch.finfo(torch.float32).max
        self.low, self.high = (1 - edge) * most, (1 + edge) * most
        self.seen = False

    def __torch_dispatch__(self, func: OpOverload, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        more = kwargs or {}
        out = func(*args, **more)
        if func not in SUMS or out.dtype != torch.float64:
            return out
        sizes = func(*map(absolute, args), **{k: absolute(v) for k, v in more.items()})
        sums = out
        if func in MEANS:  # a kernel may divide before it adds, or after it
            count = args[0].numel() / max(out.numel(), 1)
            sizes, sums = sizes * count, out * count
        large = torch.isfinite(sizes) & (sizes > self.low)
        if not bool(large.any()):
            return out
        self.seen = True
        against = sizes - sums.abs()  # twice the terms whose sign is not the sum's
        certain = large & (out.abs() > self.high) & (against < self.low)
        if func in PRODUCTS:  # the low part of a split operand may have the other sign
            certain &= LOW_PART * sizes < self.low
        return torch.where(certain, torch.sign(out) * torch.inf, out.masked_fill(large & ~certain, torch.nan))


def absolute(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.abs() if value.is_floating_point() else value
    return abs(value) if isinstance(value, float) else value
