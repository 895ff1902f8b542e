# SPDX-License-Identifier: Apache-2.0
"""Rows of a table, scaled."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: F401

words = 500
width = 96
count = 70


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(words, width)

    def forward(self, i):
        return self.table(i) * 3.0


def get_inputs():
    return [torch.randint(0, words, (count,))]


def get_init_inputs():
    return []
