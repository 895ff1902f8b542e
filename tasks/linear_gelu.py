# SPDX-License-Identifier: Apache-2.0
"""A linear layer with an activation and a residual: a matrix product with pointwise work after it."""

import torch
import torch.nn.functional as F
from torch import nn

batch = 2048
features = 4096
hidden = 3072


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.fc = nn.Linear(features, hidden)

    def forward(self, x, residual):
        return F.gelu(self.fc(x)) * 0.5 + residual


def get_inputs():
    return [torch.randn(batch, features), torch.randn(batch, hidden)]


def get_init_inputs():
    return [features, hidden]
