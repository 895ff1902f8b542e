# SPDX-License-Identifier: Apache-2.0
"""Finds calls whose sizes do not agree, and constant indices that lie outside a tensor.

Meta kernels do not look at values, and some do not compare sizes, so a trace would accept a shape at which forward()
raises.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from .record import META, Ref

if TYPE_CHECKING:
    from .record import Call

LOSSES = ("nll_loss_forward", "nll_loss2d_forward")
BY_ROW = {"index_copy", "index_add", "index_reduce"}
BY_PLACE = {"index_put", "_index_put_impl", "_unsafe_index_put"}
MASKS = (torch.bool, torch.uint8)
BY_DIM = {"index_select", "gather", "scatter", "scatter_add", "scatter_reduce", "index_copy", "index_add", "index_fill"}


def disagreement(call: Call) -> str | None:
    """Why the call fails when it runs, or None."""
    name = call.func.overloadpacket.__name__.removesuffix("_")
    return out_of_range(name, call.args) or different_sizes(name, call.args)


def out_of_range(name: str, args: tuple[Any, ...]) -> str | None:
    if not args or not isinstance(args[0], Ref):  # a constant of one element is a number
        return None
    shape = args[0].shape
    if name in ("embedding", "_embedding_bag"):
        return outside(name, shape[0], args[1], 0)
    if name in LOSSES and len(args) > 4:
        return outside(name, shape[1] if len(shape) > 1 else shape[0], args[1], 0, args[4])
    if name in BY_DIM:
        return outside(name, shape[args[1]] if shape else 1, args[2], 0)
    if (name == "index" or name in BY_PLACE) and not has_mask(args[1]):
        return next(filter(None, (outside(name, size, i) for size, i in zip(shape, args[1]))), None)
    return None


def different_sizes(name: str, args: tuple[Any, ...]) -> str | None:
    if name == "nll_loss2d_forward" and all(isinstance(a, Ref) for a in args[:2]):
        return pixels_of(name, *args[:2])
    if name in BY_ROW and all(isinstance(args[i], Ref) for i in (0, 2, 3)):
        return rows_of(name, *args[:4])
    if name in BY_PLACE and isinstance(args[0], Ref) and isinstance(args[2], Ref):
        return places_of(name, *args[:3])
    if name == "slice_scatter" and all(isinstance(a, Ref) for a in args[:2]):
        return part_of(name, *args)
    if name == "put" and all(isinstance(a, Ref) for a in args[1:3]):
        return different(name, math.prod(args[1].shape), math.prod(args[2].shape))
    return None


def has_mask(indices: Any) -> bool:
    return any(isinstance(i, Ref) and i.dtype in MASKS for i in indices)


def outside(name: str, size: int, index: Any, least: int | None = None, ignored: int | None = None) -> str | None:
    """Why a constant index lies outside an axis of this size. `least`: the smallest index, by default -size."""
    if not isinstance(index, Ref) or index.known is None or index.dtype in MASKS:
        return None
    known = index.known if ignored is None else index.known[index.known != ignored]
    if not known.numel():
        return None
    low, high = (int(v) for v in known.aminmax())
    wrong = high if high >= size else low if low < (-size if least is None else least) else None
    return None if wrong is None else f"{name}() at index {wrong} of an axis of size {size}"


def different(name: str, indices: int, elements: int) -> str | None:
    return None if indices == elements else f"{name}() of {elements} elements at {indices} indices"


def pixels_of(name: str, scores: Ref, target: Ref) -> str | None:
    """One target for each pixel of each image."""
    pixels = [scores.shape[0], *scores.shape[2:]]
    return None if pixels == list(target.shape) else f"{name}() of {pixels} pixels with {list(target.shape)} targets"


def rows_of(name: str, tensor: Ref, dim: int, index: Ref, source: Ref) -> str | None:
    rows, into = list(source.shape) or [1], list(tensor.shape) or [1]
    count, into[dim] = rows[dim], rows[dim]
    if rows != into:
        return f"{name}() of rows of {rows} into rows of {into}"
    return different(name, math.prod(index.shape), count)


def part_of(name: str, tensor: Ref, part: Ref, dim: int = 0, start: int | None = None, end: int | None = None,
            step: int = 1) -> str | None:
    size = tensor.shape[dim]
    wanted = len(range(*slice(start, end, step).indices(size)))
    return different(name, wanted, part.shape[dim])


def places_of(name: str, tensor: Ref, indices: Any, values: Ref) -> str | None:
    if has_mask(indices):
        return None  # the values of the mask decide the size
    given = [torch.empty(i.shape, dtype=torch.int64, device=META) if isinstance(i, Ref) else slice(None)
             for i in indices]
    wanted = torch.empty(tensor.shape, device=META)[tuple(given)].shape
    try:
        fits = torch.broadcast_shapes(wanted, values.shape) == wanted
    except RuntimeError:
        fits = False
    return None if fits else f"{name}() of values {list(values.shape)} at places {list(wanted)}"
