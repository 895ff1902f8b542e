# SPDX-License-Identifier: Apache-2.0
"""A batched product of bfloat16 with a scale."""

import torch
from torch import nn

batch = 6
M = 256
N = 256
K = 128


class Model(nn.Module):
    def forward(self, x, y):
        return torch.bmm(x, y) * 0.5


def get_inputs():
    return [torch.randn(batch, M, K).bfloat16(), torch.randn(batch, K, N).bfloat16()]


def get_init_inputs():
    return []
