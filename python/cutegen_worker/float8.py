# SPDX-License-Identifier: Apache-2.0
"""Tensors of float8, for which PyTorch has conversions and few operators: work is done in float."""

from __future__ import annotations

import torch
from torch import Tensor

FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)


def is_float8(tensor: Tensor) -> bool:
    return tensor.dtype in FLOAT8


def widened(tensor: Tensor) -> Tensor:
    """A float8 tensor as float; any other as it is."""
    return tensor.float() if is_float8(tensor) else tensor


def rounded(values: Tensor, dtype: torch.dtype, nan: bool = True) -> Tensor:
    """Float values in a float8 dtype: finite ones stay finite; without `nan`, so do those that the
    dtype has no infinity for."""
    most = torch.finfo(dtype).max
    kept = values.clamp(-most, most)
    if nan or dtype == torch.float8_e5m2:
        kept = torch.where(torch.isinf(values), values, kept)
    return kept.to(dtype)
