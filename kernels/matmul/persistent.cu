// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// out(m, n) = finish(sum over k of {{a}}(m, k) * {{b}}(n, k)). The grid has as many CTAs as the GPU can
// hold. Each CTA computes tiles of kTileM x kTileN, one after the other. A producer loads tiles of
// both operands, kTileK deep, while consumers multiply. Elements beyond an edge read as
// zero; results beyond an edge are not written.
{{plan}}
#include <cute/tensor.hpp>
#include <cutegen/gemm_{{engine}}.cuh>
#include <cutegen/math.cuh>

using namespace cute;

constexpr int kTileM = {{tile_m}};
constexpr int kTileN = {{tile_n}};
constexpr int kTileK = {{tile_k}};
constexpr int kStages = {{stages}};
{{cluster}}constexpr int kVector = {{vector_out}};

{{constants}}using Gemm = {{gemm}};

{{compute}}

extern "C" __global__ void __launch_bounds__(Gemm::kThreads, Gemm::kResident)
{{name}}({{map_params}}{{params}},
       {{sizes}}) {
{{gate}}  extern __shared__ __align__(1024) uint4 shared[];
  auto& storage = *reinterpret_cast<typename Gemm::Storage*>(shared);
  const int tiles_m = ceil_div(m_size, kTileM), {{tiles_n}}
  const int tiles = {{tiles}};
  Gemm gemm;
  gemm.begin(storage);
{{prologue}}  if (gemm.produces()) {
    gemm.start_loading();
{{items}}
{{load}}
    }
{{loaded}}  } else {
    gemm.start_multiplying();
{{items}}
{{turn}}      gemm.multiply(first, last, storage);
{{part}}{{repair}}{{results}}
    }
  }
{{end}}}
{{combine}}
