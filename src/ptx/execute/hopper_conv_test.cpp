// SPDX-License-Identifier: Apache-2.0
// Convolutions with tensor copies in im2col mode, compared with double precision; planted faults.
#include <map>
#include <memory>

#include "ptx/testing/hopper.h"

namespace cutegen::ptx {
namespace {

// The parameter `Conv` of conv.cu.
struct ConvShape {
  int out[3] = {1, 1, 1}, images, n, channels, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1},
      dilation[3] = {1, 1, 1}, padding[3] = {0, 0, 0};
};

struct Convolution {
  int spatial;
  int in[3] = {1, 1, 1};
  ConvShape shape;
  HopperData x, w, out;
  HopperProgram program;
};
using ConvolutionPtr = std::unique_ptr<Convolution>;

TensorMap pixels_of(const Convolution& p) {
  const ConvShape& s = p.shape;
  TensorMap m;
  m.type = TensorType::bf16, m.rank = uint32_t(p.spatial + 2), m.im2col = true, m.swizzle = 3;
  m.box = {64, 64, 1, 1, 1}, m.sizes[0] = uint64_t(s.channels);
  uint64_t stride = uint64_t(s.channels) * 2;
  for (int i = 0; i < p.spatial; ++i) {
    const size_t at = size_t(i) + 1;
    m.sizes[at] = uint64_t(p.in[i]), m.strides[at] = stride, m.steps[at] = uint32_t(s.stride[i]);
    m.lower[size_t(i)] = -s.padding[i];
    m.upper[size_t(i)] = s.padding[i] - (s.kernel[i] - 1) * s.dilation[i];
    stride *= uint64_t(p.in[i]);
  }
  m.sizes[m.rank - 1] = uint64_t(s.images), m.strides[m.rank - 1] = stride;
  return m;
}

// The sum, and the sum of the sizes of its terms, of one result.
std::pair<double, double> result_of(const Convolution& p, int pixel, int n) {
  const ConvShape& s = p.shape;
  int at[3];
  for (int i = 0; i < 3; ++i)
    at[i] = pixel % s.out[i] * s.stride[i] - s.padding[i], pixel /= s.out[i];
  double sum = 0, size = 0;
  for (int t = 0; t < s.kernel[0] * s.kernel[1] * s.kernel[2]; ++t) {
    const int tap[3] = {t % s.kernel[0], t / s.kernel[0] % s.kernel[1],
                        t / (s.kernel[0] * s.kernel[1])};
    int64_t from = pixel;  // the image
    bool inside = true;
    for (int i = 2; i >= 0; --i) {
      const int x = at[i] + tap[i] * s.dilation[i];
      inside = inside && x >= 0 && x < p.in[i];
      from = from * p.in[i] + x;
    }
    for (int c = 0; inside && c < s.channels; ++c) {
      const double term = p.x.values[size_t(from * s.channels + c)] *
                          p.w.values[size_t((t * s.n + n) * s.channels + c)];
      sum += term, size += std::abs(term);
    }
  }
  return {sum, size};
}

ConvolutionPtr convolution(int spatial, std::array<int, 3> in, ConvShape s) {
  auto p = std::make_unique<Convolution>();
  p->spatial = spatial;
  int pixels = s.images, inputs = s.images, taps = 1;
  for (int i = 0; i < spatial; ++i) {
    p->in[i] = in[size_t(i)];
    s.out[i] =
        (p->in[i] + 2 * s.padding[i] - (s.kernel[i] - 1) * s.dilation[i] - 1) / s.stride[i] + 1;
    pixels *= s.out[i], inputs *= p->in[i], taps *= s.kernel[i];
  }
  p->shape = s;
  p->x = HopperData::bf16s(size_t(inputs * s.channels), 1);
  p->w = HopperData::bf16s(size_t(taps * s.n * s.channels), 2);
  p->out = HopperData::empty(size_t(pixels * s.n) * 4);
  p->program.file = "conv.ptx", p->program.entry = "conv_" + std::to_string(spatial) + "d";
  p->program.config = {.grid = {(s.n + 63) / 64, (pixels + 63) / 64, 1},
                       .block = {160, 1, 1},
                       .cluster = {1, 1, 1},
                       .shared_bytes = 0,
                       .cooperative = false};
  p->program.out = &p->out.bytes;
  Convolution* data = p.get();
  p->program.bind = [data, taps](Sim& sim) {
    TensorMap x = pixels_of(*data);
    x.address = sim.memory.add("x", std::span(data->x.bytes), Access::read_only);
    EXPECT_EQ(wrong_field(x).value_or(""), "");
    const auto bytes = encode(x);
    const ConvShape& shape = data->shape;
    const HopperMap w{.columns = uint64_t(shape.channels),
                      .rows = uint64_t(taps * shape.n),
                      .pitch = uint64_t(shape.channels) * 2};
    return std::vector<Bytes8>{
        Bytes8(bytes.begin(), bytes.end()),
        w.at(sim.memory.add("w", std::span(data->w.bytes), Access::read_only)),
        arg(sim.memory.add("out", std::span(data->out.bytes), Access::read_write)), arg(shape)};
  };
  for (int y = 0; y < pixels; ++y)
    for (int n = 0; n < s.n; ++n) {
      const auto [sum, size] = result_of(*p, y, n);
      p->program.truth.push_back(sum), p->program.bound.push_back(1e-6 * size + 1e-30);
    }
  return p;
}

ConvolutionPtr plane() {
  return convolution(2, {14, 11, 1},
                     {.images = 2,
                      .n = 72,
                      .channels = 72,
                      .kernel = {3, 2, 1},
                      .stride = {2, 1, 1},
                      .dilation = {2, 3, 1},
                      .padding = {2, 1, 0}});
}

TEST(HopperConv, EqualsDoublePrecision) {
  EXPECT_EQ(outcome(plane()->program, 0), "");
  const auto line = convolution(
      1, {150, 1, 1},
      {.images = 2, .n = 24, .channels = 40, .kernel = {5, 1, 1}, .padding = {2, 0, 0}});
  EXPECT_EQ(outcome(line->program, 0), "");
  const auto cube = convolution(3, {5, 4, 6},
                                {.images = 2,
                                 .n = 40,
                                 .channels = 16,
                                 .kernel = {3, 3, 2},
                                 .stride = {1, 2, 1},
                                 .padding = {1, 1, 0}});
  EXPECT_EQ(outcome(cube->program, 0), "");
  const auto point = convolution(2, {9, 9, 1}, {.images = 1, .n = 64, .channels = 64});
  EXPECT_EQ(outcome(point->program, 0), "");
}

TEST(HopperConv, PlantedFaultsAreFound) {
  const std::vector<HopperFault> faults = {
      {1, "wrong values"},        {2, "wrong values"},  {3, "bad_mbarrier"},
      {4, "async_copy_pending"},  {5, "bad_bulk_copy"}, {6, "bad_bulk_copy"},
      {7, "missing_wgmma_fence"}, {8, "wrong values"},  {9, "shared_race"},
      {10, "wrong values"},       {11, "wrong values"}};
  const auto p = plane();
  for (const HopperFault& f : faults) EXPECT_EQ(outcome(p->program, f.number), f.found) << f.number;
}

}  // namespace
}  // namespace cutegen::ptx
