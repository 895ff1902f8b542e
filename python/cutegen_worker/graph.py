# SPDX-License-Identifier: Apache-2.0
"""Turns recorded calls into the graph of src/core/graph.h: live calls only, with default arguments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from . import flops
from .names import DTYPES
from .record import Call, Ref
from .wire import Json

Shapes = dict[str, list[int]]
Traced = tuple[list[Call], Shapes]

IGNORED = {"device", "layout", "pin_memory", "memory_format", "generator"}
NUMBERS = {"Tensor", "number"}  # schema types of arguments that may be a Python number
MOST_CONSTANTS = 64  # elements of a tensor that the graph writes as numbers
MOST_PLUS = 8  # what an argument may add to a size: x.size(0) - 1
SLICES = {"slice": (2, 3), "narrow": (2, 3)}  # the arguments that bound a slice
SPLITS = {"split_with_sizes", "unsafe_split_with_sizes"}
CHUNKS = {"split", "unsafe_split"}  # split(size) and chunk(count)
DILATION = 5  # the argument of aten::convolution
LISTS = {"output_size", "size"}  # arguments that may list sizes of tensors


def alive(calls: list[Call], outputs: Iterable[str]) -> list[Call]:
    """The calls that `outputs` depend on, in order."""
    wanted, kept = set(outputs), []
    for call in reversed(calls):
        made = call.out_names + [w[0] for w in call.writes]
        if wanted.intersection(made):
            kept.append(call)
            wanted.update(r.name for r in call.refs)
    return kept[::-1]


def plain(value: Any) -> Any:
    """A constant argument as JSON."""
    if isinstance(value, Ref):
        return {"ref": value.name}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return {"float": "nan" if value != value else "inf" if value > 0 else "-inf"}
        return value
    if isinstance(value, torch.dtype):
        return {"dtype": DTYPES.get(value, str(value))}
    return None if isinstance(value, (torch.device, torch.layout)) else str(value)


def normal(call: Call) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments with the schema's defaults."""
    args, kwargs = list(call.args), {}
    for i, a in enumerate(call.func._schema.arguments):
        if a.name in IGNORED:
            continue
        if a.kwarg_only:
            kwargs[a.name] = call.kwargs.get(a.name, a.default_value)
        elif i >= len(args):
            args.append(call.kwargs.get(a.name, a.default_value))
    return args, kwargs


def op_name(call: Call) -> str:
    """aten.NAME.OVERLOAD. An in-place call gets the name of its out-of-place operator."""
    packet, overload = call.func.overloadpacket.__name__, call.func._overloadname
    space = call.func.namespace
    if packet.endswith("_") and not packet.endswith("__"):
        family = getattr(getattr(torch.ops, space), packet[:-1], None)
        if family is not None and overload in family.overloads():
            packet = packet[:-1]
    return f"{space}.{packet}.{overload}"


def value(name: str, shape: Sequence[int], dtype: torch.dtype) -> Json:
    return {"name": name, "dtype": DTYPES.get(dtype, "f32"), "shape": list(shape)}


def count(call: Call) -> float:
    args, _ = normal(call)
    return flops.of(call.func.overloadpacket.__name__, call.refs, args, call.outs)


def node(call: Call) -> Json:
    args, kwargs = normal(call)
    outs = [value(n, s, d) for n, (s, d) in zip(call.out_names, call.outs)]
    outs += [value(n, s, d) for n, s, d in call.writes]
    return {
        "id": call.id,
        "op": op_name(call),
        "args": [plain(a) for a in args],
        "kwargs": {k: plain(v) for k, v in kwargs.items()},
        "outputs": outs,
        "flops": float(count(call)),
    }


def constant(name: str, tensor: Tensor, others: list[list[tuple[str, Tensor]]]) -> Json | None:
    """The node of a small constant tensor; None if it is large, not finite, or different at other shapes."""
    if tensor.is_meta or not 0 < tensor.numel() <= MOST_CONSTANTS or tensor.dtype not in DTYPES or tensor.is_complex():
        return None
    alike = (o for constants in others for n, o in constants if n == name)
    if not bool(torch.isfinite(tensor.double()).all()) or not all(torch.equal(tensor, o) for o in alike):
        return None
    return {"id": name, "op": "cutegen.values", "args": [tensor.reshape(-1).tolist()], "kwargs": {},
            "outputs": [value(name, tensor.shape, tensor.dtype)], "flops": 0.0}


def sizes(official: Traced, others: list[Traced], tensors: list[str]) -> dict[str, list[Json]]:
    """Returns {node id: [{index, tensor, dim}]}: the integer arguments of arithmetic that change between shapes
    like a size of one of the task's tensors (`x.size(0)` in forward()). `plus` is what they add to the size. Numbers
    of a list of sizes also have an `item`: 1 for the first one. If an argument changes in another way, `tensor` is
    empty. A bound of a slice has "share" if it is the same share of the sliced axis at all shapes; chunks()
    describes the parts of a split. `official` and each of `others` are (calls, {name: shape}). Ignores
    shapes with other calls."""
    calls, shapes = official
    alike = [(c, s) for c, s in others
             if len(c) == len(calls) and all(a.func == b.func for a, b in zip(c, calls))]
    found: dict[str, list[Json]] = {}
    for i, call in enumerate(calls):
        for j, a in enumerate(call.func._schema.arguments[:len(call.args)]):
            values = [c[i].args[j] for c in (calls, *(c for c, _ in alike))]
            known = [shapes, *(s for _, s in alike)]
            for item, numbers in enumerate(numbers_of(a, values)):
                if len(set(numbers)) == 1:
                    continue
                where = next(places(numbers, known, tensors), None)
                if a.name in LISTS:
                    if where:
                        at = {"index": j, "tensor": where[0], "dim": where[1], "item": item + 1}
                        found.setdefault(call.id, []).append(at)
                    continue
                plus = 0
                if where is None:
                    where, plus = next(near(numbers, known, tensors), (("", -1), 0))
                at = {"index": j, "tensor": where[0], "dim": where[1]}
                found.setdefault(call.id, []).append({**at, "plus": plus} if plus else at)
        for at in bounds([c[i] for c in (calls, *(c for c, _ in alike))], [shapes, *(s for _, s in alike)], tensors):
            found.setdefault(call.id, []).append(at)
        for at in lengths([c[i] for c in (calls, *(c for c, _ in alike))], [shapes, *(s for _, s in alike)], tensors):
            found.setdefault(call.id, []).append(at)
        for at in chunks([c[i] for c in (calls, *(c for c, _ in alike))], [shapes, *(s for _, s in alike)], tensors):
            found.setdefault(call.id, []).append(at)
    return found


def chunks(calls: list[Call], shapes: list[Shapes], tensors: list[str]) -> Iterator[Json]:
    """Yields the length of the parts that split() gives, if the size of the divided axis changes between shapes. It has
    "share" if it is the axis' size divided by the number of parts (rounded up) at all shapes, as in chunk(), and
    "fixed" if it is the same number at all shapes. `calls`: the split at each shape."""
    if calls[0].func.overloadpacket.__name__ not in CHUNKS:
        return
    values = [c.args[1] for c in calls]
    if not all(type(v) is int and isinstance(c.args[0], Ref) for v, c in zip(values, calls)):
        return
    wholes = [c.args[0].shape[c.args[2] if len(c.args) > 2 else 0] for c in calls]
    if len(set(wholes)) == 1 and len(set(values)) == 1:
        return
    if all(v == -(-s // len(c.outs)) for v, s, c in zip(values, wholes, calls)):
        yield {"index": 1, "tensor": "", "dim": -1, "share": True}
    elif len(set(values)) == 1:
        yield {"index": 1, "tensor": "", "dim": -1, "fixed": True}
    else:
        exact = ((where, 0) for where in places(values, shapes, tensors))
        (tensor, dim), plus = next(exact, None) or next(near(values, shapes, tensors), (("", -1), 0))
        at = {"index": 1, "tensor": tensor, "dim": dim}
        yield {**at, "plus": plus} if plus else at


def lengths(calls: list[Call], shapes: list[Shapes], tensors: list[str]) -> Iterator[Json]:
    """Yields the lengths of parts that split_with_sizes() gives, by the position in its list from 1, if they change
    between shapes and a part does not begin at the same multiple of its length at all shapes. `calls`: the call at each
    shape."""
    if calls[0].func.overloadpacket.__name__ not in SPLITS:
        return
    lists = [list(c.args[1]) for c in calls]
    if len({len(sizes) for sizes in lists}) > 1 or all(sizes == lists[0] for sizes in lists):
        return
    if len({tuple(starts_in_lengths(sizes)) for sizes in lists}) == 1 and None not in starts_in_lengths(lists[0]):
        return
    for item, values in enumerate(zip(*lists)):
        if len(set(values)) == 1:
            continue
        exact = ((where, 0) for where in places(list(values), shapes, tensors))
        (tensor, dim), plus = next(exact, None) or next(near(list(values), shapes, tensors), (("", -1), 0))
        at = {"index": 1, "tensor": tensor, "dim": dim, "item": item + 1}
        yield {**at, "plus": plus} if plus else at


def starts_in_lengths(sizes: list[int]) -> list[int | None]:
    """Where each part begins, in multiples of its length; None if it begins between two multiples."""
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [start // size if size and start % size == 0 else None for start, size in zip(starts, sizes)]


def bounds(calls: list[Call], shapes: list[Shapes], tensors: list[str]) -> Iterator[Json]:
    """Yields the bounds of a slice that change between shapes. `calls`: the slice at each shape."""
    same_share = set(shares(calls))
    for j, values in from_start(calls).items():
        if len(set(values)) == 1:
            continue
        if j in same_share:
            yield {"index": j, "tensor": "", "dim": -1, "share": True}
            continue
        exact = ((where, 0) for where in places(values, shapes, tensors))
        (tensor, dim), plus = next(exact, None) or next(near(values, shapes, tensors), (("", -1), 0))
        at = {"index": j, "tensor": tensor, "dim": dim}
        yield {**at, "plus": plus} if plus else at


def from_start(calls: list[Call]) -> dict[int, list[int]]:
    """The bounds of a slice that change between shapes, counted from the start of its axis, by argument. `calls`: the
    slice at each shape."""
    arguments = SLICES.get(calls[0].func.overloadpacket.__name__, ())
    if not arguments or not all(c.args and isinstance(c.args[0], Ref) and c.args[0].shape for c in calls):
        return {}
    dim = calls[0].args[1] if len(calls[0].args) > 1 else 0
    found = {}
    for j in arguments:
        values = [c.args[j] if j < len(c.args) else None for c in calls]
        bounds = [v for v in values if type(v) is int]
        if len(bounds) == len(values) and len(set(bounds)) > 1:
            found[j] = [v + c.args[0].shape[dim] if v < 0 else v for v, c in zip(bounds, calls)]
    return found


def settled(made: Json, call: Call, others: list[list[Call]], index: int) -> Json:
    """The node with the bounds of its slice that change between shapes counted from the start of the axis:
    x[:, -y.size(1):] may begin at the same element at all shapes."""
    calls = [call, *(c[index] for c in others if len(c) > index and c[index].func == call.func)]
    for j, values in from_start(calls).items():
        made["args"][j] = values[0]
    return made


def shares(calls: list[Call]) -> Iterator[int]:
    """Yields the bounds of a slice that change between shapes, but are the same share of its axis at all shapes
    (rounded down). `calls`: the slice at each shape."""
    bounds = SLICES.get(calls[0].func.overloadpacket.__name__, ())
    if not bounds or not all(c.args and isinstance(c.args[0], Ref) and c.args[0].shape for c in calls):
        return
    dim = calls[0].args[1] if len(calls[0].args) > 1 else 0
    sizes_of_axis = [c.args[0].shape[dim] for c in calls]
    for j in bounds:
        values = [c.args[j] if j < len(c.args) else None for c in calls]
        if len(set(values)) > 1 and all(type(v) is int and v >= 0 for v in values) and all(
                v == values[0] * s // sizes_of_axis[0] for v, s in zip(values, sizes_of_axis)):
            yield j


def numbers_of(argument: Any, values: list[Any]) -> list[list[int]]:
    """The integers that an argument has at all shapes: one, or several if it is a list of sizes."""
    lists = [[v] for v in values] if str(argument.type) in NUMBERS else values if argument.name in LISTS else []
    if not all(isinstance(v, (list, tuple)) and all(type(n) is int for n in v) for v in lists):
        return []
    return [list(numbers) for numbers in zip(*lists)]


def places(values: list[int], shapes: list[Shapes], tensors: list[str]) -> Iterator[tuple[str, int]]:
    """Yields the tensor sizes that have these values at the respective shapes."""
    for name in tensors:
        for dim in range(len(shapes[0][name])):
            if all(s[name][dim] == v for v, s in zip(values, shapes)):
                yield name, dim
    for name in tensors:
        if all(math.prod(s[name]) == v for v, s in zip(values, shapes)):
            yield name, -1


def near(values: list[int], shapes: list[Shapes], tensors: list[str]) -> Iterator[tuple[tuple[str, int], int]]:
    """Yields the sizes that differ from these values by one small number at all shapes, and that number."""
    for name in tensors:
        for dim in range(len(shapes[0][name])):
            plus = {v - s[name][dim] for v, s in zip(values, shapes)}
            if len(plus) == 1 and abs(min(plus)) <= MOST_PLUS:
                yield (name, dim), plus.pop()


def size(shape: Sequence[int], dtype: torch.dtype) -> int:
    n = dtype.itemsize
    for d in shape:
        n *= d
    return n


def signature(calls: list[Call]) -> list[tuple[Any, ...]]:
    """What stays the same if only sizes change: operators, ranks, and values that are not sizes."""
    out = []
    for call in calls:
        fixed: list[Any] = []
        for a in list(call.args) + list(call.kwargs.values()):
            if isinstance(a, Ref):
                fixed.append((len(a.shape), a.dtype))
            elif isinstance(a, (float, bool, str, torch.dtype)) or a is None:
                fixed.append(a)
            elif isinstance(a, list):
                fixed.append(len(a))
            elif isinstance(a, int):
                fixed.append("int")
        if call.func is torch.ops.aten.convolution.default:
            fixed.append(call.args[DILATION])  # no tensor's shape shows it
        out.append((call.func, tuple(map(str, fixed)), tuple(len(s) for s, _ in call.outs)))
    return out


Broadcast = list[tuple[str, ...]]


def broadcasts(calls: list[Call]) -> list[Broadcast]:
    """For each tensor operand of each pointwise call: one letter per axis, from the last one. "b": broadcast (only the
    operand's size is 1). "f": the operand has the result's size. "-": both sizes are 1."""
    out = []
    for call in calls:
        operands: Broadcast = []
        if torch.Tag.pointwise in call.func.tags and call.outs:
            result = call.outs[0][0]
            for ref in call.refs:
                pairs = zip(reversed(ref.shape), reversed(result))
                operands.append(tuple("-" if r == 1 else "b" if d == 1 else "f" for d, r in pairs))
        out.append(operands)
    return out


def broadcast_alike(official: list[Broadcast], other: list[Broadcast]) -> bool:
    """Whether both programs broadcast the same axes of the same operands. Programs read broadcast axes with stride 0,
    so a size that happens to be 1 makes another program."""
    pairs = ((a, b) for x, y in zip(official, other) for p, q in zip(x, y) for a, b in zip(p, q))
    return all(a == b or "-" in (a, b) for a, b in pairs)
