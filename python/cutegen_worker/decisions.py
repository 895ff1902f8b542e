# SPDX-License-Identifier: Apache-2.0
"""Finds results that depend on a discrete decision which rounding may turn either way.

A comparison of computed values, an order of computed values, the index of a maximum and the rounding of a computed
value to an integer are decisions. If two values differ by no more than a few of their rounding errors, both outcomes
are correct. A comparison of inputs has no rounding error, so it has one correct outcome. `Watched` records the operands
of each decision in the float64, the native and the sequential run. Their differences and the rounding of the mode give
each operand's margin. `Turned` then runs the reference in float64: the uncertain decisions go one way in the first run,
and the other way in the second run. In up to MOST_MIXED further runs, each decision goes its own way, because later
results may depend on several decisions: if a token goes to another expert, the next tokens of both experts get other
places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from . import whole
from .orders import COPIES, aten, next_in_group, overloads

if TYPE_CHECKING:
    from torch._ops import OpOverload

ROUNDINGS = {"fp32": 4.0}  # an operand's margin in roundings; in other modes 1
STEP_ROUNDINGS = 4.0  # the margin of a value that is rounded to an integer, in roundings of the native dtype
TINY = 2.0**-126  # smaller numbers may become zero
MOST_WATCHED, MOST_WATCHED_GPU = 1 << 24, 1 << 28  # elements of recorded operands
MOST_MIXED = 6
REACH = 32  # neighbours by magnitude on either side whose error an operand may have
NAMES = {"gt", "lt", "ge", "le", "sort", "topk", "argmax", "argmin", "max", "min", "round", "floor", "ceil",
         "trunc"}  # for facts.py
COMPARISONS = set(overloads(*(f"{name}.{kind}" for name in ("gt", "lt", "ge", "le") for kind in ("Tensor", "Scalar"))))
STEPS = set(overloads("round", "floor", "ceil", "trunc"))
LEVELS = {"threshold", "hardshrink"}  # operators with a jump at a number
EQUALITIES = {"gt", "lt", "ge", "le", "eq", "ne"}
WHOLE = {"eq", "ne"}  # certain for whole numbers, even if they are computed
ROUNDED = {"round", "floor", "ceil", "trunc"}
ON_INPUTS = LEVELS | EQUALITIES | ROUNDED  # operators whose decisions on inputs are certain
SORTS = set(overloads("sort", "sort.stable", "topk"))
LARGEST = {func: largest for name, largest in (("argmax", True), ("max.dim", True), ("argmin", False),
                                              ("min.dim", False)) for func in overloads(name)}
SCATTERS = {func: func in set(overloads("scatter_.src", "scatter_.value")) for func in overloads(
    "scatter.src", "scatter.value", "scatter_.src", "scatter_.value")}


class Decisions(TorchDispatchMode):
    """Numbers the decisions on computed values in the order in which they run."""

    def __init__(self) -> None:
        super().__init__()
        self.computed: set[int] = set()  # addresses of results; a later constant at such an address does no harm
        self.count = 0

    def is_computed(self, value: Any) -> bool:
        return isinstance(value, Tensor) and value.untyped_storage().data_ptr() in self.computed

    def __torch_dispatch__(self, func: OpOverload, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        more = kwargs or {}
        known = any(map(self.is_computed, args))
        decides = func in COMPARISONS or func in SORTS or func in LARGEST or func in STEPS
        if decides and known and any(isinstance(a, Tensor) and a.is_floating_point() for a in args[:2]):
            number, self.count = self.count, self.count + 1
            out = self.decide(number, func, args, more)
        else:
            out = self.follow(func, args, more)
        if not func.is_view and (known or func not in COPIES and any(isinstance(a, Tensor) for a in args)):
            for made in out if isinstance(out, (tuple, list)) else (out,):
                if isinstance(made, Tensor):
                    self.computed.add(made.untyped_storage().data_ptr())
        return out

    def decide(self, number: int, func: OpOverload, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
        return func(*args, **more)

    def follow(self, func: OpOverload, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
        return func(*args, **more)


class Certain(Decisions):
    """Keeps decisions on inputs while the inputs move by a few roundings. The first run records the outcomes, and later
    runs use them: a program gets the same inputs as the reference, so x > 0.5 has one correct outcome for x = 0.5.

    Also keeps the equality of whole numbers, as in `place == self.places` with a buffer of numbers: if the buffer
    moved, no place would equal any of them."""

    def __init__(self) -> None:
        super().__init__()
        self.known: list[Tensor | None] | None = None
        self.found: list[Tensor | None] = []
        self.elements = 0

    def start(self) -> None:
        """Begins another run."""
        if self.found and self.known is None:
            self.known = self.found
        self.found, self.computed = [], set()

    def follow(self, func: OpOverload, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
        name = func.overloadpacket.__name__
        tensors = [a for a in args[:2] if isinstance(a, Tensor)]
        computed = any(map(self.is_computed, args))
        if name not in ON_INPUTS or not tensors or not tensors[0].is_floating_point() or \
                computed and name not in WHOLE:
            return func(*args, **more)
        number = len(self.found)
        if self.known is not None:
            kept = self.known[number] if number < len(self.known) else None
            self.found.append(kept)
            return func(*args, **more) if kept is None else self.outcome(name, args, kept)
        if computed and not all(map(whole.is_whole, tensors)):
            self.found.append(None)
            return func(*args, **more)
        x = args[0]
        kept = x > args[1] if name == "threshold" else x.abs() > (args[1] if len(args) > 1 else 0.5) \
            if name == "hardshrink" else func(*args, **more)
        self.elements += kept.numel()
        self.found.append(kept.clone() if self.elements <= MOST_WATCHED else None)
        return func(*args, **more)

    @staticmethod
    def outcome(name: str, args: tuple[Any, ...], kept: Tensor) -> Tensor:
        if name not in LEVELS:
            return kept.clone()
        return torch.where(kept, args[0], args[2] if name == "threshold" else 0.0)


class Watched(Decisions):
    """Records (the operand or the difference of two operands, its scale) of each decision."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Tensor, Tensor] | None] = []
        self.steps: dict[int, float] = {}  # the unit of the dtype that is rounded to an integer, by decision
        self.elements = 0

    def decide(self, number: int, func: OpOverload, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
        value, scale = compared(args) if func in COMPARISONS else (args[0].double(), args[0].double().abs())
        self.elements += value.numel()
        most = MOST_WATCHED_GPU if value.is_cuda else MOST_WATCHED
        self.seen.append((value.clone(), scale.clone()) if self.elements <= most else None)
        if func in STEPS:
            self.steps[number] = torch.finfo(args[0].dtype).eps
        return func(*args, **more)


def compared(args: tuple[Any, ...]) -> tuple[Tensor, Tensor]:
    """Returns (the difference of two compared values, the larger of their absolute values)."""
    a, b = (v.double() if isinstance(v, Tensor) else torch.tensor(float(v), dtype=torch.float64) for v in args[:2])
    return a - b, torch.maximum(a.abs(), b.abs()).expand((a - b).shape)


def margins(exact: Watched, others: list[Watched], eps: float, roundings: float,
            alone: bool = False) -> list[Tensor | None]:
    """The margin of each decision's operand, or None if it is unknown. A difference that is zero in every run is
    certain: its margin is -1. `alone`: an operand has its own error, not the largest one of its neighbours."""
    out: list[Tensor | None] = []
    for k, known in enumerate(exact.seen):
        runs = [run.seen[k] if k < len(run.seen) else None for run in others]
        if known is None or any(r is None or r[0].shape != known[0].shape for r in runs):
            out.append(None)
            continue
        value, scale = known
        error, zero = torch.zeros_like(value), value == 0
        for run in runs:
            assert run is not None
            error = torch.maximum(error, torch.nan_to_num((run[0] - value).abs(), 0, 0, 0))
            zero &= run[0] == 0
        if not alone:
            error = nearby(value, error)
        unit, most = eps, roundings
        if k in exact.steps:  # a module may compute in a more precise dtype than it returns
            unit, most = max(run.steps.get(k, 0.0) for run in others), STEP_ROUNDINGS
        margin = most * torch.maximum(error, unit * torch.nan_to_num(scale, 0, 0, 0)) + TINY
        out.append(margin.masked_fill(zero, -1))
    return out


def nearby(value: Tensor, error: Tensor) -> Tensor:
    """The largest error among each element and its neighbours by magnitude."""
    order = torch.argsort(torch.nan_to_num(value.abs().reshape(-1), torch.inf, torch.inf, torch.inf))
    flat = error.reshape(-1).clone()
    if flat.numel():
        sorted_errors = torch.nn.functional.pad(flat[order], (REACH, REACH))
        flat[order] = torch.nn.functional.max_pool1d(sorted_errors[None, None], 2 * REACH + 1, 1)[0, 0]
    return flat.view(error.shape)


class Order:
    """The order of a sort: `at` has the elements by rank, which is the last axis; the element at a rank may also be at
    the ranks from `low` to `high`."""

    def __init__(self, at: Tensor, low: Tensor, high: Tensor, dim: int) -> None:
        self.at, self.low, self.high, self.dim = at, low, high, dim

    def by_rank(self, t: Tensor) -> Tensor:
        return t.movedim(self.dim, -1)

    def furthest(self, by_rank: Tensor, largest: bool) -> Tensor:
        """The largest or the smallest of the values that an element may get, for the element of each rank."""
        sign = 1 if largest else -1
        levels = [sign * by_rank]
        while 2 ** len(levels) <= by_rank.shape[-1]:
            step, last = 2 ** (len(levels) - 1), levels[-1]
            levels.append(torch.maximum(last, torch.cat([last[..., step:], last[..., -step:]], -1)))
        count = self.high - self.low + 1
        out = levels[0]
        for k, level in enumerate(levels):
            found = torch.maximum(level.gather(-1, self.low), level.gather(-1, (self.high + 1 - 2**k).clamp(min=0)))
            out = torch.where((count >= 2**k) & (count < 2 ** (k + 1)), found, out)
        return sign * out


def scattered_numbers(count: int, like: Tensor) -> Tensor:
    """Whole numbers from 0 to 1023 in a fixed order without a pattern."""
    at = torch.arange(count, device=like.device)
    return (at * 2654435761 >> 9) % 1024


class Turned(Decisions):
    """Turns the uncertain decisions one way (`up`) or the other. With `mixed` > 0, each decision goes its own way, and
    another way for each value of `mixed`. `choices` is the largest number of outcomes of a decision."""

    def __init__(self, known: list[Tensor | None], up: bool, mixed: int = 0) -> None:
        super().__init__()
        self.known, self.up, self.mixed = known, up, mixed
        self.turned, self.choices = False, 2
        self.orders: dict[int, Order] = {}

    def decide(self, number: int, func: OpOverload, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
        margin = self.known[number] if number < len(self.known) else None
        out = func(*args, **more)
        if margin is None:
            return out
        if func in COMPARISONS:
            unsure = compared(args)[0].abs() <= margin
            self.turned |= bool(unsure.any())
            if not self.mixed:
                return out.masked_fill(unsure, self.up)
            return torch.where(unsure, self.odd(out), out)
        if func in STEPS:
            low, high = (func(args[0] + sign * margin, *args[1:], **more) for sign in (-1, 1))
            self.turned |= bool((low < high).any())
            return torch.where(low < high, torch.where(self.odd(out), high, low) if self.mixed else
                               high if self.up else low, out)
        if func in SORTS:
            return self.sort(func, args, more, margin)
        return self.largest(args, more, out, margin, LARGEST[func])

    def odd(self, like: Tensor) -> Tensor:
        """Which elements turn in a mixed run."""
        return (scattered_numbers(like.numel(), like).view(like.shape) + self.mixed) % 2 == 1

    def sort(self, func: OpOverload, args: tuple[Any, ...], more: dict[str, Any], margin: Tensor) -> Any:
        x, named = args[0], named_arguments(func, args, more)
        dim, falling = named.get("dim", -1), named.get("descending", named.get("largest", False))
        if not x.dim():
            return func(*args, **more)
        values, at = torch.sort(x, dim=dim, descending=falling, stable=True)
        rising = (-values if falling else values).movedim(dim, -1).contiguous()
        near = 2 * torch.nan_to_num(margin, 0, 0, 0).gather(dim, at).clamp(min=TINY).movedim(dim, -1)
        low = torch.searchsorted(rising, rising - near)
        high = torch.searchsorted(rising, (rising + near).contiguous(), right=True) - 1
        if named.get("stable"):  # equal values have a certain order
            alike = rising.gather(-1, low) == rising.gather(-1, high.clamp(min=0))
            here = torch.arange(rising.shape[-1], device=x.device).expand(rising.shape)
            low, high = torch.where(alike, here, low), torch.where(alike, here, high)
        here = torch.arange(rising.shape[-1], device=x.device)
        low, high = torch.minimum(low, here), torch.maximum(high, here)  # NaN has no neighbours
        self.turned |= bool((high > low).any())
        self.choices = max(self.choices, int((high - low).max()) + 1 if low.numel() else 0)
        order = Order(at.movedim(dim, -1), low, high, dim)
        if self.mixed:
            after = self.rearranged(order).movedim(-1, dim)
            values, at = values.gather(dim, after), at.gather(dim, after)
        elif self.up:
            after = next_in_group(high[..., :-1] > here[:-1]).movedim(-1, dim)
            values, at = values.gather(dim, after), at.gather(dim, after)
        if "k" in named:
            values, at = values.narrow(dim, 0, named["k"]), at.narrow(dim, 0, named["k"])
        if not self.mixed:
            self.orders[at.untyped_storage().data_ptr()] = order
        return values, at

    def rearranged(self, order: Order) -> Tensor:
        """Another order of the ranks. In the first two runs, elements of one window are in the order of their
        positions, as in most programs. Then each element moves on within its window, in each row by another distance.
        """
        low, high, count = order.low, order.high, order.at.shape[-1]
        if self.mixed <= 2:
            return torch.argsort(low * count + (order.at if self.mixed == 1 else count - 1 - order.at), dim=-1)
        here = torch.arange(count, device=low.device)
        by = scattered_numbers(low.numel() // max(count, 1), low).view(*low.shape[:-1], 1) + self.mixed
        return torch.argsort(low + (here - low + by) % (high - low + 1), dim=-1, stable=True)

    def largest(self, args: tuple[Any, ...], more: dict[str, Any], out: Any, margin: Tensor, most: bool) -> Any:
        """Turns the index of the largest or the smallest element. Of equal values, the first one is certain."""
        x = args[0] if most else -args[0]
        dim = more.get("dim", args[1] if len(args) > 1 else None)
        keep = more.get("keepdim", args[2] if len(args) > 2 else False)
        if dim is None:
            x, margin, dim = x.reshape(-1), margin.reshape(-1), 0
        if not x.dim():
            return out
        top = x.amax(dim, True)
        unsure = (x != top) & (x >= top - 2 * margin)
        self.turned |= bool(unsure.any())
        shape = [-1 if d == dim % x.dim() else 1 for d in range(x.dim())]
        here = torch.arange(x.shape[dim], device=x.device).view(shape)
        index = out[1] if isinstance(out, tuple) else out
        if self.mixed:
            unsure |= (x == top) & unsure.any(dim, True)
            ways = unsure.sum(dim, True)
            self.choices = max(self.choices, int(ways.max()))
            by = (scattered_numbers(ways.numel(), ways).view(ways.shape) + self.mixed) % ways.clamp(min=1)
            unsure &= unsure.cumsum(dim) - 1 == by
        other = torch.where(unsure, here, -1).amax(dim, keep) if self.up else \
            torch.where(unsure, here, x.shape[dim]).amin(dim, keep)
        found = torch.where(unsure.any(dim, keep), other, index.reshape(other.shape)).reshape(index.shape)
        return type(out)((out[0], found)) if isinstance(out, tuple) else found

    def follow(self, func: OpOverload, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
        """Gives each element that an uncertain order moves the largest or smallest value that it may get."""
        if func is aten.gather.default:
            found = self.order_of(args[0], args[1], args[2])
            if found is not None and args[0].is_floating_point():
                by_rank = found.by_rank(args[0]).gather(-1, found.at)
                far = found.furthest(by_rank, self.up)
                return far[..., :found.by_rank(args[2]).shape[-1]].movedim(-1, found.dim).contiguous()
        elif func in SCATTERS:
            found = self.order_of(args[0], args[1], args[2])
            if found is not None and args[0].is_floating_point():
                out = self.scattered(found, args[0], args[2], args[3])
                return args[0].copy_(out) if SCATTERS[func] else out
        return func(*args, **more)

    def order_of(self, t: Tensor, dim: int, index: Tensor) -> Order | None:
        """The order that the index holds, if it holds the first ranks of a sort of a tensor of the same shape."""
        found = self.orders.get(index.untyped_storage().data_ptr())
        if found is None or index.storage_offset() or t.dim() != index.dim() or dim % t.dim() != found.dim % t.dim():
            return None
        whole, part = found.by_rank(t), found.by_rank(index)
        return found if whole.shape == found.at.shape and part.shape[:-1] == whole.shape[:-1] else None

    def scattered(self, order: Order, base: Tensor, index: Tensor, source: Any) -> Tensor:
        by_rank = order.by_rank(base).gather(-1, order.at)
        count = order.by_rank(index).shape[-1]
        by_rank[..., :count] = order.by_rank(source)[..., :count] if isinstance(source, Tensor) else source
        far = order.furthest(by_rank, self.up)
        return order.by_rank(base).scatter(-1, order.at, far).movedim(-1, order.dim)


def named_arguments(func: OpOverload, args: tuple[Any, ...], more: dict[str, Any]) -> dict[str, Any]:
    schema = func._schema.arguments
    return {**{a.name: a.default_value for a in schema if a.has_default_value()},
            **{a.name: v for a, v in zip(schema, args)}, **more}


Run = Callable[[], Any]


def turned(exact: Run, others: list[Run], eps: float, roundings: float) -> Iterator[list[Tensor]]:
    """Yields the float64 results with the uncertain decisions turned either way; nothing if all are certain."""
    with Watched() as first:
        exact()
    if not first.count:
        return
    watched = []
    for run in others:
        with Watched() as one:
            run()
        if one.count == first.count:  # otherwise the decisions differ: a sequential loss compares values of its own
            watched.append(one)
    known = margins(first, watched, eps, roundings)
    choices = 2
    for up in (False, True):
        with Turned(known, up) as turn:
            out: list[Tensor] = exact()
        if not turn.turned:
            return
        choices = max(choices, turn.choices)
        yield out
    alone = margins(first, watched, eps, roundings, alone=True)
    for mixed in range(1, min(choices + 2, MOST_MIXED) + 1):
        with Turned(alone if mixed <= 2 else known, True, mixed):
            yield exact()
