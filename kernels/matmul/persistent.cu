// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// out(m, n) = finish(sum over k of {{a}}(m, k) * {{b}}(n, k)). As many CTAs as the GPU holds compute tiles of
// kTileM x kTileN, one after the other. A producer loads tiles of both operands, kTileK deep, while
// consumers multiply. Elements beyond an edge read as zero; results beyond an edge are not written.
// The plan sets USE_TMA: 1 if tensor maps can describe both operands. It sets VECTOR_*: smaller if a
// size is not a multiple of the vector.
#include <cute/tensor.hpp>
#include <cutegen/gemm_wgmma.cuh>
#include <cutegen/math.cuh>

using namespace cute;

constexpr int kTileM = {{tile_m}};
constexpr int kTileN = {{tile_n}};
constexpr int kTileK = {{tile_k}};
constexpr int kStages = {{stages}};
constexpr int kCluster = {{cluster}};  // CTAs that share tiles of {{b}}
constexpr int kVector = {{vector_out}};

{{constants}}
using Gemm = {{gemm}};

{{compute}}

extern "C" __global__ void __launch_bounds__(Gemm::kThreads, Gemm::kResident)
{{name}}({{map_params}},
       {{params}},
       {{sizes}}) {
  extern __shared__ __align__(1024) uint4 shared[];
  auto& storage = *reinterpret_cast<typename Gemm::Storage*>(shared);
  const int tiles_m = ceil_div(m_size, kTileM), {{tiles_n}}
  const int tiles = ceil_div(tiles_m, kCluster) * kCluster * tiles_n;
  Gemm gemm;
  gemm.begin(storage);
{{prologue}}  if (gemm.produces()) {
    gemm.start_loading();
{{items}}
#if {{use_tma}}
      {{run_maps}};
#else
      Tensor rows = make_tensor(make_gmem_ptr({{a}}{{a_batch}}),
                                make_layout(make_shape(m_size, k_size), {{a_stride}}));
{{columns}}
      gemm.load(rows, columns, tile, first, last, storage);
#endif
    }
  } else {
    gemm.start_multiplying();
{{items}}
{{turn}}      gemm.multiply(first, last, storage);
{{part}}{{results}}
    }
  }
  gemm.end();
}
{{combine}}
