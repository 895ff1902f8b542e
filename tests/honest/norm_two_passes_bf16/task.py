# SPDX-License-Identifier: Apache-2.0
"""Layer norm of bfloat16 rows in float32."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: F401

rows = 24
columns = 700


class Model(nn.Module):
    def forward(self, x):
        return F.layer_norm(x, (columns,))


def get_inputs():
    return [torch.randn(rows, columns, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
