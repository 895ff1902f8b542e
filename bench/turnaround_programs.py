# SPDX-License-Identifier: Apache-2.0
"""The programs of gpu_turnaround.py: plain CUDA written here, edits of recipes, and wrong ones.

A program is a dict: name, task (a path), kind ("plain", "light", "product", "wrong" or "loser"), expect (the verdict's
status and a word of its headline), program (the JSON for the evaluator) and optionally against (a program to time
alternately with it). Plain kernels take any shape; THREADS and other values that an edit may set come before them.
"""
from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Source = tuple[str, Json]  # a kernel's source, and its plan
HEAD = '''constexpr int kThreads = {threads};

__device__ float block_sum(float v, float* part) {{
  for (int d = 16; d; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x % 32 < kThreads / 32 ? part[threadIdx.x % 32] : 0.0f;
  for (int d = 16; d; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  return v;
}}
__device__ float block_max(float v, float* part) {{
  for (int d = 16; d; d /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = part[threadIdx.x % 32 < kThreads / 32 ? threadIdx.x % 32 : 0];
  for (int d = 16; d; d /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
  return v;
}}
'''

POINTWISE = '''extern "C" __global__ void kernel({params}, float* out, {more}long long n, long long m) {{
  for (long long i = blockIdx.x * (long long)kThreads + threadIdx.x; i < n;
       i += gridDim.x * (long long)kThreads) {{
    {body}
  }}
}}
'''

ROW = '''extern "C" __global__ void kernel({params}, float* out, long long m) {{
  __shared__ float part[32];
  const float* row = x + blockIdx.x * m;
  {body}
}}
'''

# Tiles of 32 x 32, four results a thread: out(b, i, j) = finish(sum over k of a(b, i, k) * c(..)).
PRODUCT = '''extern "C" __global__ void kernel({params}, float* out, long long rows, long long columns,
                                  long long depth) {{
  __shared__ float left[32][33], right[32][33];
  const long long i0 = blockIdx.y * 32, j0 = blockIdx.x * 32, b = blockIdx.z;
  const int tx = threadIdx.x % 32, ty = threadIdx.x / 32;
  a += b * rows * depth;
  c += b * columns * depth;
  float sum[4] = {{}};
  for (long long k0 = 0; k0 < depth; k0 += 32) {{
    for (int r = ty; r < 32; r += 8) {{
      left[r][tx] = i0 + r < rows && k0 + tx < depth ? a[(i0 + r) * depth + k0 + tx] : 0.0f;
      {load}
    }}
    __syncthreads();
    #pragma unroll {unroll}
    for (int k = 0; k < 32; ++k)
      for (int q = 0; q < 4; ++q) sum[q] += left[ty + 8 * q][k] * right[tx][k];
    __syncthreads();
  }}
  for (int q = 0; q < 4; ++q) {{
    const long long i = i0 + ty + 8 * q, j = j0 + tx;
    if (i < rows && j < columns) {{ {finish} }}
  }}
}}
'''
BY_ROWS = "right[r][tx] = j0 + r < columns && k0 + tx < depth ? c[(j0 + r) * depth + k0 + tx] : 0.0f;"
BY_COLUMNS = "right[tx][r] = j0 + tx < columns && k0 + r < depth ? c[(k0 + r) * columns + j0 + tx] : 0.0f;"

IN = "const float* "
SOFTMAX = '''float top = -INFINITY;
  for (long long i = threadIdx.x; i < m; i += kThreads) top = fmaxf(top, row[i]);
  top = block_max(top, part);
  float sum = 0;
  for (long long i = threadIdx.x; i < m; i += kThreads) sum += expf(row[i] - top);
  sum = block_sum(sum, part);
  for (long long i = threadIdx.x; i < m; i += kThreads) out[blockIdx.x * m + i] = expf(row[i] - top) / sum;'''
RMSNORM = '''float sum = 0;
  for (long long i = threadIdx.x; i < m; i += kThreads) sum += row[i] * row[i];
  const float scale = 1.0f / sqrtf(block_sum(sum, part) / m + 1e-6f);
  for (long long i = threadIdx.x; i < m; i += kThreads) out[blockIdx.x * m + i] = row[i] * scale * weight[i];'''
MEAN = '''float sum = 0;
  for (long long i = threadIdx.x; i < m; i += kThreads) sum += row[i] >= 0 ? row[i] : 0.1f * row[i];
  sum = block_sum(sum, part);
  if (threadIdx.x == 0) out[blockIdx.x] = tanhf(sum / m * 3.0f);'''
LAYERNORM = '''float sum = 0, squares = 0;
  for (long long i = threadIdx.x; i < m; i += kThreads) sum += row[i];
  const float mean = block_sum(sum, part) / m;
  for (long long i = threadIdx.x; i < m; i += kThreads) squares += (row[i] - mean) * (row[i] - mean);
  const float scale = 1.0f / sqrtf(block_sum(squares, part) / m + 1e-5f);
  for (long long i = threadIdx.x; i < m; i += kThreads)
    out[blockIdx.x * m + i] = (row[i] - mean) * scale * weight[i] + bias[i];'''
GELU = "const float v = {}; const float g = 0.5f * v * (1.0f + erff(v * 0.70710678f));"
TANH_GELU = '''const float v = x[i];
    out[i] = 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));'''
COLUMNS = '''float sum = 0;
    const float* column = x + i / m * steps * m + i % m;
    for (long long s = 0; s < steps; ++s) sum += column[s * m];
    out[i] = sum;'''


def plan_of(args: list[Json], grid: list[object], block: int, symbols: dict[str, str] | None = None,
            bind: dict[str, str] | None = None) -> Json:
    out = {"cutegen": 1, "dialect": "cuda", "arch": ["sm_80+"], "sources": ["kernel.cu"], "symbols": symbols or {},
           "steps": [{"kernel": "kernel", "grid": grid, "block": [block, 1, 1], "args": args}]}
    if bind:
        out["bind"] = bind
    return out


def tensors(*names: str) -> list[Json]:
    return [{"tensor": n} for n in names]


def numbers(*expressions: str) -> list[Json]:
    return [{"i64": e} for e in expressions]


def pointwise(body: str, inputs: list[str], n: str, m: str, threads: int, bind: dict[str, str] | None = None,
              more: str = "", values: Sequence[str] = ()) -> Source:
    params = ", ".join(IN + i for i in inputs)
    source = HEAD.format(threads=threads) + POINTWISE.format(params=params, body=body, more=more)
    plan = plan_of(tensors(*inputs, "out") + numbers(*values, n, m),
                   [f"min(65535,max(1,ceil_div({n},{threads})))", 1, 1], threads, bind=bind)
    return source, plan


def by_row(body: str, inputs: list[str], rows: str, m: str, threads: int, bind: dict[str, str] | None = None) -> Source:
    params = ", ".join(IN + i for i in inputs)
    source = HEAD.format(threads=threads) + ROW.format(params=params, body=body)
    return source, plan_of(tensors(*inputs, "out") + numbers(m), [rows, 1, 1], threads, bind=bind)


def product(inputs: list[str], params: list[str], sizes: tuple[str, str, str], load: str, finish: str, unroll: int,
            batches: str | int = 1, bind: dict[str, str] | None = None) -> Source:
    source = PRODUCT.format(params=", ".join(IN + p for p in params), load=load, finish=finish, unroll=unroll)
    rows, columns, depth = sizes
    return source, plan_of(tensors(*inputs, "out") + numbers(rows, columns, depth),
                           [f"ceil_div({columns},32)", f"ceil_div({rows},32)", batches], 256, bind=bind)


def plain(name: str, edit: int) -> Source:
    """Source and plan of a plain CUDA program for a shipped task, in one of its edits (0, 1)."""
    threads = (256, 128)[edit]
    unroll = (8, 32)[edit]
    if name == "relu":
        return pointwise("out[i] = fmaxf(x[i], 0.0f);", ["x"], "size(x)", "1", threads)
    if name == "gelu_bias":
        body = GELU.format("x[i] + bias[i % m]") + " out[i] = g * 0.5f + residual[i];"
        return pointwise(body, ["x", "residual", "bias"], "size(x)", "dim(x,1)", threads)
    if name == "sum_middle":
        return pointwise(COLUMNS, ["x"], "dim(x,0)*dim(x,2)", "dim(x,2)", threads, more="long long steps, ",
                         values=["dim(x,1)"])
    if name == "softmax":
        return by_row(SOFTMAX, ["x"], "dim(x,0)", "dim(x,1)", 2 * threads)
    if name == "rmsnorm":
        return by_row(RMSNORM, ["x", "weight"], "dim(x,0)", "dim(x,1)", 2 * threads)
    if name == "mean_scale":
        return by_row(MEAN, ["x"], "dim(x,0)", "dim(x,1)", 2 * threads)
    if name == "bmm_transposed":
        return product(["q", "k"], ["a", "c"], ("dim(q,1)", "dim(k,1)", "dim(q,2)"), BY_ROWS,
                       "out[(b * rows + i) * columns + j] = sum[q] * 0.088f;", unroll, "dim(q,0)")
    finish = GELU.format("sum[q] + bias[j]") + " out[i * columns + j] = g * 0.5f + residual[i * columns + j];"
    return product(["x", "fc_weight", "fc_bias", "residual"], ["a", "c", "bias", "residual"],
                   ("dim(x,0)", "dim(fc_weight,0)", "dim(x,1)"), BY_ROWS, finish, unroll,
                   bind={"fc_weight": "fc.weight", "fc_bias": "fc.bias"})


def plain_of_kernelbench(stem: str) -> Source:
    if stem == "88_MinGPTNewGelu":
        return pointwise(TANH_GELU, ["x"], "size(x)", "1", 256)
    if stem == "12_Matmul_with_diagonal_matrices_":
        return pointwise("out[i] = A[i / m] * B[i];", ["A", "B"], "size(B)", "dim(B,1)", 256)
    if stem == "40_LayerNorm":
        return by_row(LAYERNORM, ["x", "weight", "bias"], "dim(x,0)", "dim(x,1)*dim(x,2)*dim(x,3)", 1024,
                      bind={"weight": "ln.weight", "bias": "ln.bias"})
    return product(["A", "B"], ["a", "c"], ("dim(A,0)", "dim(B,1)", "dim(A,1)"), BY_COLUMNS,
                   "out[i * columns + j] = sum[q];", 8)


def program(source: str, plan: Json) -> Json:
    return {"schema": "cutegen.program.v1", "sources": {"kernel.cu": source}, "plan": plan}


def recipe(folder: str | Path) -> Json:
    folder = Path(folder)
    plan = json.loads((folder / "plan.json").read_text())
    return {"schema": "cutegen.program.v1", "plan": plan,
            "sources": {name: (folder / name).read_text() for name in plan["sources"]}}


def edited(base: Json, edit: int) -> Json:
    """A recipe's program with a small edit, which makes its machine code new."""
    source = base["sources"]["kernel.cu"]
    if edit:
        source = re.sub(r"constexpr int (kItems|kUnroll) = (\d+);",
                        lambda m: f"constexpr int {m[1]} = {2 * int(m[2])};",
                        source)
    if edit and source == base["sources"]["kernel.cu"]:
        source += 'extern "C" __global__ void another(int* p) { *p = 7; }\n'
    return {**base, "sources": {"kernel.cu": source}}


POINTWISE_TASKS = ("relu", "gelu_bias", "sum_middle")
ROW_TASKS = ("softmax", "rmsnorm", "mean_scale")
PRODUCT_TASKS = ("bmm_transposed", "linear_gelu")
OUTSIDE = "out[i + (1ll << 40)] = 1.0f;"


def wrong(tasks: Path, recipes: dict[str, Json]) -> list[Json]:
    relu, gelu = plain("relu", 0), plain("gelu_bias", 0)
    soft, norm = plain("softmax", 0), plain("rmsnorm", 0)
    light = recipes["relu"]
    broken = {**light, "sources": {"kernel.cu": light["sources"]["kernel.cu"].replace(
        "using namespace cute;", "using namespace cute;\nauto layout = make_layout(Shape<int, void>{});")}}
    rows: list[tuple[str, str, Source | Json, str]] = [
        ("compile_error", "relu", (relu[0].replace("fmaxf(", "fmaxg("), relu[1]), "fmaxg"),
        ("compile_error_light", "relu", broken, "error"),
        ("wrong_values", "gelu_bias", (gelu[0].replace("0.70710678f", "0.7f"), gelu[1]), ""),
        ("wrong_values_rows", "rmsnorm", (norm[0].replace("i < m", "i < m - 1", 1), norm[1]), ""),
        ("outside", "relu", (relu[0].replace("out[i] = ", OUTSIDE + " out[i] = "), relu[1]), "out"),
        ("outside_rows", "softmax", (soft[0].replace("expf(row[i] - top) / sum", "row[i + (1ll << 40)]"), soft[1]),
         "out"),
        ("never_written", "gelu_bias", (gelu[0].replace("i < n;", "i < n - 1;"), gelu[1]), ""),
        ("never_written_rows", "softmax",
         (soft[0].replace("m + i] = ", "m + i] = i == m - 1 ? out[blockIdx.x * m + i] : "),
                                          soft[1]), ""),
    ]
    return [{"name": name, "task": tasks / f"{task}.py", "kind": "wrong", "expect": ("failed", word),
             "program": made if isinstance(made, dict) else program(*made)} for name, task, made, word in rows]


LOSERS = ("bmm_transposed", "linear_gelu", "sum_middle", "mean_scale", "softmax", "relu")


def losers(tasks: Path, recipes: dict[str, Json]) -> list[Json]:
    """Slower programs (few CTAs, a wait, a naive product), each timed alternately with the recipe's as incumbent."""
    out = []
    for name in LOSERS:
        source, plan = plain(name, 1)
        if name in POINTWISE_TASKS:  # a few CTAs do all the work
            plan["steps"][0]["grid"][0] = "132"
        elif name in ROW_TASKS:
            source = source.replace("const float* row = x", "__nanosleep(20000);\n  const float* row = x")
        out.append({"name": f"loser_{name}", "task": tasks / f"{name}.py", "kind": "loser", "expect": ("correct", ""),
                    "program": program(source, plan), "against": recipes[name]})
    return out


def all_programs(tasks: Path, recipes: dict[str, Json]) -> list[Json]:
    """The list, in a fixed order in which kinds and tasks alternate. recipes: by the task's name."""
    out = []
    for edit in (0, 1):
        for name in POINTWISE_TASKS + ROW_TASKS + PRODUCT_TASKS:
            out.append({"name": f"plain_{name}_{edit}", "task": tasks / f"{name}.py", "kind": "plain",
                        "expect": ("correct", ""), "program": program(*plain(name, edit))})
            out.append({"name": f"recipe_{name}_{edit}", "task": tasks / f"{name}.py",
                        "kind": "product" if name in PRODUCT_TASKS else "light", "expect": ("correct", ""),
                        "program": edited(recipes[name], edit)})
    bad = wrong(tasks, recipes)
    for i, entry in enumerate(bad):
        out.insert(4 * i + 3, entry)
    return out + losers(tasks, recipes)
