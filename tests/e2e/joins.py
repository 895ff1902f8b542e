# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900 cost=30
"""Tensors of one official size whose sizes differ at test shapes, from end to end, each with a correct program.

- Joined tensors: two and three of equal size, along the first, a middle and the last axis, reshaped ones, parts of one
  tensor, a part that a split gives, and tensors of different sizes.
- Results of different tensors: pointwise work, sums, softmax, and an append to two caches in place.
- Parts of a split that are not equal, and parts of a fixed number of elements.
- Reductions that read joined tensors: along the joined axis and others, strided slices, halves, transposed and
  computed parts, rows in registers, in shared memory and shared among CTAs.

A commit chooses a third of the tasks; with CUTEGEN_ALL_CASES=1 the test judges all of them.
"""
from __future__ import annotations

import harness

TASK = '''import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, {names}):
        {body}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''


def task(body: str, *shapes: str, dtype: str = "torch.float32") -> str:
    names = "xyzw"[:len(shapes)]
    return TASK.format(names=", ".join(names), body=body,
                       inputs=", ".join(f"torch.randn({shape}, dtype={dtype})" for shape in shapes))


HALF = "h = x.size(1) // 2; return torch.cat([x[:, :h], y, z], 1)"
TASKS = {
    "channels": task("return torch.cat([x, y], 1)", *["4, 32, 16, 16"] * 2, dtype="torch.bfloat16"),
    "three_channels": task("return torch.cat([x, y, z], 1)", *["4, 32, 16, 16"] * 3),
    "rows": task("return torch.cat([x, y], 0)", *["256, 384"] * 2),
    "columns": task("return torch.cat([x, y], -1)", *["256, 384"] * 2),
    "four_columns": task("return torch.cat([x, y * 2, z, w], -1)", "256, 96", "256, 32", "256, 64", "256, 96"),
    "flattened": task("return torch.cat([x.flatten(1), y.flatten(1)], 1)", *["64, 8, 48"] * 2),
    "a_half_and_two_tensors": task(HALF, "64, 64, 48", "64, 32, 48", "64, 32, 48"),
    "a_slice_and_a_tensor": task("return torch.cat([x[:, :32], y], 1)", "64, 64, 48", "64, 32, 48"),
    "halves_in_turn": task("a, b = x.chunk(2, 1); return torch.cat([-b, a], 1)", "64, 128, 48"),
    "scaled_after_the_join": task("return torch.cat([x, y], 1) * z", *["64, 32, 48"] * 2, "64, 64, 48"),
    "joined_means": task("return torch.cat([x.mean(2), y.mean(2)], 1)", *["64, 32, 48"] * 2),
    "stacked": task("return torch.stack([x, y], 1)", *["256, 384"] * 2),
    "stacked_sums": task("return torch.stack([x.sum(-1), y.sum(-1)], 1)", *["64, 384"] * 2),
    "both_orders": task("return torch.cat([x, y], 1), torch.cat([y, x], 1)", *["64, 32, 48"] * 2),
    "two_results": task("return x * 2, y + 1, x.relu()", *["256, 384"] * 2),
    "two_sums": task("return x.sum(1) + y.sum(1)", *["64, 384"] * 2),
    "two_kinds_of_sums": task("return x.sum(1), y.mean(1)", *["64, 384"] * 2),
    "two_softmaxes": task("return F.softmax(x, -1), F.softmax(y, -1)", *["64, 384"] * 2),
    "two_losses": task("return F.mse_loss(x, y) + F.l1_loss(z, w)", *["64, 384"] * 4),
    "two_caches": task("z[:, -1:] = x; w[:, -1:] = y", *["16, 1, 64"] * 2, *["16, 96, 64"] * 2),
    "unequal_chunks": task("a, b, c = x.chunk(3, 1); return a * 2, b + 1, c", "64, 128, 48"),
    "parts_of_a_number": task("a, b = x.split(64, 1); return a * 2, b + 1", "64, 128, 48"),
    "a_sum_of_unequal_chunks": task("a, b, c = x.chunk(3, 1); return a * b, c.sum(1)", "64, 128, 48"),
    "a_norm_of_strided_slices": task(
        "return F.layer_norm(torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1), "
        "(96,))", "3, 10, 12, 24", dtype="torch.float16"),
    "a_norm_of_tokens": task("return F.layer_norm(torch.cat([x, y], 1), (96,))", "16, 1, 96", "16, 64, 96"),
    "a_norm_of_odd_parts": task("return F.layer_norm(torch.cat([x, y], 1), (134,))", "64, 33", "64, 101"),
    "a_softmax_of_a_half_and_a_tensor": task("return torch.softmax(torch.cat([x[:, :x.size(1) // 2], y], 1), 1)",
                                             "64, 504", "64, 252"),
    "a_softmax_of_a_transposed_part": task("return torch.softmax(torch.cat([x, y.t()], 1), 1)", "64, 500", "252, 64"),
    "a_softmax_of_a_computed_part": task("return torch.softmax(torch.cat([x, y * 2], 1), 1)", "64, 500", "64, 252"),
    "a_softmax_of_joined_channels": task("return torch.softmax(torch.cat([x, y], 1), 1)", "4, 24, 31, 32",
                                         "4, 40, 31, 32"),
    "means_of_joined_columns": task("return torch.cat([x, y], -1).mean(1)", "16, 640, 96", "16, 640, 32",
                                    dtype="torch.bfloat16"),
    "a_softmax_of_joined_rows_in_shared_memory": task("return torch.softmax(torch.cat([x, y], 1), 1)", "64, 16384",
                                                      "64, 5000"),
    "a_variance_of_joined_rows_that_ctas_share": task("return torch.cat([x, y], 1).var(1)", "4, 300000", "4, 200000"),
}
ONE_LAUNCH = {"channels", "three_channels", "rows", "columns", "flattened", "both_orders", "two_results", "two_caches"}


class Joins(harness.Case):
    def test_on_an_h200(self) -> None:
        for name, row in self.solve(harness.in_turn(TASKS, 3)).items():
            with self.subTest(name):
                self.assertEqual(row.status, "correct", row.reason)
                if name in ONE_LAUNCH:  # at the official shape
                    others = [step for step in row.plan["steps"] if " == 0 ? " not in step["when"]]
                    self.assertEqual(len(others), 1)


if __name__ == "__main__":
    harness.main()
