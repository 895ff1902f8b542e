# SPDX-License-Identifier: Apache-2.0
"""Finds what a module's calls say about the values of its inputs, from one trace on meta tensors.

Indices: which size an integer input indexes, so that its values stay below that size at every shape.
Magnitudes: how large inputs may be before two correct programs differ, because one multiplies in float and
the other in double, or in another order. Ties: whether torch documents which of several equal values comes
first. Casts: whether the module names floating dtypes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from .decisions import EQUALITIES, LEVELS, NAMES as DECISIONS, ROUNDED
from .draw import HALVES, WHOLES
from .record import Call, Ref
from .source import Source
from .trace import Trace
from .wire import Json

# Operators whose result holds values of their first argument, unchanged.
SAME_VALUES = {"view", "_unsafe_view", "reshape", "expand", "permute", "transpose", "t", "unsqueeze",
               "squeeze", "slice", "select", "narrow", "clone", "_to_copy", "detach", "alias", "flatten",
               "lift_fresh", "contiguous", "split", "unbind", "copy", "as_strided"}
ALONG_DIM = {"gather", "index_select", "scatter", "scatter_add", "scatter_reduce", "index_add",
             "index_copy", "index_fill", "index_reduce"}
EVERYWHERE = {"take", "put"}
BY_PLACE = {"index", "index_put", "_unsafe_index", "_index_put_impl"}
LOSSES = {"nll_loss_forward": 4, "nll_loss2d_forward": 4, "multi_margin_loss": None}  # ignore_index
BAGS = {"_embedding_bag", "_embedding_bag_forward_only", "embedding_bag"}
SQUARES = {"native_layer_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit",
           "_fused_rms_norm", "batch_norm", "instance_norm", "var", "std", "var_mean", "std_mean",
           "linalg_vector_norm", "norm", "_cdist_forward", "cdist", "_weight_norm_interface",
           "renorm"}
MULTIPLY = {"mul", "mm", "bmm", "matmul", "addmm", "baddbmm", "addbmm", "addcmul", "dot", "mv",
            "convolution", "_scaled_mm", "bilinear", "_trilinear"}
PRODUCTS = {"prod", "cumprod", "linalg_det", "_linalg_det"}
UNORDERED = {"topk", "sort", "argsort", "kthvalue", "median", "nanmedian", "mode", "msort"}
MASKS = (torch.bool, torch.uint8)  # as an index, a mask stands for as many dimensions as it has
MOST_KNOWN = 64
COMPARE = EQUALITIES | LEVELS | ROUNDED | {"searchsorted", "bucketize"}
MOST_LEVELS = 8
SUMS = MULTIPLY | {"sum", "mean", "cumsum", "avg_pool1d", "avg_pool2d", "avg_pool3d"}
# A rounding error in a large sum can decide the results of these.
CHOOSE = {"exp", "exp2", "expm1", "_softmax", "_safe_softmax", "softmax", "_log_softmax", "log_softmax",
          "logsumexp", "argmax", "argmin", "max", "min", "topk", "sort"}
WIDEST, SQUARED, COUNTED, CHOSEN, MULTIPLIED = 1e30, 1e15, 1e4, 1e2, 1.0


class Limit:
    """The permitted values of an index: below `size`, or `ignored`. `ordered`: offsets of bags, which are sorted."""

    __slots__ = ("size", "ignored", "ordered")

    def __init__(self, size: int, ignored: int | None = None, ordered: bool = False) -> None:
        self.size, self.ignored, self.ordered = size, ignored, ordered

    def keep(self, values: Tensor) -> Tensor:
        """Reduces values that are too large modulo the size. Keeps negative values."""
        large = values >= self.size
        if self.ignored is not None:
            large &= values != self.ignored
        if self.size < 1 or not bool(large.any()):
            return values
        if self.ordered:  # offsets keep their order
            return values * self.size // (int(values.max()) + 1)
        return torch.where(large, values % self.size, values)


class Facts:
    def __init__(self, trace: Trace) -> None:
        self.limits: dict[str, Limit] = {}
        self.most, self.tells_ties, self.casts = WIDEST, True, False
        self.sums = False  # whether a call has summed values
        self.decides = False  # whether a call compares or orders floating values
        self.counts = False  # whether a call casts floating values to integers
        self.kept = set[str]()  # ids of calls all of whose indices are inputs, so that `limits` keep them in range
        # What the module compares an input with: numbers, names of tensors, HALVES or WHOLES.
        self.levels: dict[str, list[float | str]] = {}
        values = {name: name for name, (_, t) in trace.tensors.items() if t.dtype.is_floating_point}
        roots = {name: {name} for name, (role, t) in trace.tensors.items()
                 if role == "input" and is_index(t.dtype)}
        # Tensors that do not grow with the inputs: parameters, buffers and their views.
        fixed = {name for name, (role, _) in trace.tensors.items() if role != "input"}
        ranges = {}  # results of arange: one_hot compares an index with such a range
        for call in trace.calls:
            name = call.func.overloadpacket.__name__
            name = name if name.endswith("__") else name.removesuffix("_")
            self.look_at(call, name, fixed)
            self.note_levels(call, name, values, fixed)
            if name in SAME_VALUES and isinstance(call.args[0], Ref) and call.args[0].name in values:
                values.update(dict.fromkeys(call.out_names, values[call.args[0].name]))
            if name in SAME_VALUES and isinstance(call.args[0], Ref) and call.args[0].name in fixed:
                fixed.update(call.out_names)
            if name == "arange" and len(call.args) == 1 and type(call.args[0]) is int:
                ranges[call.out_names[0]] = call.args[0]
            if not roots:
                continue
            indices = list(limits_of(call, name, ranges))
            if indices and all(isinstance(i, Ref) and roots.get(i.name) for i, _ in indices):
                self.kept.add(call.id)
            for index, limit in indices:
                for root in roots.get(index.name, ()) if isinstance(index, Ref) else ():
                    known = self.limits.get(root)
                    if known is None or limit.size < known.size:
                        self.limits[root] = limit
            if name in SAME_VALUES and isinstance(call.args[0], Ref):
                for made in call.out_names:
                    roots[made] = roots.get(call.args[0].name, set())

    def look_at(self, call: Call, name: str, fixed: set[str]) -> None:
        if name in SQUARES or multiplies_inputs(call, name, fixed):
            self.most = min(self.most, SQUARED)
        if name.startswith("_scaled_dot_product") or self.sums and name in CHOOSE:
            self.most = min(self.most, CHOSEN)
        self.sums = self.sums or name in SUMS
        if name in PRODUCTS:
            self.most = min(self.most, MULTIPLIED)
        self.decides = self.decides or name in DECISIONS
        if name == "_to_copy" and counts(call):
            self.most, self.counts = min(self.most, COUNTED), True
        if name == "_scaled_mm" or to_float(call):
            self.casts = True
        if name in UNORDERED and call.kwargs.get("stable") is not True:
            self.tells_ties = False

    def note_levels(self, call: Call, name: str, values: dict[str, str], fixed: set[str]) -> None:
        """Notes what a call compares an input with. `values`: {result: the tensor whose values it has}."""
        if name not in COMPARE or not call.args:
            return
        compared = [values.get(a.name) if isinstance(a, Ref) else a for a in call.args[:2]]
        if name == "hardshrink" and len(compared) == 1:
            compared.append(0.5)
        if name == "searchsorted":
            compared.reverse()
        for own, other in (compared, compared[::-1]) if len(compared) == 2 else ((compared[0], None),):
            if not isinstance(own, str) or own in fixed:
                continue
            level = HALVES if name == "round" else WHOLES if name in ROUNDED else other
            if isinstance(level, (int, float, str)) and level != own:
                known = self.levels.setdefault(own, [])
                level = level if isinstance(level, str) else float(level)
                if level not in known and len(known) < MOST_LEVELS:
                    known.append(level)


def is_index(dtype: torch.dtype) -> bool:
    return not dtype.is_floating_point and not dtype.is_complex and dtype != torch.bool


def multiplies_inputs(call: Call, name: str, fixed: set[str]) -> bool:
    """Whether a call multiplies two values that depend on the inputs."""
    if name in ("square", "pow") or name.startswith("_scaled_dot_product"):
        return True
    refs = [r for r in call.args if isinstance(r, Ref) and r.shape and r.dtype.is_floating_point]
    return name in MULTIPLY and sum(r.name not in fixed for r in refs[-2:]) > 1


def to_float(call: Call) -> bool:
    """Whether a call names a floating dtype."""
    to = call.kwargs.get("dtype")
    return to is not None and to.is_floating_point


def counts(call: Call) -> bool:
    """Whether a cast turns a floating tensor into integers."""
    to = call.kwargs.get("dtype")
    return to is not None and is_index(to) and call.args[0].dtype.is_floating_point


def limits_of(call: Call, name: str, ranges: dict[str, int]) -> Iterator[tuple[Any, Limit]]:
    """Yields (argument, Limit) for each argument of a call that indexes another argument."""
    a = call.args
    if len(a) < 2 or not isinstance(a[0], Ref):
        return
    first = a[0].shape
    if name == "embedding":
        yield a[1], Limit(first[0])
    elif name in BAGS:
        yield a[1], Limit(first[0])
        if isinstance(a[1], Ref) and a[1].shape:
            yield a[2], Limit(a[1].shape[0], ordered=True)
    elif name in ALONG_DIM and type(a[1]) is int and first:
        yield a[2], Limit(first[a[1]])
    elif name in EVERYWHERE:
        yield a[1], Limit(torch.Size(first).numel())
    elif name in LOSSES:
        at = LOSSES[name]
        ignored = a[at] if at is not None and len(a) > at else None
        yield a[1], Limit(first[1] if len(first) > 1 else first[0], ignored)
    elif name in BY_PLACE and not any(isinstance(i, Ref) and i.dtype in MASKS for i in a[1]):
        for dim, index in enumerate(a[1]):
            yield index, Limit(first[dim])
    elif name == "eq" and len(a) > 1 and isinstance(a[1], Ref) and a[1].name in ranges:
        yield a[0], Limit(ranges[a[1].name])


def facts_of(request: Json) -> Facts:
    """The Facts of a request's shape. Needs a trace, which resets torch's defaults."""
    constants = tuple(sorted(request["constants"].items()))
    return facts_at(request["source"], request["file"], constants, request["train_mode"])


@functools.lru_cache(maxsize=MOST_KNOWN)
def facts_at(text: str, file: str, constants: tuple[tuple[str, int], ...], train_mode: bool) -> Facts:
    return Facts(Trace(Source(text, file), dict(constants), train_mode))
