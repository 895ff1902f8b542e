# SPDX-License-Identifier: Apache-2.0
"""Sizes that must agree in one call.

Some meta kernels do not compare them, so a trace would accept a shape at which forward() raises.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from .record import META, Ref

if TYPE_CHECKING:
    from .record import Call

BY_ROW = {"index_copy", "index_add", "index_reduce"}
BY_PLACE = {"index_put", "_index_put_impl", "_unsafe_index_put"}
MASKS = (torch.bool, torch.uint8)


def disagreement(call: Call) -> str | None:
    """Why the call fails when it runs, or None."""
    name = call.func.overloadpacket.__name__.removesuffix("_")
    if name in BY_ROW:
        return rows_of(name, *call.args[:4])
    if name in BY_PLACE:
        return places_of(name, *call.args[:3])
    if name == "put":
        index, source = call.args[1:3]
        return different(name, math.prod(index.shape), math.prod(source.shape))
    return None


def different(name: str, indices: int, elements: int) -> str | None:
    return None if indices == elements else f"{name}() of {elements} elements at {indices} indices"


def rows_of(name: str, tensor: Ref, dim: int, index: Ref, source: Ref) -> str | None:
    rows, into = list(source.shape) or [1], list(tensor.shape) or [1]
    count, into[dim] = rows[dim], rows[dim]
    if rows != into:
        return f"{name}() of rows of {rows} into rows of {into}"
    return different(name, math.prod(index.shape), count)


def places_of(name: str, tensor: Ref, indices: Any, values: Ref) -> str | None:
    if any(isinstance(i, Ref) and i.dtype in MASKS for i in indices):
        return None  # the values of the mask decide the size
    given = [torch.empty(i.shape, dtype=torch.int64, device=META) if isinstance(i, Ref) else slice(None)
             for i in indices]
    wanted = torch.empty(tensor.shape, device=META)[tuple(given)].shape
    try:
        fits = torch.broadcast_shapes(wanted, values.shape) == wanted
    except RuntimeError:
        fits = False
    return None if fits else f"{name}() of values {list(values.shape)} at places {list(wanted)}"
