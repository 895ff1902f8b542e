# SPDX-License-Identifier: Apache-2.0
"""RMS norm of float16 rows."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: F401

rows = 48
columns = 640


class Model(nn.Module):
    def forward(self, x):
        return F.rms_norm(x, (columns,), eps=1e-5)


def get_inputs():
    return [torch.randn(rows, columns, dtype=torch.float16)]


def get_init_inputs():
    return []
