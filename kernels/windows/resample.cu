// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// Resampling: along each axis, the place of a result says which elements of the input it reads. A
// thread computes kItems results. The plan sets {{last}}: 1 if neighbours along the channels are
// neighbours in memory.
#include <cute/tensor_impl.hpp>
#include <cutegen/math.cuh>
#include <cutegen/resample.cuh>
#include <cutegen/vec.cuh>

using namespace cute;

constexpr int kThreads = {{threads}};
constexpr int kItems = {{rows}};
{{scales}}

// Does the work after the resampling for one element, in float32.
{{compute}}

extern "C" __global__ void __launch_bounds__(kThreads)
{{name}}({{params}},
{{sizes}}) {
  const int64_t all = out_n * out_c * out0 * out1 * out2;
  CUTE_UNROLL
  for (int i = 0; i < kItems; ++i) {
    const int64_t index = (int64_t(blockIdx.x) * kItems + i) * kThreads + threadIdx.x;
    if (index >= all) continue;
#if {{last}}
    const auto place = cutegen::coordinates(
        int(index), make_shape(int(out_c), int(out2), int(out1), int(out0), int(out_n)), inverse_c,
        inverse2, inverse1, inverse0);
    const int channel = get<0>(place), p2 = get<1>(place), p1 = get<2>(place), p0 = get<3>(place);
#else
    const auto place = cutegen::coordinates(
        int(index), make_shape(int(out2), int(out1), int(out0), int(out_c), int(out_n)), inverse2,
        inverse1, inverse0, inverse_c);
    const int p2 = get<0>(place), p1 = get<1>(place), p0 = get<2>(place), channel = get<3>(place);
#endif
    const int n = get<4>(place);
    const cutegen::{{map_n}} from_n(n, int(batches), int(out_n));
    const cutegen::{{map_c}} from_c(channel, int(channels), int(out_c));
    const cutegen::{{map0}} from0(p0, int(in0), int(out0));
    const cutegen::{{map1}} from1(p1, int(in1), int(out1));
    const cutegen::{{map2}} from2(p2, int(in2), int(out2));
    const int at_n = from_n.at(0), at_c = from_c.at(0);
    const {{input_type}}* plane = {{input}} + at_n * in_n + at_c * in_c;
    float window = {{initial}};
    CUTE_UNROLL
    for (int i0 = 0; i0 < from0.count(); ++i0) {
      CUTE_UNROLL
      for (int i1 = 0; i1 < from1.count(); ++i1) {
        float row = {{initial}};
        const int64_t line = from0.at(i0) * in_s0 + from1.at(i1) * in_s1;
        CUTE_UNROLL
        for (int i2 = 0; i2 < from2.count(); ++i2) {
          const bool outside = (at_n | at_c | from0.at(i0) | from1.at(i1) | from2.at(i2)) < 0;
          const float value =
              outside ? {{fill}} : cutegen::convert<float>(plane[line + from2.at(i2) * in_s2]);
          {{accumulate_row}}
        }
        {{accumulate}}
      }
    }
{{divide}}{{finish}}
  }
}
