# SPDX-License-Identifier: Apache-2.0
"""Long shapes: one size is as long as the work limit permits, the others are small.

A kernel that handles only the first tile, chunk or pass of a loop is correct at small sizes. So each size gets a shape
in which it is the largest entry of LENGTHS that the official size, the kind of work and the limit permit. Most entries
are three tiles of a power of two and a tail of eight. With multiples of eight, kernels use vector accesses and bulk
copies; with primes they do not. Another shape is shorter by sixteen. Its last tile is nearly whole for each tile of 2^m
or 3 * 2^m elements, so a kernel that takes several tiles per step meets each of them as the last, partial one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .shrink import Found, Shrinker

# 3 * 2^n + 8, except 1,032 = 2^10 + 8, 28 = 3 * 2^3 + 4 and 14 = 3 * 2^2 + 2.
LENGTHS = [49160, 12296, 6152, 3080, 1544, 1032, 776, 392, 200, 104, 56, 28, 14]
LONGEST = {"recurrent": 392, "matmul": 1032, "conv": 1032, "attention": 1032, "depthwise": 3080}
MOST_LONG = 4  # shapes
SHORTER, LEAST_SHORTENED = 16, 200  # the other shape is this much shorter, if the size is not small
MOST_ELEMENTS, MOST_FLOPS = 3 << 19, 1e8
MOST_PARTNERS = 2
MOST_REFUSALS = 3  # shapes that the module may refuse with the same other sizes
MOST_RUNS = 80
MUCH_LONGER = 1.25  # a long size exceeds the same size of every other test shape by this factor


def longest_of(workload: str) -> int:
    """The largest length. Tiles of products have hundreds of rows and columns; reductions process thousands at once."""
    return min((n for word, n in LONGEST.items() if word in workload), default=LENGTHS[0])


def long_shapes(shrinker: Shrinker, workload: str, known: list[Found]) -> list[Found]:
    """Returns [(constants, trace)], at most MOST_LONG. `known`: shapes found before."""
    if not shrinker.sizes:
        return []
    search = Search(shrinker, known)
    found: list[Found] = []
    lengths: list[int] = []
    most = longest_of(workload)
    tried: set[str] = set()
    for name in sorted(shrinker.sizes, key=search.gap, reverse=True):
        if name in tried:
            continue
        tried.update(shrinker.tied(name))
        least = MUCH_LONGER * search.longest_so_far(name)
        wanted = [n for n in LENGTHS if least < n <= min(most, shrinker.sizes[name])]
        got = search.longest(name, wanted)
        if got is not None:
            found.append(got)
            lengths.append(got[0].get(name, shrinker.sizes[name]))
            search.have.append(got[0])
        if len(found) == MOST_LONG:
            break
    for (constants, _), length in zip(tuple(found), lengths):
        shorter = search.shortened(constants, length)
        if shorter is not None and len(found) < MOST_LONG:
            found.append(shorter)
    return found


class Search:
    def __init__(self, shrinker: Shrinker, known: list[Found]) -> None:
        self.shrinker, self.official = shrinker, shrinker.official_sizes
        self.known = [constants for constants, _ in known]
        self.have = list(self.known)  # and the shapes that this search found
        shrinker.renew(MOST_RUNS)
        shrinker.most_elements = max(shrinker.most_elements, MOST_ELEMENTS)
        shrinker.most_flops = max(shrinker.most_flops, MOST_FLOPS)
        small, trace = known[0]
        guess, real = shrinker.guess(small), trace.elements()
        self.guesses = real / 2 <= guess <= real * 2

    def longest_so_far(self, name: str) -> int:
        """The largest value among the shapes. If the official size is a multiple of eight, only such values count."""
        vectors = self.official[name] % 8 == 0
        values = [constants.get(name, self.official[name]) for constants in self.have]
        return max((v for v in values if v % 8 == 0 or not vectors), default=1)

    def gap(self, name: str) -> float:
        return self.official[name] / self.longest_so_far(name)

    def longest(self, name: str, wanted: list[int]) -> Found | None:
        """The shape with the largest of the `wanted` sizes that fits and that the module accepts, or None."""
        grounds = [Ground(values, self.shrinker.tied(name)) for values in self.backgrounds()]
        for partner in self.partners(name):  # a size that must grow with it, for example a mask's
            grounds.append(Ground(self.at(self.known[0]), [name, partner]))
        for n in wanted:
            for ground in grounds:
                if ground.refusals < MOST_REFUSALS and n <= ground.most:
                    got = self.attempt(ground, n)
                    if got is not None:
                        return got
        return None

    def shortened(self, constants: dict[str, int], length: int) -> Found | None:
        """The shape in which each size of this length is shorter, or None."""
        if length < LEAST_SHORTENED:
            return None
        values = {k: self.shrinker.in_blocks(k, v - SHORTER) if v == length else v for k, v in constants.items()}
        trace = self.shrinker.attempt(values)
        return (values, trace) if trace is not None and self.shrinker.fits(trace) else None

    def at(self, constants: dict[str, int]) -> dict[str, int]:
        return {k: constants.get(k, v) for k, v in self.shrinker.sizes.items()}

    def backgrounds(self) -> Iterator[dict[str, int]]:
        """Yields values for the other sizes: first 8 (3 for batches), then the known shapes' values, then the values of
        `small` with batches and heads of 1."""
        from .shrink import goes_first, is_batch

        sizes = self.shrinker.sizes.items()
        yield {k: min(v, 3 if is_batch(k) else self.shrinker.in_blocks(k, 8)) for k, v in sizes}
        for constants in self.known:
            yield self.at(constants)
        yield {k: 1 if goes_first(k) else v for k, v in self.at(self.known[0]).items()}

    def partners(self, name: str) -> list[str]:
        sizes = self.shrinker.sizes
        return [k for k in sizes if k != name and sizes[k] >= sizes[name]][:MOST_PARTNERS]

    def attempt(self, ground: Ground, n: int) -> Found | None:
        """Returns (constants, trace) if the module accepts this size and the work fits, else None."""
        whole = self.official[ground.names[0]]
        together = {k: self.shrinker.in_blocks(k, n * self.official[k] // whole) for k in ground.names}
        values = {**ground.values, **together}
        constants = {k: v for k, v in values.items() if v != self.official[k]}
        shrinker = self.shrinker
        if self.guesses and shrinker.guess(constants) > shrinker.most_elements:
            return None
        trace = shrinker.attempt(constants)
        if trace is None:
            ground.refusals += 1
            return None
        if shrinker.fits(trace):
            return shrinker.in_whole_windows((constants, trace))
        ground.most = n * shrinker.most_flops / max(trace.flops, shrinker.most_flops)
        return None


class Ground:
    """Values of the other sizes, and what the search learnt with them."""

    def __init__(self, values: dict[str, int], names: list[str]) -> None:
        self.values, self.names = values, names
        self.refusals = 0
        self.most: float = LENGTHS[0]
