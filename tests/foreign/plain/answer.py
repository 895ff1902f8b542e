# SPDX-License-Identifier: Apache-2.0
"""Honest: PyTorch's own operators."""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x):
        return (x + self.bias).clamp_min_(0).mul_(1.5)
