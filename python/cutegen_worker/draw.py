# SPDX-License-Identifier: Apache-2.0
"""Draws fresh values: the inputs of each family, and parameters.

Fresh values keep what an input evidently promises: the zeros of a triangular matrix, symmetry, rows that are
probabilities, only two distinct values. The families `signed` and `heavy` replace all other values; `outliers`
and `special` change some at secret places; extremes.py draws `extremes`. If the module does not work on
arbitrary numbers, values.py draws again in a narrower domain: first non-negative values, then values in the
range of the task's own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Generator, Tensor

from . import extremes, float8

if TYPE_CHECKING:
    from .facts import Facts
    from .wire import Json

Domain = str | extremes.Extent

SIGNED, HEAVY, OUTLIERS, SPECIAL, EXTREMES = "signed", "heavy", "outliers", "special", "extremes"
HALVES, WHOLES = "*.5", "*.0"  # levels of values that the module rounds; not names of tensors
RANGED = "ranged"  # for proposed tests only, whose requests have the ranges
FAMILIES = ("made", SIGNED, HEAVY, OUTLIERS, SPECIAL, EXTREMES)
ANY, POSITIVE, RANGE = "any", "positive", "range"
DOMAINS = (ANY, POSITIVE, RANGE)
EDGES = 16  # one in this many elements of a ranged input is an edge value
FAR_AMONG = 8  # the least number of rows among which one is far below zero
PEAK, PEAK_AMONG = 200.0, 10  # least size of a peak; at most one row in PEAK_AMONG has one
BLOCK = 64  # one outlier in each row, or in each stretch of this length if rows are shorter


def domains(family: str, facts: Facts, request: Json) -> Iterable[Domain]:
    """The domains in the order in which to try them, until the module works on the values."""
    if family == "made":
        return (RANGE,)
    if family == RANGED:
        return (ANY,)
    if family == EXTREMES:
        low = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(request["math_mode"])
        return itertools.chain(extremes.extents(facts, request, low), (RANGE,))
    return DOMAINS


def input_values(made: Tensor, family: str, generator: Generator, domain: Domain = ANY, nan: bool = True,
                 dtype: torch.dtype | None = None, peaks: bool = True) -> Tensor:
    """Replaces the values of `made` with values of `family`, but keeps integers and booleans. `dtype`: the
    input's dtype, if `made` has another. `peaks`: whether outliers may be very large."""
    if family == "made" or not made.is_floating_point() or made.numel() == 0:
        return made
    if float8.is_float8(made):
        new = input_values(made.float(), family, generator, domain, nan, made.dtype, peaks)
        return float8.rounded(new, made.dtype, nan)
    dtype = dtype or made.dtype
    if made.numel() > 16 and made.reshape(-1)[:4096].unique().numel() <= 2:
        if made.unique().numel() <= 2:  # unique() sorts, so it runs only if the beginning has at most two values
            return made
    if family == SPECIAL:
        return special(made, generator, domain, nan, dtype)
    if family == EXTREMES:
        return extreme(made, generator, domain, dtype)
    draw = {SIGNED: signed, HEAVY: heavy}.get(family)
    probable = made.dim() > 0 and are_probabilities(made)
    new = outliers(made, generator, peaks and not probable) if draw is None else draw(made.shape, generator)
    if family == SIGNED and not probable:
        new = with_far_rows(new, generator)
    return keep_promises(made, within(made, new.to(made.dtype), domain))


def normal(shape: Sequence[int], generator: Generator) -> Tensor:
    return torch.randn(shape, generator=generator, device=generator.device)


def uniform(shape: Sequence[int] | int, generator: Generator) -> Tensor:
    return torch.rand(shape, generator=generator, device=generator.device)


def below(limit: int, shape: Sequence[int], generator: Generator) -> Tensor:
    return torch.randint(limit, shape, generator=generator, device=generator.device)


def shuffled(count: int, generator: Generator) -> Tensor:
    return torch.randperm(count, generator=generator, device=generator.device)


def signed(shape: Sequence[int], generator: Generator) -> Tensor:
    """Normal values, scaled and shifted as a whole and by leading row. Some rows and columns, sometimes all
    values, are negative."""
    scale = torch.exp(0.5 * normal((), generator))
    values = normal(shape, generator) * scale + 0.5 * normal((), generator)
    if len(shape) >= 2:
        row = (shape[0],) + (1,) * (len(shape) - 1)
        values = values * torch.exp(0.3 * normal(row, generator)) + 0.3 * normal(row, generator)
    return with_signs(values, -1, generator)


def heavy(shape: Sequence[int], generator: Generator) -> Tensor:
    """Log-normal magnitudes with random signs, and a few large values at random places. Some rows and
    columns, sometimes all values, are positive."""
    values = torch.exp(1.5 * normal(shape, generator)) * torch.sign(normal(shape, generator))
    flat = values.view(-1)
    count = max(1, flat.numel() // 4096)
    where = below(flat.numel(), (count,), generator)
    flat[where] = torch.sign(normal((count,), generator)) * 50
    return with_signs(values, 1, generator)


def with_signs(values: Tensor, sign: int, generator: Generator) -> Tensor:
    """Gives an eighth of the leading rows and innermost columns one sign; in one draw of four, gives it to all values.

    A kernel whose maximum starts at zero is wrong only if all values of a row are negative.
    """
    if not values.dim() or uniform((), generator) < 0.25:
        return sign * values.abs() if values.dim() else values
    for axis in {0, values.dim() - 1}:
        count = max(1, values.shape[axis] // 8)
        some = shuffled(values.shape[axis], generator)[:count]
        values.index_copy_(axis, some, sign * values.index_select(axis, some).abs())
    return values


def with_far_rows(values: Tensor, generator: Generator) -> Tensor:
    """Moves one leading row and one innermost column so far below zero that their exponentials are zero.
    A softmax whose maximum starts at zero then divides by zero."""
    for axis in {0, values.dim() - 1} if values.dim() else ():
        if values.shape[axis] >= FAR_AMONG:
            at = below(values.shape[axis], (1,), generator)
            far = -150 - 100 * uniform((), generator)
            values.index_copy_(axis, at, values.index_select(axis, at) + far)
    return values


def outliers(made: Tensor, generator: Generator, peaks: bool) -> Tensor:
    """The task's own values, with a large and a very negative value in each row or stretch.

    A solution that omits a tile, a slice of a sum or an element misses some of these. Their places differ
    between rows as long as possible. The ends and the powers of two come first, because loops begin and end
    there.
    """
    values = made.detach().clone().contiguous()
    flat = values.view(-1)
    width = max(BLOCK, made.shape[-1] if made.dim() else 1)
    start = torch.arange(0, flat.numel(), width, device=flat.device)
    usual = float(made.abs().mean(dtype=torch.float64)) or 1.0
    if not math.isfinite(usual):  # for example an additive mask
        known = made[torch.isfinite(made)].abs()
        usual = float(known.mean(dtype=torch.float64)) or 1.0 if known.numel() else 1.0
    size = usual * min(64.0, 4.0 + math.sqrt(width))
    for sign in (-1, 1):
        where = start + places(width, len(start), generator)
        where = where.clamp(max=flat.numel() - 1)
        planted = sign * size * (0.5 + uniform(where.shape, generator))
        flat[where] = planted.to(made.dtype)
    if not peaks:
        return values
    count = min(2, len(start) // PEAK_AMONG)
    ends = (width - 1) * (below(2, (1,), generator) + torch.arange(count, device=flat.device)) % (2 * width - 2)
    where = start[shuffled(len(start), generator)[:count]] + ends
    peak = max(size, PEAK) * (1 + uniform((count,), generator))
    flat[where.clamp(max=flat.numel() - 1)] = peak.to(made.dtype)
    return values


def plant_levels(made: dict[str, Tensor], changed: dict[str, Tensor], levels: dict[str, list[float | str]],
                 state: dict[str, Tensor], generator: Generator) -> None:
    """Plants what the module compares an input with: for x > 0.5 some elements of exactly 0.5, for x > y some equal
    elements, and for round(x) some elements halfway between two integers."""
    for name, known in levels.items():
        t = changed.get(name)
        if t is None or not t.is_floating_point() or float8.is_float8(t) or not t.dim() or t.numel() < FAR_AMONG or \
                made[name].reshape(-1)[:4096].unique().numel() <= 2 or are_probabilities(made[name]):
            continue
        values = t.detach().clone().contiguous()
        flat = values.view(-1)
        low, high = float(made[name].min()), float(made[name].max())
        for level in known:
            where = below(flat.numel(), (max(1, flat.numel() // 64),), generator)
            planted = level_values(level, flat, where, {**state, **changed}, t.shape, generator)
            if planted is not None:
                planted = planted.to(flat.dtype)
                fits = (planted >= low) & (planted <= high)
                flat[where[fits]] = planted[fits]
        changed[name] = keep_promises(made[name], values)


def level_values(level: float | str, flat: Tensor, where: Tensor, tensors: dict[str, Tensor], shape: Sequence[int],
                 generator: Generator) -> Tensor | None:
    """The values to plant, or None if the dtype has no such value."""
    if isinstance(level, float):
        value = torch.full_like(flat[where], level)
        return value if bool((value.double() == level).all()) else None
    if level in (HALVES, WHOLES):
        whole = flat[where].round()
        return whole + 0.5 if level == HALVES else whole
    other = tensors.get(level)
    if other is None or not other.is_floating_point() or other.numel() == 0:
        return None
    own = other.detach().reshape(-1)
    return own[where] if other.shape == shape else own[below(own.numel(), where.shape, generator)]


def places(width: int, count: int, generator: Generator) -> Tensor:
    """`count` places below `width` in random order. A place repeats only after all others occurred."""
    powers = [p for p in (2**i for i in range(5, 31)) if p < width]
    on = generator.device
    edges = torch.tensor(sorted({0, width - 1, *powers, *(p - 1 for p in powers)}), device=on)
    first = (edges & (edges - 1) == 0) | (edges == width - 1)  # the other edges are one below a power
    rank = torch.full((width,), 2.0, device=on)
    rank[edges] = (~first).float()
    order = torch.argsort(rank + 0.5 * uniform(width, generator))
    chosen = order[: min(count, width)]
    chosen = chosen.repeat(-(-count // len(chosen)))[:count] if count else chosen
    return chosen[shuffled(count, generator)]


def ranged(made: Tensor, wanted: Json, generator: Generator) -> Tensor:
    """Uniform values in a proposed test's range, with its edge values at random places."""
    low, high, edges = float(wanted["low"]), float(wanted["high"]), wanted.get("edges", [])
    most = torch.finfo(made.dtype).max
    drawn = torch.rand(made.shape, generator=generator, device=generator.device, dtype=torch.float64)
    new = low * (1 - drawn) + high * drawn  # not low + (high - low) * drawn, which may overflow
    if edges and new.numel():
        chosen = below(len(edges), made.shape, generator)
        planted = torch.tensor(edges, dtype=torch.float64, device=new.device)[chosen]
        flat = torch.zeros(new.numel(), dtype=torch.bool, device=new.device)
        count = min(new.numel(), max(len(edges), new.numel() // EDGES))
        flat[shuffled(new.numel(), generator)[:count]] = True
        new = torch.where(flat.view(made.shape), planted, new)
    return new.clamp(-most, most).to(made.dtype)


def extreme(made: Tensor, generator: Generator, domain: Domain, dtype: torch.dtype) -> Tensor:
    probable = made.dim() > 0 and are_probabilities(made)
    if domain == RANGE:
        return made
    assert not isinstance(domain, str)
    new = domain.draw(made, probable, generator, dtype).to(made.dtype)
    return new if probable or new is made else keep_promises(made, new)


def special(made: Tensor, generator: Generator, domain: Domain, nan: bool, dtype: torch.dtype) -> Tensor:
    """The task's own values, with zeros of both signs, subnormal and infinite values, and NaN."""
    if domain == RANGE or made.dim() and are_probabilities(made):
        return made
    values = made.detach().clone().contiguous()
    flat = values.view(-1)
    many, few = max(1, flat.numel() // 64), max(1, min(16, flat.numel() // 2048))
    tiny = torch.finfo(dtype).tiny / 4
    planted = [(0.0, many), (-0.0, many), (tiny, many), (-tiny, many)]
    endless = [math.inf, -math.inf] + ([math.nan] if nan else [])
    if flat.numel() < 1024:  # a small tensor gets only one of them
        at = int(below(len(endless), (), generator))
        endless = endless[at : at + 1]
    for value, count in planted + [(v, few) for v in endless]:
        if domain == POSITIVE:
            value = abs(value)
        where = below(flat.numel(), (count,), generator)
        flat[where] = value
    zeros = made == 0
    return values.masked_fill(zeros, 0) if zeros.float().mean() >= 0.2 else values


def within(made: Tensor, new: Tensor, domain: Domain) -> Tensor:
    """Makes the new values non-negative, or maps them into the range of the task's own finite values."""
    if domain == POSITIVE:
        return new.abs()
    if domain == RANGE:
        low, high = made.min(), made.max()
        if not torch.isfinite(high - low):  # for example an additive mask: its infinities stay
            finite = torch.isfinite(made)
            low, high = torch.aminmax(made[finite]) if finite.any() else (made.new_zeros(()), made.new_zeros(()))
            return torch.where(finite, low + (high - low) * torch.sigmoid(new), made)
        return low + (high - low) * torch.sigmoid(new)
    return new


def are_probabilities(made: Tensor) -> bool:
    if made.shape[-1] < 2 or made.min() < 0:
        return False
    sums = made.sum(-1, dtype=torch.float64)
    return torch.allclose(sums, torch.ones_like(sums), atol=1e-3)


def keep_promises(made: Tensor, new: Tensor) -> Tensor:
    square = made.dim() >= 2 and made.shape[-1] == made.shape[-2]
    zeros = made == 0
    if zeros.float().mean() >= 0.2:
        new = new.masked_fill(zeros, 0)
    elif square and torch.equal(made, made.mT):
        new = (new + new.mT) / 2
    elif made.dim() and are_probabilities(made):
        # An underflow to zero would make PyTorch's 0 * log(0) NaN. The family `extremes` tests zeros.
        least = min(torch.finfo(made.dtype).tiny, float(made.min()))
        new = torch.softmax(new, -1).clamp_min(least)
    return new


def initial(tensor: Tensor, generator: Generator) -> Tensor:
    """Initial values of a mutated tensor. A constant would not show whether a program reads it."""
    tensor = tensor.detach().clone()
    vary(tensor, generator)
    return tensor


def redraw(model: torch.nn.Module, generator: Generator, mutated: Sequence[Tensor] = ()) -> None:
    """Redraws constant parameters, running statistics and the tensors in `mutated`."""
    with torch.no_grad():
        for parameter in model.parameters():
            vary(parameter, generator)
        for module in model.modules():
            for name in ("running_mean", "running_var"):
                buffer = getattr(module, name, None)
                if isinstance(buffer, torch.Tensor):
                    vary(buffer, generator)
        for tensor in mutated:
            vary(tensor, generator)
        for module in model.modules():
            count: Any = getattr(module, "num_batches_tracked", None)
            if any(count is t for t in mutated):
                count.copy_(below(1000, (), generator))


def vary(tensor: Tensor, generator: Generator) -> None:
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return
    first = tensor.flatten()[0]
    if not torch.all(tensor == first):
        return  # the constructor drew it with this run's seed
    noise, now = normal(tensor.shape, generator), float8.widened(tensor)
    noise = noise.to(now.dtype)
    tensor.copy_(0.1 * noise if first == 0 else now * torch.exp(0.2 * noise))
