# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900
"""Attention from end to end: each module gets a correct program, at every shape."""
import json

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


class Attention(harness.Case):
    def check(self, result, more="", sizes=SIZES, inputs="", dtype="bfloat16", names="q, k, v"):
        """Returns the plan of the first program, which has to be correct."""
        names += ", mask" if more else ""
        given = (inputs or SAME).format(dtype=dtype) + (f", {more}" if more else "")
        text = TASK.format(sizes=sizes, names=names, result=result, inputs=given)
        done = self.cutegen("optimize", self.write("attention.py", text), "--model", "builtin", "--device",
                            "sim:h200", "--evaluations", 1, "--out", "best", timeout=300)  # fmt: skip
        self.assert_code(done, 0)
        self.assertIn("correct on", done.out)
        return json.loads((self.folder / "best/plan.json").read_text())

    def fused(self, *args, **kwargs):
        plan = self.check(*args, **kwargs)
        self.assertTrue([step for step in plan["steps"] if step["kernel"].startswith("attention")])
        return plan

    def test_causal_tails(self):
        # Several tiles of rows and of keys, the last ones in part; 1 consumer for few rows.
        for length in harness.some(300, 1):
            self.fused("F.scaled_dot_product_attention(q, k, v, is_causal=True)",
                       sizes=f"batch, heads, length, width = 1, 2, {length}, 128")  # fmt: skip

    def test_more_keys_than_queries(self):
        inputs = "torch.randn(2, 3, rows, 32, dtype=torch.{dtype}), *(torch.randn(2, 3, length, 32, dtype=torch.{dtype}) for _ in range(2))"
        for causal in harness.some(True, False):
            self.fused(f"F.scaled_dot_product_attention(q, k, v, is_causal={causal})",
                       sizes="rows, length = 90, 210", inputs=inputs, dtype="float16")  # fmt: skip

    def test_widths(self):
        # Heads of 80 leave columns of a product unused; the widths of k and v differ.
        for width, values in harness.some((80, 80), (192, 48), (16, 256), most=2):
            inputs = (f"*(torch.randn(1, 2, length, {width}, dtype=torch.{{dtype}}) for _ in range(2)), "
                      f"torch.randn(1, 2, length, {values}, dtype=torch.{{dtype}})")  # fmt: skip
            self.fused("F.scaled_dot_product_attention(q, k, v)", sizes="length = 140", inputs=inputs)

    def test_rows_that_tensor_maps_cannot_describe(self):
        plan = self.fused("F.scaled_dot_product_attention(q, k, v, scale=0.2)",
                          sizes="batch, heads, length, width = 1, 2, 70, 36")  # fmt: skip
        self.assertIn("%8", plan["symbols"]["tma"])

    def test_masks(self):
        # Some rows have no key.
        whole = "torch.rand(batch, 1, length, length) > 0.9"
        upper = "torch.full((length, length), -torch.inf, dtype=q.dtype).triu(1)"
        for result, more, sizes in harness.some(
            ("F.scaled_dot_product_attention(q, k, v, attn_mask=mask)", whole, SIZES),
            (f"torch.softmax(q @ k.mT + {upper}, -1) @ v", "", SIZES),
            ("torch.softmax((q @ k.mT / 8).masked_fill(mask, float('-inf')), -1) @ v",
             "torch.rand(batch, heads, 1, length) > 0.9", SIZES.replace("150", "151")),
            ("F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=0.3)",
             "torch.randn(length, length, dtype=torch.bfloat16)", SIZES),
            most=3,
        ):  # fmt: skip
            self.fused(result, more, sizes=sizes)

    def test_triangles_of_ones(self):
        upper = "torch.ones(length, length).triu(1) == 1"
        self.fused(f"torch.softmax((q @ k.mT).masked_fill({upper}, float('-inf')), -1) @ v", dtype="float16")

    def test_grouped_queries(self):
        inputs = "torch.randn(2, 2 * heads, rows, 64, dtype=torch.{dtype}), *(torch.randn(2, heads, length, 64, dtype=torch.{dtype}) for _ in range(2))"
        result = "F.scaled_dot_product_attention(q, k, v, is_causal={}, enable_gqa=True)"
        self.fused(result.format(True), sizes="heads, rows, length = 2, 150, 150", inputs=inputs)
        # One query: its heads are rows, and CTAs share the keys.
        plan = self.fused(result.format(False), sizes="heads, rows, length = 3, 1, 1100", inputs=inputs)
        self.assertEqual([step["kernel"] for step in plan["steps"]], ["attention", "combine"])

    def test_heads_in_lines(self):
        lines = "*(torch.randn(batch, length, heads * width, dtype=torch.{dtype}) for _ in range(3))"
        view = "{}.view({}.shape[0], {}.shape[1], -1, 64).transpose(1, 2)"
        plan = self.fused("F.scaled_dot_product_attention({}).transpose(1, 2).flatten(2)".format(
            ", ".join(view.replace("{}", name) for name in "qkv")), inputs=lines)  # fmt: skip
        self.assertEqual(len(plan["steps"]), 1, "views around the attention are no copies")

    def test_packed_heads(self):
        packed = "torch.randn(batch, length, 3 * heads * width, dtype=torch.{dtype})"
        qkv = "q.view(q.shape[0], q.shape[1], 3, -1, 64).permute(2, 0, 3, 1, 4)"
        plan = self.fused(f"(lambda t: F.scaled_dot_product_attention(t[0], t[1], t[2], is_causal=True))({qkv})",
                          inputs=packed, names="q")  # fmt: skip
        self.assertEqual(len(plan["steps"]), 1)

    def test_work_around_it(self):
        plan = self.fused("torch.relu(F.scaled_dot_product_attention(q, k * 2, v)) + 1")
        self.assertEqual(len(plan["steps"]), 2)

    def test_float32(self):
        plan = self.check("F.scaled_dot_product_attention(q, k, v, is_causal=True)", dtype="float32")
        self.assertEqual(len(plan["steps"]), 3)
        self.check("F.scaled_dot_product_attention(q, k, v, attn_mask=mask)",
                   "torch.rand(length, length) > 0.95", dtype="float32")  # fmt: skip


if __name__ == "__main__":
    harness.main()
