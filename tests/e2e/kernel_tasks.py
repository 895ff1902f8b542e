# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=300 cost=50
"""Tasks that are CUDA kernels, from the command line: a kernel, its side file and a PyTorch reference."""
from __future__ import annotations

import json
import os

import harness
from harness import Json

TASKS = harness.ROOT / "tasks/astra"
KERNEL = """#include <cuda_fp16.h>

__global__ void add(const float* x, float* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    out[i] = fmaxf(x[i], 0.0f) + 1.0f;
}
"""
SIDE = """reference = "reference.py"

[kernel]
name = "add"
args = ["x", "out", { i32 = "size(x)" }]
grid = "min(ceil_div(size(x), 256), 8)"
block = 256
"""
# The same kernel as a PyTorch extension: a template and the function that launches it.
EXTENSION = """#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

#define CHECK_INPUT(x) TORCH_CHECK(x.is_cuda(), #x " must be on the GPU")

namespace ours {
template <typename scalar_t, int THREADS>
__global__ void __launch_bounds__(THREADS) add_kernel(scalar_t* out, const scalar_t* x, int n) {
  for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS)
    out[i] = fmaxf(x[i], 0.0f) + 1.0f;
}
}  // namespace ours

torch::Tensor add(torch::Tensor x) {
  CHECK_INPUT(x);
  auto out = torch::empty_like(x);
  constexpr int kThreads = 256;
  const int n = x.numel();
  dim3 grid(std::min((n + kThreads - 1) / kThreads, 8));
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "add", [&] {
    ours::add_kernel<scalar_t, kThreads><<<grid, kThreads, 0, stream>>>(
        out.data_ptr<scalar_t>(), x.data_ptr<scalar_t>(), n);
  });
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("add", &add); }
"""
LAUNCHER = """reference = "reference.py"

[kernel]
launcher = "add"
"""
# How tasks/astra/NAME_vectors.cu is launched.
VECTORS: dict[str, Json] = {
    "silu_and_mul": {"symbols": {"hidden": "dim(out,1)"}, "grid": ["dim(x,0)"], "requires": ["hidden % 8 == 0"],
                     "block": ["min(max(hidden/8, 32), 1024)"],
                     "args": [{"tensor": "out"}, {"tensor": "x"}, {"i32": "hidden"}]},
    "fused_add_rmsnorm": {"symbols": {"hidden": "dim(x,1)"}, "grid": ["dim(x,0)"], "requires": ["hidden % 8 == 0"],
                          "block": ["min(ceil_div(hidden, 256)*32, 1024)"], "shared_bytes": "hidden*4",
                          "args": [{"tensor": "x"}, {"tensor": "residual"}, {"tensor": "weight"}, {"i32": "hidden"},
                                   {"f32": "attr(eps)"}]},
    "merge_attn_states_lse": {"symbols": {"states": "dim(v_a,0)*dim(v_a,1)"}, "requires": ["dim(v_a,2) % 8 == 0"],
                              "block": [128], "grid": ["ceil_div(states*dim(v_a,2)/8, 128)"],
                              "args": [*({"tensor": t} for t in ("out.0", "out.1", "v_a", "s_a", "v_b", "s_b")),
                                       {"i32": "dim(v_a,2)"}, {"i32": "states"}]},
}


def vectors(name: str) -> tuple[str, Json]:
    """The source and the plan of a shipped task's production-grade kernel."""
    launch = VECTORS[name]
    step = {key: launch[key] for key in ("grid", "block", "args", "shared_bytes") if key in launch}
    plan: Json = {"cutegen": 1, "dialect": "cuda", "sources": ["kernel.cu"], "symbols": launch["symbols"],
            "requires": launch["requires"], "steps": [{"kernel": name, **step}]}
    return (TASKS / f"{name}_vectors.cu").read_text(), plan


class KernelTasks(harness.Case):
    def task(self, kernel: str = KERNEL, side: str = SIDE) -> str:
        self.write("reference.py", harness.ADD)
        self.write("add.toml", side)
        return self.write("add.cu", kernel)

    def test_a_run_goes_on_from_the_source_kernel(self) -> None:
        file = self.task()
        result = self.cutegen("optimize", file, "--evaluations", 3, "--out", "best", "--runs", "runs")
        self.assert_code(result, 0)
        self.assertRegex(result.out, r"\nc1 .* better .* the source kernel 'add'\n")
        self.assertRegex(result.out, r"\nbest .*x the source kernel")
        shown = self.cutegen("show", "last", "--runs", "runs", "--json").json()
        origins = [step["origin"] for step in shown["steps"]]
        self.assertEqual(origins, ["source", "recipe:elementwise", "recipe:elementwise"])
        os.remove(file)  # the journal has all that a replay needs
        self.assert_code(self.cutegen("optimize", "--replay", "last", "--runs", "runs"), 0)

    def test_a_kernel_that_differs_from_its_reference_ends_the_run(self) -> None:
        file = self.task(KERNEL.replace("+ 1.0f", "+ 2.0f"))
        result = self.cutegen("optimize", file, "--out", "best", "--runs", "runs")
        self.assert_code(result, 3)
        self.assertIn("the source kernel does not agree with its reference: ", result.out)
        self.assert_code(self.cutegen("eval", file, "--up-to", "correctness"), 3)

    def test_what_is_refused(self) -> None:
        for kernel, side, *words in (
            (KERNEL, SIDE.replace("reference.py", "none.py"), "there is no reference", "add.toml:1:13"),
            (KERNEL, SIDE.replace('reference = "reference.py"', ""), "the kernel has no reference", "add.toml",
             'add reference = "FILE.py", a PyTorch module'),
            (KERNEL, SIDE.replace('"add"', '"ad"'), "add.cu has no kernel 'ad'", "did you mean 'add'?"),
            (KERNEL, SIDE.replace("i32", "f32"), "f32, the kernel's parameter is i32", "add.toml:5:21"),
            (KERNEL.replace("__global__", "template <class T> __global__"), SIDE, "'add' is a template", "add.cu:3:"),
            (KERNEL.replace("cuda_fp16.h", "torch/extension.h"), SIDE, "is not allowed", "copy what the kernel uses"),
        ):
            with self.subTest(words[0]):
                self.assert_error(self.cutegen("describe", self.task(kernel, side)), 2, *words)

    def test_a_launcher_gives_the_launch(self) -> None:
        file = self.task(EXTENSION, LAUNCHER)
        described = self.cutegen("describe", file)
        self.assert_code(described, 0)
        self.assertIn("add.cu: add_kernel(out, x, size(x)), grid [min((size(x) + 256 - 1)/256, 8), 1, 1], "
                      "block [256, 1, 1]", described.out)
        result = self.cutegen("optimize", file, "--evaluations", 2, "--out", "best", "--runs", "runs")
        self.assert_code(result, 0)
        self.assertRegex(result.out, r"\nc1 .* better .* the source kernel 'add_kernel'\n")
        exported = self.cutegen("export", "last", "--runs", "runs", "--to", "source", "--out", "drop")
        self.assert_code(exported, 0)
        written = (self.folder / "drop/add.cu").read_text()
        self.assertIn("add_kernel_body<float, 256>(out, x, n)", written)
        self.assertIn("&::ours::add_kernel)", written)

    def test_launchers_that_are_refused(self) -> None:
        replace = r"write the launch into \[kernel\] of the side file instead: name, args, grid, block"
        for kernel, side, *words in (
            (EXTENSION, LAUNCHER.replace('"add"', '"ad"'), "has no host function 'ad'", "add.toml:4:12"),
            (EXTENSION.replace("  dim3", "  for (int i = 0; i < 3; ++i) {}\n  dim3"), LAUNCHER,
             "cutegen does not run host code such as 'for'", "add.cu:19:3", replace),
            (EXTENSION.replace("std::min(", "blocks_for("), LAUNCHER, "cutegen cannot see what 'blocks_for' returns",
             "add.cu:19:13", r'write grid = "..." into \[kernel\] of the side file'),
            (EXTENSION.replace("<scalar_t, kThreads>", "<scalar_t, n>"), LAUNCHER,
             "the template argument 'n' is no constant", "add.cu:22:"),
            (EXTENSION.replace("torch::Tensor x)", "torch::Tensor y)"), LAUNCHER, "cutegen does not know the value"),
            (EXTENSION, LAUNCHER + 'args = ["x", "out"]\n', "has 1 parameter, the side file gives 2", "add.toml:5:8"),
        ):
            with self.subTest(words[0]):
                self.assert_error(self.cutegen("describe", self.task(kernel, side)), 2, *words)

    def test_a_shipped_task(self) -> None:
        described = self.cutegen("describe", TASKS / "fused_add_rmsnorm_vectors.cu")
        self.assert_code(described, 0)
        self.assertIn("fused_add_rmsnorm(x, residual, weight, hidden, attr(eps))", described.out)
        result = self.cutegen("eval", TASKS / "silu_and_mul_vectors.cu", "--json", timeout=200)
        self.assert_code(result, 0)
        verdict = result.json()["verdicts"][0]["verdict"]
        self.assertEqual(verdict["status"], "correct", json.dumps(verdict["feedback"], indent=1))
        self.assertEqual(len(verdict["timing"]["shapes"]), 6)


if __name__ == "__main__":
    harness.main()
