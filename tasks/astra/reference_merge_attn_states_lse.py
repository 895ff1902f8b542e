# SPDX-License-Identifier: Apache-2.0
"""merge_attn_states of SGLang: joins two partial results of attention by the log-sum-exp of their scores.

v_a and v_b are [tokens, heads, dim], s_a and s_b are [tokens, heads]. A score of minus infinity stands for an empty
part; if both parts are empty, the result is NaN.
"""

import torch
from torch import nn

tokens = 512
heads = 32
dim = 256


class Model(nn.Module):
    def forward(self, v_a, s_a, v_b, s_b):
        most = torch.maximum(s_a, s_b)
        p_a, p_b = torch.exp(s_a - most), torch.exp(s_b - most)
        total = p_a + p_b
        v = v_a.float() * (p_a / total).unsqueeze(-1) + v_b.float() * (p_b / total).unsqueeze(-1)
        return v.half(), torch.log(total) + most


def get_inputs():
    v_a, v_b = (torch.randn(tokens, heads, dim, dtype=torch.float16) for _ in range(2))
    s_a, s_b = (torch.randn(tokens, heads) for _ in range(2))
    return [v_a, s_a, v_b, s_b]
