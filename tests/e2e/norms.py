# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=300
"""Norms behind pointwise work, from end to end: channels of odd size whose vectors cross from one to the next,
values that the first pass keeps, and short rows that a few threads share."""
import harness

TASK = '''import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = {norm}

    def forward(self, x):
        return {result}


def get_inputs():
    return [torch.randn({shape}).to({dtype})]


def get_init_inputs():
    return []
'''


class Norms(harness.Case):
    def kernel(self, norm, result, shape, dtype="torch.float32"):
        """The text of the first program, which has to be correct."""
        text = TASK.format(norm=norm, result=result, shape=shape, dtype=dtype)
        task = self.write("norm.py", text)
        result = self.cutegen("optimize", task, "--device", "sim:h200", "--evaluations", 1, "--no-profile",
                              "--out", "best", timeout=200)
        self.assert_code(result, 0)
        return (self.folder / "best/kernel.cu").read_text()

    def test_groups_of_channels_of_odd_size(self):
        source = self.kernel("nn.GroupNorm(2, 8)", "self.norm(F.silu(x))", "66, 8, 45, 47")
        self.assertIn("load_run", source)
        self.assertIn("store_slot", source)

    def test_short_rows(self):
        source = self.kernel("nn.LayerNorm(64)", "F.gelu(self.norm(x))", "40000, 64")
        self.assertIn("constexpr int kWidth = 4;", source)


if __name__ == "__main__":
    harness.main()
