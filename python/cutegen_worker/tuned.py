# SPDX-License-Identifier: Apache-2.0
"""What torch.compile's max-autotune measured, handed on to other workers of the same suite and GPU.

Many tasks of a suite have a product of the same sizes. PyTorch keeps the times of the kernels that it tried by
operator, inputs, precision and hash of the kernel's text, in its own cache; here that part of the cache, times
only and no code, is read out after a build and put in before one: {operator: {inputs: {precision: {hash: ms}}}}.
A PyTorch that keeps them otherwise hands on nothing.
"""

from __future__ import annotations

from typing import Any

Times = dict[str, Any]

NEVER_MS = 1e30  # a kernel that does not run: JSON has no infinity


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
    """What PyTorch keeps there besides is left out."""
    told: Times = {}
    for name, below in kept.items():
        if isinstance(below, dict):
            told[name] = times_in(below)
        elif isinstance(below, float):
            told[name] = min(below, NEVER_MS)
    return told


def put(times: Times) -> None:
    """Before a build."""
    if not times:
        return
    try:
        kept = cache()
        kept.update_local_cache(merged(kept.get_local_cache(), times))
    except (ImportError, AttributeError, OSError, ValueError, TypeError, RuntimeError):
        pass


def found() -> Times:
    """After a build: all that this worker knows."""
    try:
        return times_in(cache().get_local_cache())
    except (ImportError, AttributeError, OSError, ValueError, TypeError, RuntimeError):
        return {}
