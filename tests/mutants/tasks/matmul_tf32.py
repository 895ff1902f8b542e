# SPDX-License-Identifier: Apache-2.0
"""A product of float32 that may round to tf32."""

import torch
from torch import nn

M = 512
N = 768
K = 384


class Model(nn.Module):
    def forward(self, x, y):
        return x @ y


def get_inputs():
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs():
    return []
