# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=300 cost=20
"""float8 inputs and outputs from the description to the certificate."""
from __future__ import annotations

import json

import harness
from harness import Json

TASK = '''import torch
import torch.nn as nn

rows, columns = 96, 200


class Model(nn.Module):
    def forward(self, x, y):
        a, b = x.float(), y.float()
        return (a * 2 + b).clamp(-50000, 50000).to(torch.float8_e5m2), (a * b).clamp(-448, 448).to(torch.float8_e4m3fn)


def get_inputs():
    return [torch.randn(rows, columns).to(torch.float8_e4m3fn), torch.randn(rows, columns).to(torch.float8_e5m2)]


def get_init_inputs():
    return []
'''
KERNEL = '''#include <cuda_fp8.h>

extern "C" __global__ void f(const __nv_fp8_e4m3* x, const __nv_fp8_e5m2* y, __nv_fp8_e5m2* sum,
                             __nv_fp8_e4m3* product, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float a = float(x[i]), b = float(y[i]), s = a * 2 + b, p = a * b;
  const float low = fminf(fmaxf(s, -50000.0f), 50000.0f), high = fminf(fmaxf(p, -448.0f), 448.0f);
  sum[i] = __nv_fp8_e5m2(isnan(s) ? s : low);
  product[i] = __nv_fp8_e4m3(isnan(p) ? p : high);
}
'''
TRUNCATED = KERNEL.replace("  product[i] = ", '''  if (fabsf(float(sum[i])) > fabsf(low)) sum[i].__x -= 1;
  product[i] = ''')
OTHER_FORMAT = KERNEL.replace("float(y[i])", "float(reinterpret_cast<const __nv_fp8_e4m3&>(y[i]))")
PLAN: Json = {"cutegen": 1, "dialect": "cuda", "arch": ["sm_90+"], "sources": ["kernel.cu"],
              "symbols": {"n": "size(x)"},
              "steps": [{"kernel": "f", "grid": ["ceil_div(n,256)", 1, 1], "block": [256, 1, 1],
                         "args": [*({"tensor": name} for name in ("x", "y", "out.0", "out.1")), {"i32": "n"}]}]}


class Float8(harness.Case):
    def program(self, name: str, source: str) -> str:
        self.write(f"{name}/kernel.cu", source)
        self.write(f"{name}/plan.json", json.dumps(PLAN))
        return str(self.folder / name)

    def test_the_description_names_both_formats(self) -> None:
        result = self.cutegen("describe", self.write("task.py", TASK), "--json")
        self.assert_code(result, 0)
        dtypes = {t["name"]: t["dtype"] for t in result.json()["tasks"][0]["tensors"]}
        self.assertEqual(dtypes, {"x": "f8e4m3", "y": "f8e5m2", "out.0": "f8e5m2", "out.1": "f8e4m3"})

    def test_a_correct_program_passes_and_wrong_ones_fail(self) -> None:
        task = self.write("task.py", TASK)
        for name, source in {"right": KERNEL, "truncated": TRUNCATED, "other_format": OTHER_FORMAT}.items():
            self.write(f"batch/{name}/task.py", TASK)
            self.write(f"batch/{name}/kernel.cu", source)
            self.write(f"batch/{name}/plan.json", json.dumps(PLAN))
        result = self.cutegen("eval", task, "--batch", self.folder / "batch", "--out", self.folder / "out",
                              timeout=250)
        self.assert_code(result, 0)
        verdicts = {name: json.loads((self.folder / f"out/{name}.json").read_text())["verdict"]
                    for name in ("right", "truncated", "other_format")}
        self.assertEqual(verdicts["right"]["status"], "correct", verdicts["right"]["feedback"])
        for name in ("truncated", "other_format"):
            self.assertEqual(verdicts[name]["status"], "failed", name)
            self.assertRegex(verdicts[name]["feedback"]["headline"], "out.0: .*(elements wrong|as a whole)")

    def test_a_program_is_certified(self) -> None:
        task, folder = self.write("task.py", TASK), self.program("right", KERNEL)
        result = self.cutegen("certify", task, folder, "--device", "cuda:0", "--json", timeout=250)
        if result.code == 6:
            self.skipTest("no certificate without a GPU: " + result.json()["error"]["message"])
        self.assert_code(result, 0)
        self.assertEqual(result.json()["schema"], "cutegen.certificate.v1")


if __name__ == "__main__":
    harness.main()
