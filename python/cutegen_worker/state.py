# SPDX-License-Identifier: Apache-2.0
"""Sets what the reference and a third-party solution share: the constructor's seed, and the device."""

from __future__ import annotations

import random
import sys

import torch

from .names import stray_tensors


def seed_all(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % (1 << 32))


def host_generators() -> list[object]:
    """The states of the generators of `random` and `numpy.random`, to compare."""
    states: list[object] = [random.getstate()]
    if "numpy" in sys.modules:
        kind, keys, *rest = sys.modules["numpy"].random.get_state()
        states.append((kind, keys.tobytes(), *rest))
    return states


def move_state(model: torch.nn.Module, device: torch.device | str | None) -> None:
    """Moves parameters, buffers and plain tensor attributes of a model to `device`."""
    if device is None:
        return
    model.to(device)
    for _, owner, key, t in list(stray_tensors(model)):
        setattr(owner, key, t.to(device))
