# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=600
"""Rows that stay in the shared memory of a cluster, from end to end: softmax, a norm with weights, rows that are no
multiple of a vector, 16-bit rows, one row that is split instead."""
import json

import harness

TASK = '''import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand({size}).to({dtype}))

    def forward(self, x):
        return {result}


def get_inputs():
    return [torch.randn({rows}, {size}).to({dtype})]


def get_init_inputs():
    return []
'''


class Resident(harness.Case):
    def program(self, rows, size, result, dtype="torch.float32"):
        """The source and the first launch of the first program, which has to be correct."""
        text = TASK.format(rows=rows, size=size, result=result, dtype=dtype)
        task = self.write("rows.py", text)
        result = self.cutegen("optimize", task, "--device", "sim:h200", "--evaluations", 1, "--out",
                              "best", timeout=300)
        self.assert_code(result, 0)
        plan = json.loads((self.folder / "best/plan.json").read_text())
        return (self.folder / "best/kernel.cu").read_text(), plan["steps"][0]

    def test_softmax_of_rows_that_one_cta_cannot_keep(self):
        source, step = self.program(20, 100000, "torch.softmax(x, dim=1)")
        self.assertIn("copy_async", source)
        self.assertEqual(step["cluster"][0], 8)

    def test_rows_that_are_no_multiple_of_a_vector(self):
        source, step = self.program(40, 70001, "torch.log_softmax(x, dim=1)")
        self.assertIn("combine_cluster", source)
        self.assertEqual(step["cluster"][0], 4)

    def test_a_norm_with_weights_in_16_bits(self):
        source, step = self.program(70, 65536, "F.rms_norm(x, (65536,), self.weight, 1e-6)",
                                    "torch.bfloat16")
        self.assertIn("kept_x", source)
        self.assertNotIn("kept_weight", source)
        self.assertEqual(step["cluster"][0], 2)

    def test_few_rows_are_shared_among_more_ctas_than_a_cluster_has(self):
        source, step = self.program(1, 40000, "x / torch.norm(x, p=2, dim=1, keepdim=True)")
        self.assertIn("pass1(", source)
        self.assertNotIn("cluster", step)


if __name__ == "__main__":
    harness.main()
