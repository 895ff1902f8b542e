# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900 cost=30
"""Attention from end to end: each module gets a correct program, at every shape.

A commit chooses an eighth of the modules; with CUTEGEN_ALL_CASES=1 all of them are judged.
"""
from __future__ import annotations

import harness

TASK = '''import torch
from torch import nn
from torch.nn import functional as F

{sizes}


class Model(nn.Module):
    def forward(self, {names}):
        return {result}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''
SIZES = "batch, heads, length, width = 2, 3, 150, 64"
SAME = "*(torch.randn(batch, heads, length, width, dtype=torch.{dtype}) for _ in range(3))"
GROUPED = ("torch.randn(2, 2 * heads, rows, 64, dtype=torch.{dtype}), "
           "*(torch.randn(2, heads, length, 64, dtype=torch.{dtype}) for _ in range(2))")
LINES = "*(torch.randn(batch, length, heads * width, dtype=torch.{dtype}) for _ in range(3))"
PACKED = "torch.randn(batch, length, 3 * heads * width, dtype=torch.{dtype})"
PLAIN = "F.scaled_dot_product_attention(q, k, v)"
CAUSAL = "F.scaled_dot_product_attention(q, k, v, is_causal=True)"
MASKED = "F.scaled_dot_product_attention(q, k, v, attn_mask=mask)"
GQA = "F.scaled_dot_product_attention(q, k, v, is_causal={}, enable_gqa=True)"


def task(result: str, more: str = "", sizes: str = SIZES, inputs: str = "", dtype: str = "bfloat16",
         names: str = "q, k, v") -> str:
    names += ", mask" if more else ""
    given = (inputs or SAME).format(dtype=dtype) + (f", {more}" if more else "")
    return TASK.format(sizes=sizes, names=names, result=result, inputs=given)


def causal(length: int) -> str:
    """Several tiles of rows and of keys, the last ones incomplete; 1 consumer if there are few rows."""
    return task(CAUSAL, sizes=f"batch, heads, length, width = 1, 2, {length}, 128")


def more_keys(is_causal: bool) -> str:
    """More keys than queries."""
    inputs = ("torch.randn(2, 3, rows, 32, dtype=torch.{dtype}), "
              "*(torch.randn(2, 3, length, 32, dtype=torch.{dtype}) for _ in range(2))")
    return task(f"F.scaled_dot_product_attention(q, k, v, is_causal={is_causal})", sizes="rows, length = 90, 210",
                inputs=inputs, dtype="float16")


def widths(width: int, values: int) -> str:
    """Heads of 80 leave columns of a product unused; the widths of k and v differ."""
    inputs = (f"*(torch.randn(1, 2, length, {width}, dtype=torch.{{dtype}}) for _ in range(2)), "
              f"torch.randn(1, 2, length, {values}, dtype=torch.{{dtype}})")
    return task(PLAIN, sizes="length = 140", inputs=inputs)


def in_lines() -> str:
    view = "{0}.view({0}.shape[0], {0}.shape[1], -1, 64).transpose(1, 2)"
    return task("F.scaled_dot_product_attention({}).transpose(1, 2).flatten(2)".format(
        ", ".join(view.format(name) for name in "qkv")), inputs=LINES)


def packed() -> str:
    qkv = "q.view(q.shape[0], q.shape[1], 3, -1, 64).permute(2, 0, 3, 1, 4)"
    return task(f"(lambda t: F.scaled_dot_product_attention(t[0], t[1], t[2], is_causal=True))({qkv})",
                inputs=PACKED, names="q")


def masks() -> tuple[str, ...]:
    """Some rows have no key."""
    whole = "torch.rand(batch, 1, length, length) > 0.9"
    upper = "torch.full((length, length), -torch.inf, dtype=q.dtype).triu(1)"
    return harness.some(
        task(MASKED, whole),
        task(f"torch.softmax(q @ k.mT + {upper}, -1) @ v"),
        task("torch.softmax((q @ k.mT / 8).masked_fill(mask, float('-inf')), -1) @ v",
             "torch.rand(batch, heads, 1, length) > 0.9", SIZES.replace("150", "151")),
        task("F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=0.3)",
             "torch.randn(length, length, dtype=torch.bfloat16)"),
        most=3)


UPPER = "torch.ones(length, length).triu(1) == 1"
FUSED = {
    **{f"causal_{length}": causal(length) for length in harness.some(300, 1)},
    **{f"more_keys_{is_causal}": more_keys(is_causal) for is_causal in harness.some(True, False)},
    **{f"widths_{w}_{v}": widths(w, v) for w, v in harness.some((80, 80), (192, 48), (16, 256), most=2)},
    "rows_that_tensor_maps_cannot_describe": task("F.scaled_dot_product_attention(q, k, v, scale=0.2)",
                                                  sizes="batch, heads, length, width = 1, 2, 70, 36"),
    **{f"mask_{number}": text for number, text in enumerate(masks())},
    "triangle_of_ones": task(f"torch.softmax((q @ k.mT).masked_fill({UPPER}, float('-inf')), -1) @ v",
                             dtype="float16"),
    "grouped_queries": task(GQA.format(True), sizes="heads, rows, length = 2, 150, 150", inputs=GROUPED),
    # One query: the heads form the rows of a tile, and CTAs share the keys.
    "one_query": task(GQA.format(False), sizes="heads, rows, length = 3, 1, 1100", inputs=GROUPED),
    "heads_in_lines": in_lines(),
    "packed_heads": packed(),
    "work_around_it": task("torch.relu(F.scaled_dot_product_attention(q, k * 2, v)) + 1"),
}
STEPS = {"heads_in_lines": 1, "packed_heads": 1, "work_around_it": 2, "float32": 3}  # views are no copies
APART = {"float32": task(CAUSAL, dtype="float32"),
         "float32_masked": task(MASKED, "torch.rand(length, length) > 0.95", dtype="float32")}


LAYER = '''import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.packed, self.back = 4, nn.Linear(64, 192), nn.Linear(64, 64)
        self.layer = {layer}

    def forward(self, x):
        {result}


def get_inputs():
    return [torch.randn(4, 18, 64)]


def get_init_inputs():
    return []
'''
SPLIT = """b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.packed(x).split(c, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.back(y.transpose(1, 2).reshape(b, t, c))"""
LAYERS = {
    "multi_head_attention": LAYER.format(layer="nn.MultiheadAttention(64, 4, batch_first=True)",
                                         result="return self.layer(x, x, x, need_weights=False)[0]"),
    "encoder_layer": LAYER.format(layer="nn.TransformerEncoderLayer(64, 4, 128, 0.0, batch_first=True)",
                                  result="return self.layer(x)"),
    "heads_of_a_linear_layer": LAYER.format(layer="None", result=SPLIT),
}


class Attention(harness.Case):
    def test_every_module_gets_a_correct_program(self) -> None:
        for name, row in self.solve(harness.in_turn({**FUSED, **APART, **LAYERS}, 8)).items():
            with self.subTest(name):
                self.assertEqual(row.status, "correct", row.reason)
                if name in FUSED:
                    self.assertTrue([kernel for kernel in row.kernels if kernel.startswith("attention")])
                self.assertEqual(len(row.kernels), STEPS.get(name, len(row.kernels)))
                if name == "rows_that_tensor_maps_cannot_describe":
                    self.assertIn("%8", row.plan["symbols"]["tma"])
                if name == "one_query":
                    self.assertEqual(row.kernels, ["attention", "combine"])


if __name__ == "__main__":
    harness.main()
