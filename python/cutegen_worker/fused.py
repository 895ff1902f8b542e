# SPDX-License-Identifier: Apache-2.0
"""Functions that GPUs run as one kernel in the dtype of their tensors.

On meta tensors PyTorch decomposes them differently, in float32. The math mode follows what users run:
GPUs compute bf16 attention in bf16.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .record import Recorder

PLACES = [(torch._C._nn, "scaled_dot_product_attention"),
          (torch.nn.functional, "scaled_dot_product_attention"),
          (torch.nn.functional, "rms_norm"), (torch, "rms_norm")]


def noting(recorder: Recorder, original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `original`, so that the calls inside it are recorded with the dtype of its result."""

    def run(*args: Any, **kwargs: Any) -> Any:
        first = len(recorder.calls)
        out = original(*args, **kwargs)
        recorder.fused.update((id(call), out.dtype) for call in recorder.calls[first:])
        return out

    return run


@contextlib.contextmanager
def noted(recorder: Recorder, module: types.ModuleType) -> Iterator[None]:
    """Wraps these functions while forward() of `module` (an executed task file) is recorded."""
    changed = []

    def put(owner: Any, name: str, value: Any) -> None:
        changed.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    made: dict[int, tuple[Any, Any]] = {}
    for owner, name in PLACES:
        original = getattr(owner, name)
        made.setdefault(id(original), (original, noting(recorder, original)))
        put(owner, name, made[id(original)][1])
    for name, value in list(vars(module).items()):  # from torch.nn.functional import ...
        original, run = made.get(id(value), (None, None))
        if original is value and original is not None:
            put(module, name, run)
    try:
        yield
    finally:
        for owner, name, value in reversed(changed):
            setattr(owner, name, value)
