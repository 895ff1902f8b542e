// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// out(m, n) = finish(sum over k of {{a}}(m, k) * {{b}}(n, k)). Each CTA computes a tile of kTileM x kTileN.
// Tiles of both operands pass through shared memory, kTileK deep. Elements beyond an edge read as
// zero; results beyond an edge are not written. Operands keep their own strides, so a transposed
// operand only needs another load path.
// The plan sets VECTOR_*: 1 if a size is not a multiple of the vector.
#include <cute/tensor.hpp>
#include <cutegen/gemm_{{engine}}.cuh>
#include <cutegen/math.cuh>

using namespace cute;

constexpr int kTileM = {{tile_m}};
constexpr int kTileN = {{tile_n}};
constexpr int kTileK = {{tile_k}};
constexpr int kThreads = {{threads}};
constexpr int kStages = {{stages}};
{{resident}}
constexpr int kVector = {{vector_out}};

using Gemm = {{gemm}};

{{compute}}

extern "C" __global__ void __launch_bounds__(kThreads, kResident)
{{name}}({{params}},
       {{sizes}}) {
  extern __shared__ {{align}}uint4 shared[];
  auto& storage = *reinterpret_cast<typename Gemm::Storage*>(shared);
  const int tiles_m = ceil_div(m_size, kTileM), {{tiles_n}}
{{tile}}
  const int batch = blockIdx.z;
{{steps}}
  Tensor rows = make_tensor(make_gmem_ptr({{a}}{{a_batch}}),
                            make_layout(make_shape(m_size, k_size), {{a_stride}}));
{{columns}}
  Gemm gemm;
{{run}}

{{results}}
}
{{combine}}
