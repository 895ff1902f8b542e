# SPDX-License-Identifier: Apache-2.0
"""How many elements of each tensor of a task a correct program must read: a lower bound.

Walks from the outputs back through the calls and counts how many elements of each value the result depends
on. A view is a place in its storage, so slices of one tensor add up if they cannot overlap. needs.py has the
rules for operators; an operator without a rule needs nothing. In doubt the count is too low, never too high.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import prod
from typing import TYPE_CHECKING

import torch

from . import needs
from .needs import share

if TYPE_CHECKING:
    from .record import Call, Place

MOST_USES = 256  # uses of one storage that count separately


def distinct(place: Place) -> tuple[int, int]:
    """How many elements of a view surely have distinct addresses, and how often each address may occur."""
    span, kept = 0, 1
    for stride, size in sorted(zip(place.strides, place.shape)):
        if size > 1 and stride > span:
            span += stride * (size - 1)
            kept *= size
    count = prod(place.shape)
    return (kept, count // kept) if count else (0, 1)


def window(place: Place, modulus: int | None) -> tuple[int, int] | None:
    """[first, last] of the addresses modulo `modulus`, or None if they wrap around."""
    first, last = place.offset, place.offset
    for stride, size in zip(place.strides, place.shape):
        if size <= 1:
            continue
        if modulus is None or stride < modulus:
            last += stride * (size - 1)
        elif stride % modulus:
            return None
    if modulus is None:
        return first, last
    start = first % modulus
    return (start, start + last - first) if start + last - first < modulus else None


def disjoint(a: Place, b: Place) -> bool:
    """Whether two views of a storage surely share no element."""
    for modulus in [None, *sorted({s for s in a.strides + b.strides if s > 1}, reverse=True)]:
        one, other = window(a, modulus), window(b, modulus)
        if one and other and (one[1] < other[0] or other[1] < one[0]):
            return True
    return False


def united(uses: dict[Place, int]) -> int:
    """A lower bound on the elements in the union of `uses`, {place: elements needed of it}."""
    kept: list[Place] = []
    total = 0
    for place, count in sorted(uses.items(), key=lambda u: -u[1])[:MOST_USES]:
        if count and all(disjoint(place, k) for k in kept):
            kept.append(place)
            total += count
    return total


class Demand:
    """What later calls need of each storage."""

    def __init__(self) -> None:
        self.uses: dict[int, dict[Place, int]] = {}  # by storage

    def add(self, place: Place, count: int) -> None:
        """Records that `count` elements of a view are needed."""
        if count <= 0 or not prod(place.shape):
            return
        kept, times = distinct(place)
        uses = self.uses.setdefault(place.storage, {})
        uses[place] = max(uses.get(place, 0), min(kept, share(count, 1, times)))

    def take(self, place: Place) -> dict[Place, int]:
        """Removes and returns the uses that a write to `place` satisfies. Earlier values must satisfy the others."""
        uses = self.uses.pop(place.storage, {})
        if distinct(place)[0] >= place.total:
            return uses
        gone = prod(place.shape)  # a write covers at most this many elements of another view
        left = {p: n if disjoint(p, place) else n - gone for p, n in uses.items() if p != place}
        left = {p: n for p, n in left.items() if n > 0}
        if left:
            self.uses[place.storage] = left
        return {p: n for p, n in uses.items() if p == place}


def is_view(call: Call) -> bool:
    """Whether a call returns views of its arguments and writes nothing."""
    given = {r.place.storage for r in call.refs}
    return not call.written and any(p.storage in given for p in call.places)


def results(call: Call) -> list[Place]:
    """The places of a call's results; for an in-place operator, the written ones come first."""
    written = {p.storage for p in call.written}
    fresh = [p for p in call.places if p.storage not in written]
    in_place = call.func.overloadpacket.__name__.endswith("_")
    return call.written + fresh if in_place else fresh + call.written


def depends(calls: list[Call], storages: Iterable[int]) -> set[int]:
    """The storages whose values depend on the task's tensors or on random numbers."""
    live = set(storages)
    for call in calls:
        drawn = torch.Tag.nondeterministic_seeded in call.func.tags
        if drawn or any(r.place.storage in live for r in call.refs):
            live.update(p.storage for p in [*call.places, *call.written])
    return live


def elements(calls: list[Call], tensors: dict[str, Place], ends: Iterable[Place],
             stays: Collection[int] = ()) -> dict[str, int]:
    """Counts the elements of each of `tensors` ({name: place}) that a program must read to compute `ends`, the places
    of the results after all `calls`. Tensors that share a storage count once. `stays`: storages that the task
    writes in place; a program need not read elements that keep their values there."""
    live = depends(calls, [p.storage for p in tensors.values()])
    demand = Demand()
    for place in ends:
        demand.add(place, prod(place.shape))
    producers = {p.storage: c for c in calls for p in c.places if not is_view(c)}
    for call in reversed(calls):
        if is_view(call):
            continue
        made = results(call)
        uses = [demand.take(p) for p in made]
        counts = [united(u) for u in uses]
        if any(counts):
            asked = needs.Asked(call, made, counts, uses, live, producers)
            kept = {p.storage for p in call.written if p.storage in stays} if needs.keeps_some(asked) else ()
            for ref, count in zip(call.refs, needs.of(asked)):
                if ref.place.storage not in kept:
                    demand.add(ref.place, min(count, prod(ref.shape)))
    return {n: united(demand.uses.pop(p.storage, {})) for n, p in tensors.items()}
