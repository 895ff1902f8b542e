# SPDX-License-Identifier: Apache-2.0
"""What get_inputs() and the constructor promise about a tensor. A program need not read promised values.

All input families keep the places of zeros, symmetry, and tensors of one or two values (draw.py). So this
module counts for each storage the elements that a program cannot know beforehand: zero after zeros(), the
lower half after tril(), half of A + A.T. In doubt it counts fewer. Views share the count of their storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch._ops import OpOverload

Known = tuple[int, frozenset[int]]  # elements that a program must read; the random draws that made them

MASKS = {"mul", "where", "masked_fill", "div", "logical_and", "bitwise_and", "__and__"}
OVERWRITES = {"copy_", "fill_", "zero_", "set_"}


def triangle(name: str, shape: Sequence[int], diagonal: int) -> int:
    """The number of elements that tril or triu keeps in (batches of) matrices."""
    *batch, m, n = shape
    if name.startswith("tril"):
        kept = sum(min(max(i + diagonal + 1, 0), n) for i in range(m))
    else:
        kept = sum(n - min(max(i + diagonal, 0), n) for i in range(m))
    return kept * prod(batch)


class Promises:
    def __init__(self) -> None:
        self.unknown: dict[int, Known] = {}  # by storage
        self.keep: list[Tensor] = []  # keeps storages alive, because their addresses identify them

    def elements(self, tensor: Tensor) -> int:
        """The number of elements of `tensor` that a program can know only by reading them."""
        return min(self.of(tensor)[0], tensor.numel())

    def of(self, tensor: Tensor) -> Known:
        return self.unknown.get(tensor.untyped_storage()._cdata, (0, frozenset()))

    def note(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Tensor],
             outs: list[Tensor], written: list[Tensor]) -> None:
        """Records the effect of a call on its arguments `tensors`; it wrote `written`, a subset."""
        drawn = torch.Tag.nondeterministic_seeded in func.tags
        name = func.overloadpacket.__name__
        given = {t.untyped_storage()._cdata for t in tensors}
        targets = {t.untyped_storage()._cdata for t in written}
        fresh = [t for t in outs if t.untyped_storage()._cdata not in given | targets]
        for t in [*fresh, *written]:
            storage = t.untyped_storage()._cdata
            self.keep.append(t)
            if drawn:
                self.unknown[storage] = t.numel(), frozenset([storage])
            elif name in OVERWRITES and storage in targets:
                self.overwrite(storage, t, tensors)
            else:
                self.unknown[storage] = self.made(name, args, kwargs, tensors, t)

    def overwrite(self, storage: int, target: Tensor, tensors: list[Tensor]) -> None:
        """Adds the sources' unknown elements to the ones that the write may have left."""
        count, roots = self.unknown.get(storage, (0, frozenset()))
        sources = [self.of(t) for t in tensors if t.untyped_storage()._cdata != storage]
        count = max(0, count - target.numel()) + sum(n for n, _ in sources)
        self.unknown[storage] = count, roots.union(*(r for _, r in sources))

    def made(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Tensor],
             out: Tensor) -> Known:
        live = [t for t in tensors if self.of(t)[0]]
        if not live or any(not self.of(t)[0] and t.numel() > 1 for t in tensors) and name.rstrip("_") in MASKS:
            return 0, frozenset()
        counts, roots = zip(*(self.of(t) for t in live))
        count = min(out.numel(), sum(min(n, t.numel()) for n, t in zip(counts, live)))
        if len(live) > 1:
            count = int(count * min(min(n / t.numel(), 1) for n, t in zip(counts, live)))
            if len(frozenset().union(*roots)) < sum(map(len, roots)):  # A + A.T
                count = min(count, out.numel() // 2)
        if name in ("tril", "triu", "tril_", "triu_"):
            diagonal = args[1] if len(args) > 1 else kwargs.get("diagonal", 0)
            count = min(count, triangle(name, out.shape, diagonal))
        return count, frozenset().union(*roots)
