# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900 cost=50
"""Modules of serving systems from end to end, each with a correct program.

- Rows and elements by index: an embedding before a norm, negative indices, rows that a sum reads, one element of each
row of a log-softmax, an index that a kernel computes.
- Top-k of 16-bit rows with equal values, and of long rows in which few threads hold the first elements; sorted rows.
- Parts of a packed projection that become heads, rotated pairs of neighbours.
- Quantised rows and blocks, floats from such blocks, counts of truth values, a loss with labels.
- New rows of a cache, by index and at its end.

A commit chooses a third of the tasks; with CUTEGEN_ALL_CASES=1 the test judges all of them.
"""
from __future__ import annotations

import harness

TASK = '''import torch
import torch.nn as nn
import torch.nn.functional as F

slots, rows = 300, 50


class Model(nn.Module):
    def forward(self, {arguments}):
        {body}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''


def task(arguments: str, body: str, *inputs: str) -> str:
    return TASK.format(arguments=arguments, body=body, inputs=", ".join(inputs))


def normal(*shape: int, dtype: str = "float32") -> str:
    return f"torch.randn({', '.join(map(str, shape))}).to(torch.{dtype})"


def index(below: int, *shape: int) -> str:
    return f"torch.randint(0, {below}, {shape})"


QUANTISE = "s = x.abs().amax(-1, keepdim=True).clamp(min=1e-6) / {most}\n        return {values}, s"
TASKS = {
    "an_embedding_before_a_norm": task("i, table", "return F.rms_norm(F.embedding(i, table), (1024,))",
                                       index(3000, 40, 25), normal(3000, 1024, dtype="bfloat16")),
    "negative_indices": task("x, i", "return x[:, i] * 2", "torch.randn(300, rows, 64)",
                             "torch.randint(-rows, rows, (70,))"),
    "rows_that_a_sum_reads": task("x, i, w", "return (x[i] * w.unsqueeze(-1)).sum(1)", normal(600, 264),
                                  index(600, 100, 6), normal(100, 6)),
    "an_element_of_a_log_softmax": task("x, i", "return torch.log_softmax(x.float(), -1).gather(-1, i[:, None])",
                                        normal(300, 5001, dtype="bfloat16"), index(5001, 300)),
    "a_computed_index": task("x, y", "return y[x.argmax(-1)] + 1", normal(300, 100), normal(100, 72)),
    "elements_across_rows": task("x, i", "return F.relu(x).gather(0, i)", normal(400, 513), index(400, 30, 513)),
    "top_k_of_equal_values": task("x", "v, i = torch.topk(x, 6, -1)\n        return v / v.sum(-1, keepdim=True), i",
                                  normal(500, 64, dtype="bfloat16")),
    "top_k_of_long_rows": task("x, t", "v, i = torch.topk(x / t, 50, -1)\n        return torch.softmax(v, -1), i",
                               normal(9, 20001), "torch.rand(1) + 0.5"),
    "sorted_rows": task("x", "return torch.sort(x * 0.5, -1, descending=True)", normal(60, 1000)),
    "integers_with_the_scale_of_their_row": task(
        "x", QUANTISE.format(most=127, values="(x / s).round().to(torch.int8)"), normal(300, 1000)),
    "blocks_of_8_bit_floats": task(
        "x", "x = x.float().unflatten(-1, (-1, 128))\n        " +
        QUANTISE.format(most=448, values="(x / s).to(torch.float8_e4m3fn).flatten(-2)"),
        normal(300, 1024, dtype="bfloat16")),
    "floats_from_blocks_of_8_bits": task(
        "x, s", "x = x.float().unflatten(0, (-1, 64)).unflatten(2, (-1, 64))\n        " +
        "return (x * s[:, None, :, None]).flatten(2).flatten(0, 1).to(torch.bfloat16)",
        normal(512, 640, dtype="float8_e5m2"), normal(8, 10)),
    "a_loss_with_labels": task("x, y", "return F.cross_entropy(x.float(), y, ignore_index=5, label_smoothing=0.1)",
                               normal(300, 5003, dtype="bfloat16"), index(5003, 300)),
    "a_norm_of_three_quarters_of_a_block": task("x, w", "return F.gelu(F.rms_norm(x, (3072,), w))",
                                                normal(2000, 3072, dtype="float16"), normal(3072, dtype="float16")),
    "counts_of_truth_values": task("x", "m = x > 0.5\n        return m.sum(-1), m.any(-1), m.all(-1)",
                                   normal(300, 999)),
    "rows_of_a_cache_by_index": task("k, cache, i", "cache.index_copy_(0, i, k * 2)",
                                     "torch.randn(rows, 4, 64)", "torch.randn(slots, 4, 64)",
                                     "torch.randperm(slots)[:rows]"),  # no slot twice, at any shape
    "heads_of_a_packed_projection": task(
        "x, b", "parts = (x + b).chunk(3, -1)\n        "
        "return tuple(p.unflatten(-1, (4, -1)).transpose(1, 2) for p in parts)",
        normal(3, 50, 384, dtype="bfloat16"), normal(384, dtype="bfloat16")),
    "norms_of_packed_heads": task(
        "x", "q, k, v = x.view(x.shape[0], 3, 4, 72).unbind(1)\n        "
        "return F.rms_norm(q, (72,)), F.rms_norm(k, (72,)), v * 2", normal(60, 864)),
    "pairs_of_neighbours": task(
        "x, c, s", "a, b = x[..., ::2], x[..., 1::2]\n        "
        "return torch.stack([a * c - b * s, b * c + a * s], -1).flatten(-2)",
        normal(40, 6, 96, dtype="bfloat16"), normal(40, 1, 48, dtype="bfloat16"), normal(40, 1, 48, dtype="bfloat16")),
    "first_of_four_by_turns": task("x", "return x[..., ::4] * 2 + x[..., 3::4]", normal(60, 264)),
    "turns_that_end_early": task("x", "return x[..., ::4] * 2 + x[..., 2::4]", normal(60, 264)),
    "two_hundred_of_a_long_row": task("x", "return torch.topk(x, 200, -1)", normal(7, 9001)),
    "a_few_threads_have_the_top_k": task("x", "return torch.topk(x, 60, -1)",
                                         "torch.randn(3, 50000) + 100 * (torch.arange(50000) // 4 % 1024 < 60)"),
    "the_end_of_a_cache": task("k, cache", "cache[:, -3:] = k", normal(30, 3, 64), normal(30, 100, 64)),
}
# Text that the source of a task's program must contain.
WANTED = {"an_embedding_before_a_norm": "cutegen::place<false>(", "negative_indices": "cutegen::take<true>(",
          "rows_that_a_sum_reads": "cutegen::load_taken(", "rows_of_a_cache_by_index": "cutegen::store_at(",
          "a_loss_with_labels": "cutegen::place<3>(", "floats_from_blocks_of_8_bits": "place(j)",
          "pairs_of_neighbours": "cutegen::store_turns(", "first_of_four_by_turns": "cutegen::load_turns(",
          "sorted_rows": "cutegen::sort_keys(", "counts_of_truth_values": "cutegen::Total"}


class Serving(harness.Case):
    def test_on_an_h200(self) -> None:
        for name, row in self.solve(harness.in_turn(TASKS, 3)).items():
            with self.subTest(name):
                self.assertEqual(row.status, "correct", row.reason)
                source = "".join(file.read_text() for file in sorted(row.folder.glob("*.cu")))
                self.assertIn(WANTED.get(name, "__global__"), source)


if __name__ == "__main__":
    harness.main()
