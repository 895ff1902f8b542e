// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// Pooling as a streaming kernel. A thread computes kItems results; neighbouring threads compute
// neighbours, so the L1 cache serves their overlapping windows.
#include <cute/tensor_impl.hpp>
#include <cutegen/math.cuh>
#include <cutegen/vec.cuh>

using namespace cute;

constexpr int kThreads = {{threads}};
constexpr int kItems = {{rows}};
{{constants}}

// Does the work after the pooling for one element, in float32.
{{compute}}

extern "C" __global__ void __launch_bounds__(kThreads)
{{name}}({{params}},
{{sizes}}) {
  const int64_t pixels = out0 * out1 * out2, all = batches * channels * pixels;
  CUTE_UNROLL
  for (int i = 0; i < kItems; ++i) {
    const int64_t index = (int64_t(blockIdx.x) * kItems + i) * kThreads + threadIdx.x;
    if (index >= all) continue;
    const int64_t image = index / pixels, n = image / channels, channel = image - n * channels;
    const int pixel = int(index - image * pixels);
    const int p0 = pixel / int(out1 * out2), p1 = pixel / int(out2) % int(out1),
              p2 = pixel % int(out2);
    const int start0 = p0 * kStride0 - kPadding0, start1 = p1 * kStride1 - kPadding1,
              start2 = p2 * kStride2 - kPadding2;
    const {{input_type}}* plane = {{input}} + n * in_n + channel * in_c;
    float window = {{initial}};
    [[maybe_unused]] int count = 0;
    CUTE_UNROLL
    for (int k0 = 0; k0 < kKernel0; ++k0)
      CUTE_UNROLL
      for (int k1 = 0; k1 < kKernel1; ++k1)
{{unroll}}
        for (int k2 = 0; k2 < kKernel2; ++k2) {
          const int at0 = start0 + k0 * kDilation0, at1 = start1 + k1 * kDilation1,
                    at2 = start2 + k2 * kDilation2;
          if (at0 < 0 || at1 < 0 || at2 < 0 || at0 >= in0 || at1 >= in1 || at2 >= in2) continue;
          const float value = cutegen::convert<float>(
              plane[at0 * in_s0 + at1 * in_s1 + at2 * in_s2]);
          {{accumulate}}
          ++count;
        }
{{divide}}{{finish}}
  }
}
