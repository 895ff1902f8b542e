# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=600
"""Mean and sum of squares about it in one pass, from end to end: rows that no registers can keep, whole,
shared among CTAs, and along columns; with a first element that is far from all others."""
import harness

TASK = '''import torch


class Model(torch.nn.Module):
    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=1, keepdim=True, correction=0)
        return (x - mean) * torch.rsqrt(variance + 1e-5)


def get_inputs():
    x = torch.rand({shape}) + 3
    x[:, 0] = 1e4
    return [x]


def get_init_inputs():
    return []
'''


class Moments(harness.Case):
    def kernel(self, shape, device="sim:h200"):
        """The text of the first program, which has to be correct."""
        task = self.write("norm.py", TASK.format(shape=shape))
        result = self.cutegen("optimize", task, "--device", device, "--evaluations", 1, "--out", "best",
                              timeout=200)
        self.assert_code(result, 0)
        self.assertIn("cutegen::Moments", text := (self.folder / "best/kernel.cu").read_text())
        return text

    def test_a_cta_for_each_row(self):
        self.assertNotIn("pass1(", self.kernel("2000, 20001", "sim:a100"))

    def test_rows_shared_among_ctas(self):
        self.assertIn("pass1(", self.kernel("4, 600000"))

    def test_columns_shared_among_ctas(self):
        self.assertIn("kColumns", text := self.kernel("2, 300000, 24"))
        self.assertIn("pass1(", text)


if __name__ == "__main__":
    harness.main()
