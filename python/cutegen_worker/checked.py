# SPDX-License-Identifier: Apache-2.0
"""Checks of convolutions that PyTorch omits on meta tensors.

On a CPU or a GPU, PyTorch refuses these calls. On meta tensors it only computes a shape, so a test shape at which
the module cannot run would seem to work.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

CONVOLUTION = torch.ops.aten.convolution.default


def check(func: Any, args: tuple[Any, ...]) -> None:
    """Raises RuntimeError, as PyTorch does on a CPU, if the call is a convolution whose operands do not fit."""
    if func is CONVOLUTION and len(args) == 9:
        check_convolution(*args)


def check_convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int],
    dilation: list[int], transposed: bool, output_padding: list[int], groups: int,
) -> None:
    rank = weight.dim() - 2
    shape = list(weight.shape)
    if groups < 1 or shape[0] % groups:
        raise RuntimeError(f"expected weight of size {shape} to be divisible by the number of groups, {groups}, "
                           "at dimension 0")
    wanted = shape[0] if transposed else shape[1] * groups
    got = x.shape[-rank - 1]
    if got != wanted:
        raise RuntimeError(f"expected input {list(x.shape)} to have {wanted} channels, because the weight has size "
                           f"{shape}; it has {got}")
    results = shape[1] * groups if transposed else shape[0]
    if bias is not None and list(bias.shape) != [results]:
        raise RuntimeError(f"expected bias to have {results} elements; it has size {list(bias.shape)}")
    if transposed and any(o >= max(s, d) for o, s, d in zip(output_padding, each(stride, rank), each(dilation, rank))):
        raise RuntimeError("output padding must be smaller than either stride or dilation")


def each(values: list[int], rank: int) -> list[int]:
    """One value for each axis. A single value applies to all axes."""
    return list(values) * rank if len(values) == 1 else list(values)
