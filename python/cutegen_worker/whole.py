# SPDX-License-Identifier: Apache-2.0
"""Finds results that every order of evaluation computes exactly, because they are small whole numbers.

A sum, product or running sum of whole numbers has no rounding error if its terms are small enough. The module may
compare such a result with a whole number, as in `place == torch.arange(slots)`. If orders.py moved such a result by a
rounding, it would equal no whole number, and every result after the comparison would seem uncertain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from . import float8

if TYPE_CHECKING:
    from torch._ops import OpOverload

MOST = 2.0**24  # float32 has all whole numbers up to this one
FEW = 64  # elements that are looked at first

# These give whole numbers for whole numbers. Other names of the same operator start like the name here.
OPERATORS = {"_to_copy", "clone", "arange", "add", "sub", "rsub", "mul", "neg", "abs", "relu", "clamp", "maximum",
             "minimum", "where", "sum", "cumsum", "mm", "bmm", "mv", "dot", "addmm", "baddbmm", "addmv", "index_add",
             "scatter_add", "scatter", "convolution", "max", "min", "amax", "amin", "index_select", "gather", "index"}


def is_whole(t: Tensor) -> bool:
    """Whether all elements are whole numbers of at most MOST."""
    if not t.is_floating_point():
        return not t.is_complex()
    flat = t.detach().reshape(-1)
    few = float8.widened(flat[:FEW])
    if not bool((few == few.round()).all()):
        return False
    flat = float8.widened(flat)
    return bool(((flat == flat.round()) & (flat.abs() <= MOST)).all())


def keeps_whole(func: OpOverload, args: tuple[Any, ...]) -> bool:
    """Whether the operator has only whole numbers as operands, so that its small results are exact."""
    if func._schema.name.removeprefix("aten::").rstrip("_") not in OPERATORS:
        return False
    return all(is_whole(a) if isinstance(a, Tensor) else not isinstance(a, float) or a.is_integer() for a in args)
