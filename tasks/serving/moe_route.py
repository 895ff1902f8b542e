# SPDX-License-Identifier: Apache-2.0
"""Routes tokens to experts: softmax, the best experts and their weights, which sum to one."""

import torch
from torch import nn

tokens = 8192
experts = 64
chosen = 6


class Model(nn.Module):
    def forward(self, logits):
        scores = torch.softmax(logits.float(), dim=-1)
        weights, ids = torch.topk(scores, chosen, dim=-1)
        return weights / weights.sum(-1, keepdim=True), ids


def get_inputs():
    return [torch.randn(tokens, experts, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
