# SPDX-License-Identifier: Apache-2.0
"""Multiplies float8 activations and weights, with a scale for each row and each column."""

import torch
from torch import nn

tokens = 4096
width = 4096
features = 4096


class Model(nn.Module):
    def forward(self, x, weight, x_scale, weight_scale):
        product = x.to(torch.bfloat16) @ weight.to(torch.bfloat16).t()
        return (product.float() * x_scale * weight_scale).to(torch.bfloat16)


def get_inputs():
    x = torch.randn(tokens, width).to(torch.float8_e4m3fn)
    weight = torch.randn(features, width).to(torch.float8_e4m3fn)
    return [x, weight, torch.rand(tokens, 1) / 64, torch.rand(features) / 64]


def get_init_inputs():
    return []
