# SPDX-License-Identifier: Apache-2.0
"""Records each recurrent layer of torch.nn, and circular padding, as one call.

As ATen calls, a layer would be a loop over time: tens of thousands of calls without information. Padding would be
writes to parts of an empty tensor.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .record import Recorder

OPS = {"lstm": "lstm", "gru": "gru", "rnn_tanh": "rnn_tanh", "rnn_relu": "rnn_relu"}


def shortcut(recorder: Recorder, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    func = getattr(torch.ops.aten, OPS[name]).input

    def run(*args: Any) -> Any:
        packed = len(args) != 9 or not isinstance(args[3], bool)
        if not recorder.recording or packed:
            return original(*args)
        tensors = [args[0]] + list(args[1] if isinstance(args[1], (list, tuple)) else [args[1]])
        call = recorder.record(func, args, {}, tensors)
        recorder.recording = False
        try:
            outs = results(args)
        finally:
            recorder.recording = True
        recorder.finish(call, name, [], (args, {}), outs)
        return outs

    return run


def results(args: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
    """The layer's outputs on meta: the sequence, then the last states."""
    states = args[1] if isinstance(args[1], (list, tuple)) else [args[1]]
    directions = 2 if args[7] else 1
    sequence = list(args[0].shape[:-1]) + [directions * states[0].shape[-1]]
    made = [torch.empty(sequence, dtype=args[0].dtype, device="meta")]
    return tuple(made + [torch.empty(s.shape, dtype=s.dtype, device="meta") for s in states])


def circular_padding(recorder: Recorder, original: Callable[..., Any]) -> Callable[..., Any]:
    func = torch.ops.aten._pad_circular.default

    def pad(input: torch.Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> torch.Tensor:
        if mode != "circular" or not recorder.recording:
            return original(input, pad, mode, value)
        args = (input, [int(n) for n in pad])
        call = recorder.record(func, args, {}, [input])
        recorder.recording = False
        try:
            out = original(input, pad, mode, value)
        finally:
            recorder.recording = True
        recorder.finish(call, "_pad_circular", [], (args, {}), out)
        return out

    return pad


@contextlib.contextmanager
def as_single_calls(recorder: Recorder) -> Iterator[None]:
    functions = torch._VF
    originals = {name: getattr(functions, name) for name in OPS}
    for name, original in originals.items():
        setattr(functions, name, shortcut(recorder, name, original))
    pad = torch.nn.functional.pad
    setattr(torch.nn.functional, "pad", circular_padding(recorder, pad))  # noqa: B010
    try:
        yield
    finally:
        setattr(torch.nn.functional, "pad", pad)  # noqa: B010
        for name in OPS:
            delattr(functions, name)
