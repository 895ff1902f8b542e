# SPDX-License-Identifier: Apache-2.0
"""Shares the times of torch.compile's max-autotune between workers of the same suite and GPU.

Many tasks of a suite have matrix products of the same sizes. PyTorch's cache keeps the times of the kernels
that it tried, by operator, inputs, precision and source hash. This module reads these times (no code) after a
build and inserts them before the next one: {operator: {inputs: {precision: {hash: ms}}}}. If PyTorch's format
differs, it shares nothing.
"""

from __future__ import annotations

from typing import Any

Times = dict[str, Any]

NEVER_MS = 1e30  # stands for infinity, which JSON lacks: the kernel does not run


def cache() -> Any:
    from torch._inductor.codecache import PersistentCache

    return PersistentCache()


def merged(into: Times, more: Times) -> Times:
    for name, below in more.items():
        if isinstance(below, dict):
            merged(into.setdefault(name, {}), below)
        else:
            into.setdefault(name, below)
    return into


def times_in(kept: Times) -> Times:
    """Only the times; drops PyTorch's other entries."""
    told: Times = {}
    for name, below in kept.items():
        if isinstance(below, dict):
            told[name] = times_in(below)
        elif isinstance(below, float):
            told[name] = min(below, NEVER_MS)
    return told


def put(times: Times) -> None:
    """Inserts known times into PyTorch's cache. Call it before a build."""
    if not times:
        return
    try:
        kept = cache()
        kept.update_local_cache(merged(kept.get_local_cache(), times))
    except (ImportError, AttributeError, OSError, ValueError, TypeError, RuntimeError):
        pass


def found() -> Times:
    """All times that this worker knows. Call it after a build."""
    try:
        return times_in(cache().get_local_cache())
    except (ImportError, AttributeError, OSError, ValueError, TypeError, RuntimeError):
        return {}
