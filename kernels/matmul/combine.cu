// SPDX-License-Identifier: Apache-2.0
// Added to kernels/matmul/tiled.cu if several CTAs share the depth. The emitted kernel omits this heading.

// Adds the parts of the depth in a fixed order, then does the work after the product.
extern "C" __global__ void __launch_bounds__(256)
{{name}}({{params}},
        {{sizes}}) {
  const int64_t row = int64_t(batches) * m_size, vectors = row * (n_size / kVector);
  const int64_t first = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (first >= vectors) return;
  const int n = int(first % (n_size / kVector)) * kVector;
  const int m = int(first / (n_size / kVector) % m_size);
  const int batch = int(first / (n_size / kVector) / m_size);
  Tensor parts = make_tensor(make_gmem_ptr(partial),
                             make_layout(make_shape(Int<kVector>{}, vectors, kSplit),
                                         make_stride(Int<1>{}, Int<kVector>{}, vectors * kVector)));
  float product[kVector] = {};
  for (int s = 0; s < kSplit; ++s) {
    float part[kVector];
    cutegen::load(parts(_, first, s), part);
    CUTE_UNROLL
    for (int v = 0; v < kVector; ++v) product[v] += part[v];
  }
{{tensors}}
{{finish}}
}
