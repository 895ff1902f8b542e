# SPDX-License-Identifier: Apache-2.0
"""Mixture of experts: tokens go to slots of their two best experts, and come back, by products with zeros and ones."""

import torch
from torch import nn
from torch.nn.functional import one_hot

tokens = 320
width = 48
experts = 8
slots = 144


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("places", torch.arange(slots, dtype=torch.float32))
        self.gate = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, width) / width**0.5)

    def forward(self, x):
        chance, chosen = torch.softmax(self.gate(x), -1).topk(2, dim=-1)
        hot = one_hot(chosen, experts).to(x.dtype)  # tokens, 2, experts
        takes = hot.sum(1)
        place = torch.cumsum(takes, 0) * takes - 1
        slot = (place[:, :, None] == self.places).to(x.dtype)
        packed = torch.einsum("tec,td->ecd", slot, x)
        done = torch.relu(torch.bmm(packed, self.up))
        weight = (hot * chance[:, :, None]).sum(1)
        return torch.einsum("tec,ecd->td", slot * weight[:, :, None], done)


def get_inputs():
    return [torch.randn(tokens, width)]


def get_init_inputs():
    return []
