# SPDX-License-Identifier: Apache-2.0
"""A product of half precision on the tensor cores."""

import torch
from torch import nn

M = 512
N = 768
K = 384


class Model(nn.Module):
    def forward(self, x, y):
        return x @ y.T


def get_inputs():
    return [torch.randn(M, K).half(), torch.randn(N, K).half()]


def get_init_inputs():
    return []
