// SPDX-License-Identifier: Apache-2.0
// Added to kernels/matmul/persistent.cu if CTAs share the last round's tiles. The emitted kernel omits this heading.

// Adds the parts of each tile of the last round in a fixed order, then does the work after the product.
extern "C" __global__ void __launch_bounds__(256)
{{name}}({{params}},
        {{sizes}}) {
  constexpr int kVectors = kTileM * kTileN / kVector;  // of a tile
  const int index = blockIdx.x * 256 + threadIdx.x;
  const int tiles_m = ceil_div(m_size, kTileM), tiles_n = ceil_div(n_size, kTileN);
  const int at = whole + index / kVectors, within = index % kVectors;
  const auto tile = cutegen::cluster_tile<1>(at % (tiles_m * tiles_n), tiles_m, tiles_n);
  const int batch = at / (tiles_m * tiles_n);
  const int m = tile.m * kTileM + within / (kTileN / kVector);
  const int n = tile.n * kTileN + within % (kTileN / kVector) * kVector;
  if (m >= m_size || n >= n_size || batch >= batches) return;
  Tensor parts = make_tensor(make_gmem_ptr(partial + int64_t(at - whole) * pieces * kTileM * kTileN),
                             make_layout(make_shape(Int<kVector>{}, Int<kVectors>{}, pieces),
                                         make_stride(Int<1>{}, Int<kVector>{}, Int<kTileM * kTileN>{})));
  asm volatile("griddepcontrol.wait;" ::: "memory");  // until the product is complete
  float product[kVector] = {};
  for (int s = 0; s < pieces; s += 4) {
    float part[4][kVector] = {};
    CUTE_UNROLL
    for (int i = 0; i < 4; ++i)
      if (s + i < pieces) cutegen::load(parts(_, within, s + i), part[i]);
    CUTE_UNROLL
    for (int i = 0; i < 4 * kVector; ++i) product[i % kVector] += part[i / kVector][i % kVector];
  }
{{tensors}}
{{finish}}
}
