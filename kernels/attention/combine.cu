// SPDX-License-Identifier: Apache-2.0
// Added to kernels/attention/fused.cu if several CTAs share the keys. The emitted kernel omits this heading.

// Adds the parts of the keys in a fixed order, weighted by their sums of exponentials.
extern "C" __global__ void __launch_bounds__(256)
{{name}}(const float* __restrict__ partial, const float* __restrict__ exponents,
         {{out_type}}* __restrict__ {{result}}, int rows, int heads, int batches, int64_t out_batch,
         int64_t out_head, int64_t out_row, int64_t out_along) {
  const int64_t lines = int64_t(heads) * batches * rows;
  const int64_t i = blockIdx.x * int64_t(256) + threadIdx.x, line = i / kValueDim;
  if (line >= lines) return;
  const int column = int(i % kValueDim), row = int(line % rows);
  const int head = int(line / rows % heads), batch = int(line / rows / heads);
  float highest = -INFINITY;
  for (int s = 0; s < kSplit; ++s) highest = fmaxf(highest, exponents[s * lines + line]);
  const float base = highest == -INFINITY ? 0.0f : highest;
  float sum = 0, total = 0;
  for (int s = 0; s < kSplit; ++s) {
    const float weight = exp2f(exponents[s * lines + line] - base);
    sum += weight * partial[(s * lines + line) * kValueDim + column];
    total += weight;
  }
  const float value = total == 0.0f && {{safe}} ? 0.0f : sum / total;
  {{result}}[batch * out_batch + head * out_head + row * out_row + column * out_along] =
      static_cast<{{out_type}}>(value);
}
