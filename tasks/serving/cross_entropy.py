# SPDX-License-Identifier: Apache-2.0
"""Cross entropy over a vocabulary, with label smoothing and ignored labels."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

tokens = 4096
vocabulary = 32000


class Model(nn.Module):
    def forward(self, logits, labels):
        return F.cross_entropy(logits.float(), labels, ignore_index=-100, label_smoothing=0.1)


def get_inputs():
    labels = torch.randint(0, vocabulary, (tokens,))
    return [torch.randn(tokens, vocabulary, dtype=torch.bfloat16), labels]


def get_init_inputs():
    return []
