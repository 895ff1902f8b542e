# SPDX-License-Identifier: Apache-2.0
"""Records each recurrent layer of torch.nn as one call.

As ATen calls, it would be a loop over time: tens of thousands of calls without information.
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


@contextlib.contextmanager
def as_single_calls(recorder: Recorder) -> Iterator[None]:
    functions = torch._VF
    originals = {name: getattr(functions, name) for name in OPS}
    for name, original in originals.items():
        setattr(functions, name, shortcut(recorder, name, original))
    try:
        yield
    finally:
        for name in OPS:
            delattr(functions, name)
