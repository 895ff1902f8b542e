# SPDX-License-Identifier: Apache-2.0
"""Gated activation with tanh-GELU: gate and up are halves of one packed tensor."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

tokens = 4096
width = 9216


class Model(nn.Module):
    def forward(self, x):
        gate, up = x.chunk(2, dim=-1)
        return F.gelu(gate, approximate="tanh") * up


def get_inputs():
    return [torch.randn(tokens, 2 * width, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
