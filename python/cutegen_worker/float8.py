# SPDX-License-Identifier: Apache-2.0
"""Float8 tensors. PyTorch has few operators for them, so the worker computes in float and converts."""

from __future__ import annotations

import torch
from torch import Tensor

FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)


def is_float8(tensor: Tensor) -> bool:
    return tensor.dtype in FLOAT8


def widened(tensor: Tensor) -> Tensor:
    """Converts a float8 tensor to float; returns any other tensor unchanged."""
    return tensor.float() if is_float8(tensor) else tensor


def rounded(values: Tensor, dtype: torch.dtype, nan: bool = True) -> Tensor:
    """Converts float values to a float8 dtype. Finite values stay finite. If the dtype has no infinity,
    infinities become NaN or, without `nan`, the largest number."""
    most = torch.finfo(dtype).max
    kept = values.clamp(-most, most)
    if nan or dtype == torch.float8_e5m2:
        kept = torch.where(torch.isinf(values), values, kept)
    return kept.to(dtype)
