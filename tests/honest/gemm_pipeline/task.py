# SPDX-License-Identifier: Apache-2.0
"""A product of bf16 matrices, then relu."""
import torch
import torch.nn as nn

rows = 300
columns = 264
depth = 456


class Model(nn.Module):
    def forward(self, x, w):
        return torch.relu(x @ w.T)


def get_inputs():
    return [torch.randn(rows, depth, dtype=torch.bfloat16), torch.randn(columns, depth, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
