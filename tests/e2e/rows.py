# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900 cost=30
"""Reductions along rows from end to end, each with a correct program.

- Norms behind pointwise work: channels of odd size whose vectors cross from one to the next, values that the first
  pass keeps, and short rows that a few threads share.
- Mean and sum of squares about it in one pass: rows that no registers can keep, whole, shared among CTAs, and along
  columns, with a first element that is far from all others.
- Rows that stay in the shared memory of a cluster: softmax, a norm with weights, rows that are no multiple of a
  vector, 16-bit rows, one row that is split instead.
- Columns that stay in the registers of a CTA or of a cluster, in 32 and 16 bits.
- Rotary embedding: one kernel computes both halves of the result side by side.
- Elements at computed places: rolled, padded and joined rows, a triangle.
- Half of a row times the other half, which no kernel copies.
- Axes of one element behind the reduced or scanned axis.
- Transposed operands: threads take vectors in tiles.
- Scans: from the end after pointwise work, exclusive, along columns, and of one row that CTAs share.

A commit chooses a sixth of the tasks; with CUTEGEN_ALL_CASES=1 the test judges all of them.
"""
from __future__ import annotations

import harness

TASK = '''import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        return {result}


def get_inputs():
    return [torch.randn({shape}).to({dtype})]


def get_init_inputs():
    return []
'''
MOMENTS = '''import torch


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


EXCLUSIVE = ("(lambda t: torch.cat((torch.ones_like(t.select(0, 0).unsqueeze(0)), "
             "torch.cumprod(t.narrow(0, 0, t.size(0) - 1), 0)), 0))(torch.sigmoid(x) + 0.5)")


def task(result: str, shape: str, init: str = "pass", dtype: str = "torch.float32") -> str:
    return TASK.format(result=result, shape=shape, init=init, dtype=dtype)


TASKS = {
    "groups_of_channels_of_odd_size": task("self.norm(F.silu(x))", "66, 8, 45, 47", "self.norm = nn.GroupNorm(2, 8)"),
    "short_rows": task("F.gelu(self.norm(x))", "32800, 64", "self.norm = nn.LayerNorm(64)"),
    "moments_of_rows_shared_among_ctas": MOMENTS.format(shape="4, 600000"),
    "moments_of_columns_shared_among_ctas": MOMENTS.format(shape="2, 300000, 24"),
    "softmax_of_rows_that_one_cta_cannot_keep": task("torch.softmax(x, dim=1)", "20, 100000"),
    "rows_that_are_no_multiple_of_a_vector": task("torch.log_softmax(x, dim=1)", "40, 70001"),
    "rolled_and_flipped": task("torch.roll(x, (3, -2), (1, 2)) - x.flip(1)", "5, 31, 130"),
    "padded": task("F.pad(F.pad(torch.relu(x), (2, 3), mode='reflect'), (0, 1, 4, 0), value=-1.5)", "3, 31, 61"),
    "a_norm_of_joined_rows": task("F.layer_norm(torch.cat((x, x[:, :33] * 2), 1), (134,))", "64, 101"),
    "a_softmax_below_the_diagonal": task("torch.softmax(torch.tril(x, -1), -1)", "4, 61, 130", dtype="torch.float16"),
    "columns_that_a_cluster_keeps": task("(x - x.mean(0)) / (x.std(0) + 1e-5)", "3001, 516"),
    "channels_in_16_bits": task("x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-6)", "4, 50, 24, 31",
                                dtype="torch.bfloat16"),
    "a_norm_with_weights_in_16_bits": task("F.rms_norm(x, (65536,), self.weight, 1e-6)", "70, 65536",
                                           "self.weight = nn.Parameter(torch.rand(65536).bfloat16())",
                                           "torch.bfloat16"),
    "few_rows_are_shared_among_more_ctas_than_a_cluster_has": task(
        "x / torch.norm(x, p=2, dim=1, keepdim=True)", "1, 40000"),
    "a_scan_from_the_end": task("torch.cumsum(F.relu(x).flip(1), 1).flip(1) - x", "300, 5003"),
    "an_exclusive_scan_along_columns": task(EXCLUSIVE, "700, 260"),
    "a_scan_of_16_bits": task("torch.cumsum(x, -1)", "5000, 96", dtype="torch.bfloat16"),
    "halves_of_a_row_where_they_lie": task("F.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1]", "300, 4104",
                                           dtype="torch.bfloat16"),
    "a_transposition": task("x.transpose(1, 2).contiguous() * 2", "3, 130, 197"),
    "a_transposition_in_16_bits": task("F.relu(x.permute(0, 3, 1, 2)).contiguous()", "2, 9, 61, 96",
                                       dtype="torch.bfloat16"),
    "a_transposition_in_blocks": task("F.gelu(x.transpose(1, 2)).contiguous()", "3, 72, 200", dtype="torch.bfloat16"),
    "a_pixel_shuffle": task("F.pixel_shuffle(x, 3)", "2, 18, 11, 40", dtype="torch.float16"),
    "a_nearest_upsampling": task("F.interpolate(x, scale_factor=2, mode='nearest')", "2, 3, 17, 24"),
    "rotary_embedding_in_parts": task("x * 0.5 + torch.cat((-x[..., 64:], x[..., :64]), -1) * 2", "33, 4, 128"),
    "a_softmax_before_an_axis_of_one_element": task("(torch.softmax(self.score(x), 1) * x).sum(1)", "6, 130, 64",
                                                    "self.score = nn.Linear(64, 1)"),
    "a_scan_before_an_axis_of_one_element": task("torch.cumsum(x.sum(-1, keepdim=True), 1)", "32, 130, 64"),
    "a_scan_of_one_row_shared_among_ctas": task("torch.cumsum(x, 0)", "300004"),
}
# Text that the source of a task's program must contain.
WANTED = {
    "groups_of_channels_of_odd_size": ["load_run", "store_slot"],
    "short_rows": ["constexpr int kWidth = 4;"],
    "moments_of_rows_shared_among_ctas": ["cutegen::Moments", "pass1("],
    "moments_of_columns_shared_among_ctas": ["cutegen::Moments", "kColumns", "pass1("],
    "softmax_of_rows_that_one_cta_cannot_keep": ["copy_async"],
    "rows_that_are_no_multiple_of_a_vector": ["combine_cluster"],
    "a_norm_with_weights_in_16_bits": ["kept_x"],
    "few_rows_are_shared_among_more_ctas_than_a_cluster_has": ["pass1("],
    "a_transposition": ["tile_coordinates<1,"],
    "a_transposition_in_16_bits": ["tile_coordinates<1,"],
    "a_transposition_in_blocks": ["store_block"],
    "a_pixel_shuffle": ["store_block"],
    "a_nearest_upsampling": ["store_block"],
    "a_scan_from_the_end": ["scan_row<cutegen::Add", "at = steps - 1 - j"],
    "an_exclusive_scan_along_columns": ["scan_column<cutegen::Multiply, kRows, kColumns, true>"],
    "a_scan_of_16_bits": ["constexpr int kWidth = 8;"],
    "halves_of_a_row_where_they_lie": ["x + x_start"],
    "rotary_embedding_in_parts": ["out + out_start"],
    "a_softmax_before_an_axis_of_one_element": ["constexpr int kItems"],
    "a_scan_of_one_row_shared_among_ctas": ["totals(", "carry_of_warp"],
}
CLUSTERS = {"softmax_of_rows_that_one_cta_cannot_keep": 8, "rows_that_are_no_multiple_of_a_vector": 4,
            "a_norm_with_weights_in_16_bits": 2}


class Rows(harness.Case):
    def test_on_an_h200(self) -> None:
        solved = self.solve(harness.in_turn(TASKS, 6))
        for name, row in solved.items():
            with self.subTest(name):
                self.assertEqual(row.status, "correct", row.reason)
                for part in WANTED.get(name, ()):
                    self.assertIn(part, row.source)
                if name in CLUSTERS:
                    self.assertEqual(row.plan["steps"][0]["cluster"][0], CLUSTERS[name])
                if name == "a_norm_with_weights_in_16_bits":
                    self.assertNotIn("kept_weight", row.source)
                if name == "few_rows_are_shared_among_more_ctas_than_a_cluster_has":
                    self.assertNotIn("cluster", row.plan["steps"][0])

    def test_a_cta_for_each_row_on_an_a100(self) -> None:
        row = self.solve({"moments": MOMENTS.format(shape="2000, 20001")}, device="sim:a100")["moments"]
        self.assertEqual(row.status, "correct", row.reason)
        self.assertIn("cutegen::Moments", row.source)
        self.assertNotIn("pass1(", row.source)


if __name__ == "__main__":
    harness.main()
