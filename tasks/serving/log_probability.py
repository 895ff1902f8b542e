# SPDX-License-Identifier: Apache-2.0
"""The log probability of each chosen token."""

import torch
from torch import nn

batch = 1024
vocabulary = 32000


class Model(nn.Module):
    def forward(self, logits, tokens):
        scores = torch.log_softmax(logits.float(), dim=-1)
        return scores.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


def get_inputs():
    logits = torch.randn(batch, vocabulary, dtype=torch.bfloat16)
    return [logits, torch.randint(0, vocabulary, (batch,))]


def get_init_inputs():
    return []
