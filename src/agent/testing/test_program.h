// SPDX-License-Identifier: Apache-2.0
// Fixtures for the agent's tests: a small program with two kernels, and a long program.
//
// Contract: for tests only. Some lines of the programs occur twice on purpose.
//
// Example: KernelProgram p = test_program();
#pragma once

#include "base/text.h"
#include "core/program.h"

namespace cutegen::agent {

inline const char* test_source() {
  return R"cu(// SPDX-License-Identifier: Apache-2.0
#include <cute/tensor.hpp>
#include <cutegen/vec.cuh>

using namespace cute;

constexpr int kThreads = 256;

struct Pair {
  float a, b;
};

// The sum of both.
__device__ float total(Pair p) {
  return p.a + p.b;
}

template <int V>
__device__ float widen(float x) {
  if (x > 0.0f) {
    return x * V;
  }
  return x;
}

extern "C" __global__ void __launch_bounds__(kThreads)
scale(const float* x, float* out, int n) {
  int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= n) return;
  float value = x[i];
  value = widen<1>(value);  // " { in a string is no brace
  out[i] = value + total({value, 1.0f});
}

extern "C" __global__ void finish(float* out, int n) {
  int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= n) return;
  out[i] = out[i] * 0.5f;
}
)cu";
}

inline KernelProgram test_program() {
  KernelProgram p;
  p.plan = parse_plan(R"json({
    "cutegen": 1, "sources": ["kernel.cu"], "symbols": {"n": "size(x)"},
    "defines": {"STAGES": 4},
    "steps": [
      {"id": "scale", "kernel": "scale", "grid": ["ceil_div(n,256)"], "block": [256],
       "args": [{"tensor": "x"}, {"tensor": "out"}, {"i32": "n"}]},
      {"id": "finish", "kernel": "finish", "grid": ["ceil_div(n,256)"], "block": [256],
       "args": [{"tensor": "out"}, {"i32": "n"}]}]
  })json")
               .value();
  p.sources["kernel.cu"] = test_source();
  return p;
}

// Returns test_program() with many short functions and one long function inserted before its
// functions.
inline KernelProgram long_program() {
  KernelProgram p = test_program();
  std::string helpers;
  for (int i = 0; i < 20; ++i)
    helpers += replace_all(
        "__device__ float stage_N(float x) {\n  float y = x * N.5f;\n  y = fmaxf(y, 0.0f);\n"
        "  return y + N.25f;\n}\n\n",
        "N", std::to_string(i));
  helpers += "__device__ float chain(float x) {\n";
  for (int i = 0; i < 40; ++i)
    helpers += "  x = stage_" + std::to_string(i % 20) + "(x);\n" + (i % 7 == 3 ? "\n" : "");
  helpers += "  return x;\n}\n\n";
  std::string& source = p.sources["kernel.cu"];
  source.insert(source.find("// The sum of both."), helpers);
  return p;
}

}  // namespace cutegen::agent
