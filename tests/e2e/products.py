# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=900
"""Products of matrices from end to end: on the tensor cores where the math mode allows it, and with
the depth of a tile shared among CTAs where there are too few tiles."""
import json

import harness

TASK = '''import torch
import torch.nn as nn

rows = {rows}
columns = {columns}
depth = {depth}


class Model(nn.Module):
    def forward(self, x, y):
        return torch.relu({product})


def get_inputs():
    return [torch.randn({shape_x}, dtype={dtype}), torch.randn({shape_y}, dtype={dtype})]


def get_init_inputs():
    return []
'''


SUBNORMAL = '''import torch
import torch.nn as nn

rows = 1024
columns = 768
depth = 1024


class Model(nn.Module):
    def forward(self, x, y):
        return x @ y


def get_inputs():
    return [torch.rand(rows, depth) * 3e-39, torch.rand(depth, columns)]


def get_init_inputs():
    return []
'''


STAGES = '''import torch
import torch.nn as nn

rows, depth, width, columns = 260, 136, 72, 96


class Model(nn.Module):
    def forward(self, x, y, z):
        return torch.logsumexp(torch.sigmoid(x @ y) @ torch.relu(z), 1)


def get_inputs():
    return [torch.randn(rows, depth), torch.randn(depth, width), torch.randn(width, columns)]


def get_init_inputs():
    return []
'''


class Products(harness.Case):
    device = "sim:h200"

    def best(self, evaluations, mode="fp32", layout="kn", dtype="torch.float32", **sizes):
        """The best program's plan and verdict. A layout names the contiguous axis of each factor."""
        x, y = ("x", "rows, depth") if layout[0] == "k" else ("x.T", "depth, rows")
        z, w = ("y", "depth, columns") if layout[1] == "n" else ("y.T", "columns, depth")
        task = self.write("product.py", TASK.format(product=f"{x} @ {z}", shape_x=y, shape_y=w, dtype=dtype,
                                                     **sizes))
        self.write("product.toml", f'math_mode = "{mode}"\n')
        result = self.cutegen("optimize", task, "--evaluations", evaluations, "--out", "best",
                              "--device", self.device, timeout=400)
        self.assert_code(result, 0)
        best = self.folder / "best"
        return (json.loads((best / "plan.json").read_text()),
                json.loads((best / "verdict.json").read_text()))

    def test_tf32_runs_on_the_tensor_cores_before_hopper(self):
        self.device = "sim:a100"
        _, verdict = self.best(2, "tf32", rows=256, columns=192, depth=512)
        self.assertEqual(verdict["status"], "correct")
        kinds = {kind for kernel in verdict["audit"]["kernels"] for kind in kernel["code"]["mma"]}
        self.assertEqual(kinds, {"HMMA.1688.F32.TF32"})

    def test_a_deep_product_is_split_and_its_parts_combined(self):
        plan, verdict = self.best(1, rows=64, columns=96, depth=4096)
        self.assertEqual(verdict["status"], "correct")
        self.assertEqual([step["kernel"] for step in plan["steps"]], ["matmul", "combine"])
        self.assertEqual(plan["scratch"][0]["name"], "partial")

    def test_hopper_multiplies_floats_with_three_products_in_every_layout(self):
        for layout in harness.some("kn", "mk", "kk", "mn", most=2):
            with self.subTest(layout):
                plan, verdict = self.best(1, layout=layout, rows=1024, columns=768, depth=1024)
                self.assertEqual(verdict["status"], "correct")
                self.assertEqual(plan["arch"], ["sm_90a"])
                kinds = {kind for kernel in verdict["audit"]["kernels"] for kind in kernel["code"]["mma"]}
                self.assertTrue(any(kind.startswith("HGMMA") for kind in kinds), kinds)

    def test_three_products_keep_subnormal_numbers(self):
        task = self.write("subnormal.py", SUBNORMAL)
        result = self.cutegen("optimize", task, "--evaluations", 1, "--out", "best", "--device", self.device,
                              timeout=400)
        self.assert_code(result, 0)
        verdict = json.loads((self.folder / "best/verdict.json").read_text())
        self.assertEqual(verdict["status"], "correct")
        kinds = {kind for kernel in verdict["audit"]["kernels"] for kind in kernel["code"]["mma"]}
        self.assertTrue(any(kind.startswith("HGMMA") for kind in kinds), kinds)

    def test_hopper_multiplies_floats_once_in_tf32_in_every_layout(self):
        for layout in harness.some("kk", "mn", "kn", "mk", most=2):
            with self.subTest(layout):
                plan, verdict = self.best(1, "tf32", layout, rows=1021, columns=771, depth=1027)
                self.assertEqual(verdict["status"], "correct")
                self.assertEqual(plan["arch"], ["sm_90a"])
                kinds = {kind for kernel in verdict["audit"]["kernels"] for kind in kernel["code"]["mma"]}
                self.assertTrue(any(kind.startswith("HGMMA") for kind in kinds), kinds)

    def test_hopper_multiplies_16_bit_tensors_by_wgmma_in_every_layout(self):
        bf16, fp16 = ("torch.bfloat16", "bf16"), ("torch.float16", "fp16")
        for layout, (dtype, mode) in harness.some(("kn", bf16), ("mn", fp16), ("kk", fp16), ("mk", bf16), most=2):
            with self.subTest(layout):
                plan, verdict = self.best(1, mode, layout, dtype, rows=520, columns=264, depth=1032)
                self.assertEqual(verdict["status"], "correct")
                self.assertEqual(plan["arch"], ["sm_90a"])
                self.assertEqual(sorted(plan["tensor_maps"]), ["map_a", "map_b"])

    def test_products_computed_factors_and_reductions_are_stages_of_one_program(self):
        task = self.write("stages.py", STAGES)
        result = self.cutegen("optimize", task, "--evaluations", 1, "--out", "best", "--device", self.device,
                              timeout=400)
        self.assert_code(result, 0)
        verdict = json.loads((self.folder / "best" / "verdict.json").read_text())
        self.assertEqual(verdict["status"], "correct")
        plan = json.loads((self.folder / "best" / "plan.json").read_text())
        kinds = sorted(step["kernel"].split("_")[0] for step in plan["steps"])
        self.assertEqual(kinds, ["elementwise", "matmul", "matmul", "reduction"])

    def test_other_gpus_get_programs_that_they_run(self):
        self.device = "sim:a100"
        plan, verdict = self.best(1, rows=512, columns=512, depth=512)
        self.assertEqual(verdict["status"], "correct")
        self.assertEqual(plan["arch"], ["sm_80+"])


if __name__ == "__main__":
    harness.main()
