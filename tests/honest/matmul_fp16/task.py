# SPDX-License-Identifier: Apache-2.0
"""A product of float16 matrices, summed in float32."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: F401

m = 48
k = 256
n = 40


class Model(nn.Module):
    def forward(self, x, y):
        return x @ y


def get_inputs():
    return [torch.rand(m, k, dtype=torch.float16), torch.rand(k, n, dtype=torch.float16)]


def get_init_inputs():
    return []
