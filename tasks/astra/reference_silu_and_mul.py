# SPDX-License-Identifier: Apache-2.0
"""silu_and_mul of SGLang: out = silu(x[:, :d]) * x[:, d:], computed in float32 and stored in half precision."""

import torch
from torch import nn

tokens = 16
hidden = 4096


class Model(nn.Module):
    def forward(self, x):
        gate, up = x.float().chunk(2, dim=-1)
        return (torch.nn.functional.silu(gate) * up).half()


def get_inputs():
    return [torch.randn(tokens, 2 * hidden, dtype=torch.float16)]
