// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// Interpolation: along each axis, the place of a result says which elements of the input it reads.
// A thread computes kTall results below one another, which share input lines, at the same place of
// kItems channels. The plan sets {{last}}: 1 if neighbours along the channels are neighbours in
// memory.
#include <cute/tensor_impl.hpp>
#include <cutegen/math.cuh>
#include <cutegen/resample.cuh>
#include <cutegen/vec.cuh>

using namespace cute;

constexpr int kThreads = {{threads}};
constexpr int kItems = {{rows}};
constexpr int kTall = {{tall}};
{{scales}}

using Axis0 = cutegen::{{map0}};
using Axis1 = cutegen::Neighbours<cutegen::{{map1}}, kTall>;
using Axis2 = cutegen::{{map2}};

// Does the work after the interpolation for one element, in float32.
{{compute}}

extern "C" __global__ void __launch_bounds__(kThreads)
{{name}}({{params}},
{{sizes}}) {
  // Neighbouring threads compute neighbouring results. A thread's channels may belong to several
  // images.
  const int planes = int(out_n * out_c), groups = ceil_div(planes, kItems);
  const int bands = ceil_div(int(out1), kTall);
  const int64_t all = groups * out0 * bands * out2;
  const int64_t index = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= all) return;
#if {{last}}
  const auto place = cutegen::coordinates(
      int(index), make_shape(groups, int(out2), bands, int(out0)), inverse_g, inverse2, inverse1);
  const int group = get<0>(place), p2 = get<1>(place), band = get<2>(place), p0 = get<3>(place);
#else
  const auto place = cutegen::coordinates(
      int(index), make_shape(int(out2), bands, int(out0), groups), inverse2, inverse1, inverse0);
  const int p2 = get<0>(place), band = get<1>(place), p0 = get<2>(place), group = get<3>(place);
#endif
  const Axis0 from0(p0, int(in0), int(out0));
  const Axis1 from1(band * kTall, int(in1), int(out1));
  const Axis2 from2(p2, int(in2), int(out2));
  // Where the elements lie in a plane; the plan requires that 32 bits count them.
  int elements[Axis0::count()][Axis1::kSlots][Axis2::count()];
  CUTE_UNROLL
  for (int i0 = 0; i0 < Axis0::count(); ++i0)
    CUTE_UNROLL
    for (int i1 = 0; i1 < Axis1::kSlots; ++i1)
      CUTE_UNROLL
      for (int i2 = 0; i2 < Axis2::count(); ++i2)
        elements[i0][i1][i2] =
            from0.at(i0) * int(in_s0) + from1.at(i1) * int(in_s1) + from2.at(i2) * int(in_s2);
  CUTE_UNROLL
  for (int i = 0; i < kItems; ++i) {
    // Results beyond the last one are computed, but not stored, so that loads need no branch.
    const int last = planes - 1, wanted = group + i * groups;
    const auto image = cutegen::coordinates(cute::min(wanted, last),
                                            make_shape(int(out_c), int(out_n)), inverse_c);
    const int channel = get<0>(image), n = get<1>(image);
    const {{input_type}}* plane = {{input}} + n * in_n + channel * in_c;
    float windows[kTall] = {};
    CUTE_UNROLL
    for (int i0 = 0; i0 < Axis0::count(); ++i0) {
      float lines[Axis1::kSlots];
      CUTE_UNROLL
      for (int i1 = 0; i1 < Axis1::kSlots; ++i1) {
        lines[i1] = 0.0f;
        CUTE_UNROLL
        for (int i2 = 0; i2 < Axis2::count(); ++i2)
          lines[i1] = fmaf(from2.weight(i2), cutegen::convert<float>(plane[elements[i0][i1][i2]]),
                           lines[i1]);
      }
      CUTE_UNROLL
      for (int r = 0; r < kTall; ++r)
        CUTE_UNROLL
        for (int k = 0; k < Axis1::count(); ++k)
          windows[r] = fmaf(from0.weight(i0) * from1.weight(r, k), lines[Axis1::slot(r, k)],
                            windows[r]);
    }
    CUTE_UNROLL
    for (int r = 0; r < kTall; ++r) {
      const int p1 = band * kTall + r;
      const float window = windows[r];
      if (wanted <= last && p1 < int(out1)) {
{{finish}}
      }
    }
  }
}
