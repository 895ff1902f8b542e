# SPDX-License-Identifier: Apache-2.0
"""The math mode of each output, from the dtypes in which the traced graph computes.

The mode of an output is the coarsest floating dtype of a value that some call on the way to it
computes. Calls that only move or select values do not round, so their dtypes do not count: if forward()
converts a bf16 input to float32 and computes with that, the mode is fp32. A narrowed value
(`.to(torch.bfloat16)`) counts if another call computes with it; an output is only stored in its dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from .flops import FREE
from .orders import is_depthwise

if TYPE_CHECKING:
    from .record import Call
    from .trace import Trace

BITS = {torch.float64: 52, torch.float32: 23, torch.float16: 10, torch.bfloat16: 7,
        torch.float8_e4m3fn: 3, torch.float8_e5m2: 2}
MODE_BITS = {"fp32": 23, "tf32": 10, "fp16": 10, "bf16": 7}
COMPUTED_IN: dict[torch.dtype | None, str] = {
    torch.float16: "fp16", torch.bfloat16: "bf16", torch.float8_e4m3fn: "bf16",
    torch.float8_e5m2: "bf16",
}
EIGHT = (torch.float8_e4m3fn, torch.float8_e5m2)
# The dtypes whose values a mode keeps. PyTorch's switch allow_tf32 rounds float32, so a user may ask for that.
KEPT = {"bf16": {torch.bfloat16, *EIGHT}, "fp16": {torch.float16, *EIGHT},
        "tf32": {torch.float32, torch.float16, torch.bfloat16, *EIGHT}}
# These return integers or values of their inputs, so they do not round.
EXACT = {
    "relu", "abs", "neg", "sign", "floor", "ceil", "round", "trunc", "maximum", "minimum", "fmax",
    "fmin", "max", "min", "amax", "amin", "aminmax", "clamp", "clamp_min", "clamp_max", "hardtanh",
    "threshold", "sort", "topk", "kthvalue", "median", "mode", "_cummax_helper", "_cummin_helper",
    "max_pool2d_with_indices", "max_pool3d_with_indices", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "nan_to_num", "index_fill", "masked_scatter", "take",
}
CONVOLUTIONS = ("convolution", "conv1d", "conv2d", "conv3d", "conv_transpose", "slow_conv", "thnn_conv")


convolution = torch.ops.aten.convolution.default


def coarsest(*dtypes: torch.dtype | None) -> torch.dtype | None:
    known = [d for d in dtypes if d is not None]
    return min(known, key=BITS.__getitem__) if known else None


class Way:
    """The roundings on the way to one value."""

    __slots__ = ("dtype", "computed", "narrowed", "read", "convolution")

    computed: torch.dtype | None
    narrowed: torch.dtype | None
    read: set[torch.dtype]
    convolution: bool

    def __init__(self, dtype: torch.dtype, ways: Sequence[Way]) -> None:
        self.dtype = dtype
        self.computed = coarsest(*(w.computed for w in ways))  # dtype of the coarsest rounding
        self.narrowed = coarsest(*(w.narrowed for w in ways))  # a conversion with whose result no call has computed yet
        self.read = set().union(*(w.read for w in ways))  # floating dtypes that it read
        self.convolution = any(w.convolution for w in ways)  # whether a convolution ran in TF32

    def rounding(self) -> torch.dtype | None:
        """The coarsest rounding of the value, except by its own storage."""
        narrowed = self.narrowed
        if narrowed is not None and self.dtype in BITS and BITS[narrowed] >= BITS[self.dtype]:
            narrowed = None
        return coarsest(self.computed, narrowed)

    def mode(self) -> str:
        rounding = self.rounding()
        if rounding is None:  # only copies, so take the finest dtype on the way
            dtypes = self.read | ({self.dtype} & BITS.keys())
            rounding = max(dtypes, key=BITS.__getitem__, default=None)
        return COMPUTED_IN.get(rounding, "fp32")


def bare_name(call: Call) -> str:
    name = call.func.overloadpacket.__name__
    return name if name.endswith("__") else name.rstrip("_")


def rounds_to_tf32(call: Call) -> bool:
    """Whether PyTorch rounds the operands of this call, if they are float32, to TF32 by default."""
    name = bare_name(call).lstrip("_")
    if not name.startswith(CONVOLUTIONS):
        return False
    return call.func is not convolution or not is_depthwise(call.args[0].shape, call.args[8])


def advance(name: str, dtype: torch.dtype, ways: list[Way], fused: torch.dtype | None, tf32: bool) -> Way:
    """The Way to a call's result of `dtype`. `ways`: those of its arguments. `fused`: the dtype of the function that
    contains the call. `tf32`: rounds_to_tf32()."""
    way = Way(dtype, ways)
    if dtype not in BITS:
        return way
    if name in FREE or name in EXACT:
        source = coarsest(*(w.dtype for w in ways if w.dtype in BITS and w.computed))
        if source is not None and BITS[dtype] < BITS[source]:
            way.narrowed = coarsest(way.narrowed, dtype)
        return way
    if ways:  # a factory returns the same values everywhere
        way.computed = coarsest(way.computed, way.narrowed, dtype, fused)
        way.narrowed = None
    if dtype is torch.float32 and tf32:
        way.convolution = True
    return way


def ways_of(trace: Trace) -> dict[str, Way]:
    """{value name: Way} of everything that the traced calls read and write."""
    ways, fused = {}, trace.recorder.fused
    for name, (_, tensor) in trace.tensors.items():
        ways[name] = way = Way(tensor.dtype, ())
        if tensor.dtype in BITS:
            way.read = {tensor.dtype}
    for call in trace.calls:
        name, within, tf32 = bare_name(call), fused.get(id(call)), rounds_to_tf32(call)
        given = [ways.get(r.name) or Way(r.dtype, ()) for r in call.refs]
        for value, (_, dtype) in zip(call.out_names, call.outs):
            ways[value] = advance(name, dtype, given, within, tf32)
        for value, _, dtype in call.writes:
            ways[value] = advance(name, dtype, given, within, tf32)
    return ways


def loosened(trace: Trace, mode: str) -> tuple[str, torch.dtype] | None:
    """A result whose check this mode would loosen, and the finest dtype of the result's tensors that the mode does not
    keep. None if there is no such result."""
    found = ways_of(trace)
    for value, name, t in trace.results():
        way = found.get(value) or Way(t.dtype, ())
        lost = (way.read | {t.dtype}) & BITS.keys() - KEPT.get(mode, BITS.keys())
        if lost and way.mode() != mode:
            return name, max(lost, key=BITS.__getitem__)
    return None


class Modes:
    """The modes of a task whose user names none: `task` and, by name, `results` with another mode.

    `tf32_convolutions`: some fp32 result depends on a convolution that PyTorch computes in TF32.
    `without_convolution`: if so, the other fp32 results.
    """

    def __init__(self, trace: Trace) -> None:
        found = ways_of(trace)
        ways = [(n, found.get(value) or Way(t.dtype, ())) for value, n, t in trace.results()]
        named = {n: way.mode() for n, way in ways if way.dtype in BITS}
        judged = list(named.values()) or [way.mode() for _, way in ways]
        self.task = min(judged, key=MODE_BITS.__getitem__)
        self.results = {n: mode for n, mode in named.items() if mode != self.task}
        single = {n: w.convolution for n, w in ways if named.get(n) == "fp32"}
        self.tf32_convolutions = any(single.values())
        self.without_convolution = {n for n, tf32 in single.items() if self.tf32_convolutions and not tf32}
        self.notes = [f"'{n}' depends on values that forward() rounds to eight bits: cutegen judges it "
                      "in bf16, the coarsest math mode" for n, w in ways if w.rounding() in EIGHT]
