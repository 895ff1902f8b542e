# SPDX-License-Identifier: Apache-2.0
"""Gated activation: gate and up are halves of one packed tensor."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

tokens = 4096
width = 14336


class Model(nn.Module):
    def forward(self, x):
        half = x.shape[-1] // 2
        return F.silu(x[..., :half]) * x[..., half:]


def get_inputs():
    return [torch.randn(tokens, 2 * width, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
