# SPDX-License-Identifier: Apache-2.0
"""The input family `extremes`: magnitudes from 1e-30 to 1e30, rows of one sign, ties, zeros.

The family cuts a tensor into lines (rows, columns or leading slices), and gives each line a kind: only large
negative values, only large positive values, subnormal values, mixed magnitudes, and so on. Within a line, the
largest and the smallest value occur several times. Rows that are probabilities get exact zeros. An Extent says
how far this goes; extents() narrows it until the module works.

Elements that the native reference gets wrong (an intermediate overflowed), and elements at the limit of the
dtype, cannot be judged: settle() makes their truth NaN. If one rounding of the inputs changes a result by a
tenth (the exponential of a difference of large numbers), an accurate solution may be wrong by any factor:
loosen() then permits any value as large as the other results.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor

from . import float8

if TYPE_CHECKING:
    from .facts import Facts
    from .wire import Json


DEEP = (1.1e3, 2e4, 1e5, 1e8, 1e15, 1e30)  # the largest value of a line is below -DEEP
MAGNITUDES = (1e-30, 1e-15, 1e-8, 1e-4, 1e-2, 1.0, *DEEP)
WIDEST, NARROWER = 1e30, (1e15, 1e6, 1e2, 10.0)
SPREAD = 0.5  # values of a line lie between its magnitude and 1.5 times that
SOME, DEEPEST, HIGH, TINY, SMALL, MIXED, HUGE, USUAL = range(8)  # kinds; SOME: large negative values
OTHERS = (TINY, DEEPEST, HIGH, MIXED, USUAL, SMALL, HUGE)
STRETCH = 64  # length of a line in a tensor of one dimension
LEADING = 4  # the least number of slices into which to cut the leading dimension
MOST_TIED = 1 << 22  # the most elements of lines that get ties
ALL, NONE = "all", "none"
WRONG = 0.1  # relative error from which a native result counts as wrong
LOOSE = 0.1  # relative change of a result by one rounding of its inputs, from which any value passes
EDGE = 0.1  # share of the largest number; results so close to overflow are not judged


class Extent:
    """The range of values that one attempt draws."""

    def __init__(self, most: float, positive: bool = False, zeros: str | int = NONE, across: bool = False,
                 ties: bool = True, limit: float = math.inf) -> None:
        self.most, self.positive, self.zeros = min(most, limit), positive, zeros
        self.wide, self.across, self.ties = most, across, ties
        self.probabilities = self.numbers = 0  # inputs that were drawn

    def draw(self, made: Tensor, probabilities: bool, generator: Generator, dtype: torch.dtype) -> Tensor:
        if made.numel() < 2:
            return made  # a scale, a temperature
        if probabilities:
            self.probabilities += 1
            zeros = self.zeros == ALL or self.zeros == self.probabilities - 1
            return with_zeros(made, generator) if zeros else made
        self.numbers += 1
        new, axes = lines(made, self, generator, dtype)
        if self.positive:
            new = new.abs()
        return plant_ties(new, axes, generator) if self.ties else new


def extents(facts: Facts, request: Json, low: torch.dtype | None) -> Iterator[Extent]:
    """The extents in the order in which to try them. The caller stops at the first for which the module works.
    `low`: the dtype to which the math mode rounds."""
    limit = torch.finfo(low).max if low is not None else math.inf
    across = request["shape"].endswith("1")
    floats = all(d.startswith(("f", "bf")) for d in request["dtypes"])
    if facts.most > 1 and (facts.tells_ties or floats):  # otherwise an unspecified order decides the result
        first = Extent(facts.most, False, ALL, across, facts.tells_ties, limit)
        yield first
        for one in range(first.probabilities) if first.probabilities > 1 else ():
            yield Extent(facts.most, False, one, across, facts.tells_ties, limit)
        widths = (facts.most, *(n for n in NARROWER if n < facts.most)) if first.numbers else ()
        for most in widths:
            for positive in (False, True):
                yield Extent(most, positive, NONE, across, facts.tells_ties, limit)


def lines(made: Tensor, extent: Extent, generator: Generator, dtype: torch.dtype) -> tuple[Tensor, list[int]]:
    """Returns new values in the shape of `made`, and the axes within a line."""
    on, shape = generator.device, made.shape
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    index, axes = cut(shape, extent, generator)
    count = int(index.max()) + 1
    which, scales, signs, mixed = kinds(count, extent, generator, dtype, wide)
    which = which[index]
    values = torch.rand(shape, generator=generator, device=on, dtype=wide) * SPREAD + 1
    values *= scales[which]
    if bool(mixed[which].any()):
        small, large = magnitudes(extent, dtype)[0], magnitudes(extent, dtype)[-1]
        power = torch.rand(shape, generator=generator, device=on, dtype=wide)
        power = power * math.log10(large / small) + math.log10(small)
        values *= torch.where(mixed[which], 10**power, 1)
        del power
    coins = torch.randint(0, 2, shape, generator=generator, device=on, dtype=torch.int8) * 2 - 1
    values *= torch.where(signs[which] == 0, coins, signs[which])
    return values, axes


def cut(shape: Sequence[int], extent: Extent, generator: Generator) -> tuple[Tensor, list[int]]:
    """Returns (the index of each element's line, in a shape that broadcasts; the axes within a line)."""
    on, last = generator.device, len(shape) - 1
    coin = bool(torch.rand((), generator=generator, device=on) < 0.5)
    if last == 0:
        if coin or shape[0] < 4 * STRETCH:
            return torch.zeros(1, dtype=torch.int64, device=on), [0]
        return torch.arange(shape[0], device=on) // STRETCH, []
    if extent.across and shape[-1] > 1:
        return torch.arange(shape[-1], device=on), list(range(last))
    if coin and last > 1 and shape[0] >= LEADING:
        return torch.arange(shape[0], device=on).view(-1, *[1] * last), list(range(1, last + 1))
    return torch.arange(math.prod(shape[:-1]), device=on).view(*shape[:-1], 1), [last]


def kinds(count: int, extent: Extent, generator: Generator, dtype: torch.dtype,
          wide: torch.dtype) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The kind of each of `count` lines and, by kind: the magnitude, the sign (0 for both), and whether
    magnitudes are mixed."""
    on = generator.device

    def pick(some: list[float]) -> float:
        return some[int(torch.randint(len(some), (), generator=generator, device=on))]

    tiny, most = torch.finfo(dtype).tiny, largest(extent, dtype)
    deep = [d for d in DEEP if d <= most] or [most]
    small = [m for m in magnitudes(extent, dtype) if m < 1] or [1.0]
    # Squares of float32's subnormal numbers underflow to zero; those of half do not.
    subnormal = 0.3 * tiny if extent.wide >= WIDEST or tiny * extent.wide >= 1 else small[0]
    table = {SOME: (deep[0], -1), DEEPEST: (deep[-1], -1), HIGH: (pick(deep), 1),
             TINY: (subnormal, 0), SMALL: (pick(small), 0), MIXED: (1, 0), HUGE: (most, 0),
             USUAL: (1, 0)}
    others = [OTHERS[i] for i in torch.randperm(len(OTHERS), generator=generator, device=on).tolist()]
    order = torch.tensor([SOME, *others] if count > 1 else others[:1], device=on)
    which = torch.empty(count, dtype=torch.int64, device=on)
    places = torch.randperm(count, generator=generator, device=on)
    which[places] = order[torch.arange(count, device=on) % len(order)]
    rows = [table[kind] for kind in range(len(table))]
    scales = torch.tensor([scale for scale, _ in rows], device=on, dtype=wide)
    signs = torch.tensor([sign for _, sign in rows], device=on, dtype=torch.int8)
    mixed = torch.tensor([kind == MIXED for kind in range(len(rows))], device=on)
    return which, scales, signs, mixed


def largest(extent: Extent, dtype: torch.dtype) -> float:
    """A magnitude at which a line still fits the dtype and the extent."""
    return min(extent.most, torch.finfo(dtype).max / (1 + SPREAD) / 1.001)


def magnitudes(extent: Extent, dtype: torch.dtype) -> list[float]:
    least, most = max(1 / extent.wide, torch.finfo(dtype).tiny), largest(extent, dtype)
    return [m for m in MAGNITUDES if least <= m <= most] or [1.0]


def plant_ties(values: Tensor, axes: list[int], generator: Generator) -> Tensor:
    """Repeats the largest and the smallest value of some lines along each axis at two more places. Places vary
    between lines; the ends and powers of two come first."""
    from . import draw  # avoids an import cycle

    for axis in axes:
        size = values.shape[axis]
        others = [n for i, n in enumerate(values.shape) if i != axis]
        count = math.prod(others)
        if size < 4 or count == 0:
            continue
        most = max(1, min(-(-count // 2), MOST_TIED // size))
        some = torch.randperm(count, generator=generator, device=generator.device)[:most]
        at = torch.unravel_index(some, others) if others else ()
        view = values.movedim(axis, -1)
        rows = view[at] if others else view[None]
        lowest, highest = rows.amin(-1, keepdim=True), rows.amax(-1, keepdim=True)
        for value in (lowest, highest, lowest, highest):
            rows.scatter_(1, draw.places(size, len(rows), generator)[:, None], value)
        if others:
            view[at] = rows
        else:
            values.copy_(rows[0])
    return values


def with_zeros(made: Tensor, generator: Generator) -> Tensor:
    """New rows of probabilities. Half of the rows have zeros, and some have a single non-zero value."""
    on = generator.device
    values = torch.softmax(2 * torch.randn(made.shape, generator=generator, device=on), -1)
    row = (*made.shape[:-1], 1)
    chance = torch.rand(row, generator=generator, device=on)
    share = torch.where(chance < 0.5, 0.3, torch.where(chance < 0.6, 1.0, 0.0))
    gone = torch.rand(made.shape, generator=generator, device=on) < share
    gone &= values < values.amax(-1, keepdim=True)
    values = values.masked_fill(gone, 0)
    return values / values.sum(-1, keepdim=True)


def unsure(native: Tensor, truth: Tensor) -> Tensor:
    """Where the truth is uncertain: classes differ, overflow is near, or the native result is far from it."""
    most, tiny = torch.finfo(native.dtype).max, torch.finfo(native.dtype).tiny
    n, t = native.double(), truth.double()
    rounded = t.to(native.dtype).double()
    other = torch.isfinite(n) != torch.isfinite(rounded)
    # Modules clamp to float8's largest number, so results just below it are certain.
    low = most if float8.is_float8(native) else (1 - EDGE) * most
    edge = (t.abs() > low) & (t.abs() < (1 + EDGE) * most)
    far = (n - t).abs() > WRONG * t.abs() + 4 * tiny
    return other | edge | far & torch.isfinite(n) & torch.isfinite(t)


def settle(native: Tensor, truth: Tensor, piece: int = 1 << 26) -> None:
    """Makes the truth NaN where it is uncertain."""
    native, truth = native.reshape(-1), truth.view(-1)
    for at in range(0, truth.numel(), piece):
        part = slice(at, at + piece)
        truth[part].masked_fill_(unsure(native[part], truth[part]), math.nan)


def loosen(moved: Tensor, truth: Tensor, piece: int = 1 << 26) -> None:
    """Raises sensitivities in `moved` that exceed LOOSE times the truth to the largest result. Skips elements
    whose truth is zero: beside a ReLU's kink, a small sensitivity covers an accurate solution's error."""
    moved, truth = moved.view(-1), truth.reshape(-1)
    parts = [slice(at, at + piece) for at in range(0, truth.numel(), piece)]
    largest = max((float(truth[p].nan_to_num(0, 0, 0).abs().max()) for p in parts), default=0.0)
    for part in parts:
        size, t = moved[part].abs(), truth[part].abs()
        loose = torch.isfinite(size) & (size > LOOSE * t) & (size < largest) & (t > 0)
        moved[part] = torch.where(loose, torch.copysign(torch.full_like(size, largest), moved[part]), moved[part])


def settle_packed(slots: list[Json], tensors: list[Tensor]) -> None:
    """Calls settle() and loosen() for the outputs of a set."""
    part = {(s["name"], s["part"]): i for i, s in enumerate(slots)}
    for (name, what), i in part.items():
        native = tensors[part[name, "native"]] if (name, "native") in part else None
        if what == "truth" and native is not None and native.is_floating_point():
            tensors[i] = tensors[i].clone()  # the tensor may be the module's own result
            settle(native, tensors[i])
            if (name, "sensitivity") in part:
                loosen(tensors[part[name, "sensitivity"]], tensors[i])
