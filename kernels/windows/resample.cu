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
  // Neighbouring threads compute neighbouring results. A thread's results are at the same place of
  // several channels, which may belong to several images.
  const int planes = int(out_n * out_c), groups = ceil_div(planes, kItems);
  const int64_t all = groups * out0 * out1 * out2;
  const int64_t index = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= all) return;
#if {{last}}
  const auto place = cutegen::coordinates(
      int(index), make_shape(groups, int(out2), int(out1), int(out0)), inverse_g, inverse2, inverse1);
  const int group = get<0>(place), p2 = get<1>(place), p1 = get<2>(place), p0 = get<3>(place);
#else
  const auto place = cutegen::coordinates(
      int(index), make_shape(int(out2), int(out1), int(out0), groups), inverse2, inverse1, inverse0);
  const int p2 = get<0>(place), p1 = get<1>(place), p0 = get<2>(place), group = get<3>(place);
#endif
  const cutegen::{{map0}} from0(p0, int(in0), int(out0));
  const cutegen::{{map1}} from1(p1, int(in1), int(out1));
  const cutegen::{{map2}} from2(p2, int(in2), int(out2));
  // Whether some element is outside the input is known at compile time for most axes.
  const auto outside = [](auto const& axis, int at) {
    return !cute::remove_cvref_t<decltype(axis)>::kInside && at < 0;
  };
  CUTE_UNROLL
  for (int i = 0; i < kItems; ++i) {
    // Results beyond the last one are computed, but not stored, so that loads need no branch.
    const int last = planes - 1, wanted = group + i * groups;
    const auto image = cutegen::coordinates(cute::min(wanted, last),
                                            make_shape(int(out_c), int(out_n)), inverse_c);
    const int channel = get<0>(image), n = get<1>(image);
    const cutegen::{{map_n}} from_n(n, int(batches), int(out_n));
    const cutegen::{{map_c}} from_c(channel, int(channels), int(out_c));
    const int at_n = from_n.at(0), at_c = from_c.at(0);
    const bool no_plane = outside(from_n, at_n) || outside(from_c, at_c);
    const {{input_type}}* plane = {{input}} + at_n * in_n + at_c * in_c;
    float window = {{initial}};
    CUTE_UNROLL
    for (int i0 = 0; i0 < from0.count(); ++i0) {
      CUTE_UNROLL
      for (int i1 = 0; i1 < from1.count(); ++i1) {
        float row = {{initial}};
        const int at0 = from0.at(i0), at1 = from1.at(i1);
        const bool no_line = no_plane || outside(from0, at0) || outside(from1, at1);
        const int64_t line = at0 * in_s0 + at1 * in_s1;
        CUTE_UNROLL
        for (int i2 = 0; i2 < from2.count(); ++i2) {
          const int at2 = from2.at(i2);
          float value = {{fill}};
          if (!no_line && !outside(from2, at2))
            value = cutegen::convert<float>(plane[line + at2 * in_s2]);
          {{accumulate_row}}
        }
        {{accumulate}}
      }
    }
{{divide}}    if (wanted <= last) {
{{finish}}
    }
  }
}
