# SPDX-License-Identifier: Apache-2.0
"""Layer norm of the tokens of an encoder."""

import torch
from torch import nn

tokens = 8192
width = 1024


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width, dtype=torch.float16)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(tokens, width, dtype=torch.float16)]


def get_init_inputs():
    return [width]
