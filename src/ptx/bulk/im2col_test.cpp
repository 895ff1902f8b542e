// SPDX-License-Identifier: Apache-2.0
// Tensor copies in im2col mode, compared with nested loops over the pixels of a convolution. Nobody
// has compared them with a GPU yet.
#include <numeric>

#include "ptx/ops/tensor_map.h"
#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

constexpr size_t kWords = 4096, kSharedWords = 2048;

struct PixelCase {
  TensorMap map;
  TensorPlace place{};
  TensorOffsets offsets{};
  std::string mode = ".im2col";  // in the opcode
};

std::string listed(const char* name, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += (i ? ", " : "") + std::string(name) + std::to_string(i);
  return "{" + text + "}";
}

// Copies the pixels to shared memory, and from there to `out`, word by word.
Module pixel_module(const PixelCase& c) {
  const std::string rank = std::to_string(c.map.rank);
  const std::string taps = c.mode == ".im2col" ? ", " + listed("%f", c.map.rank - 2) : "";
  std::string text =
      ".version 8.4\n.target sm_90a\n.address_size 64\n"
      ".visible .entry t(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 tx";
  for (size_t i = 0; i < c.map.rank; ++i) text += ", .param .u32 c" + std::to_string(i);
  for (size_t i = 0; i < c.map.rank - 2; ++i) text += ", .param .u16 f" + std::to_string(i);
  text +=
      ") {\n.shared .align 8 .b64 bar; .shared .align 1024 .b8 sm[8192];\n"
      ".reg .b64 %o, %m; .reg .b32 %i, %b, %v, %d, %x, %c<5>; .reg .b16 %f<3>; .reg .pred %p, %z;\n"
      "mov.u32 %i, %tid.x; mov.u32 %b, bar; mov.u32 %v, sm; mov.b64 %m, map;\n"
      "cvta.param.u64 %m, %m; ld.param.u32 %x, [tx]; ld.param.u64 %o, [out];\n";
  for (size_t i = 0; i < c.map.rank; ++i)
    text += "ld.param.u32 %c" + std::to_string(i) + ", [c" + std::to_string(i) + "];\n";
  for (size_t i = 0; i < c.map.rank - 2; ++i)
    text += "ld.param.u16 %f" + std::to_string(i) + ", [f" + std::to_string(i) + "];\n";
  text +=
      "mad.wide.u32 %o, %i, 4, %o; setp.eq.u32 %z, %i, 0; shl.b32 %i, %i, 2; add.u32 %i, %i, %v;\n"
      "@%z mbarrier.init.shared::cta.b64 [%b], 1;\nfence.mbarrier_init.release.cluster;\n"
      "bar.sync 0;\n@%z mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], %x;\n"
      "@%z cp.async.bulk.prefetch.tensor." +
      rank + "d.L2.global" + c.mode + " [%m, " + listed("%c", c.map.rank) + "]" + taps +
      ";\n@%z cp.async.bulk.tensor." + rank + "d.shared::cluster.global" + c.mode +
      ".mbarrier::complete_tx::bytes [%v], [%m, " + listed("%c", c.map.rank) + "], [%b]" + taps +
      ";\nW:\nmbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0;\n@!%p bra W;\n"
      "L:\nld.shared.u32 %d, [%i]; st.global.u32 [%o], %d; add.u32 %i, %i, 256;\n"
      "add.u64 %o, %o, 256; sub.u32 %d, %i, %v; setp.lt.u32 %p, %d, %x;\n@%p bra L;\nret;\n}\n";
  auto m = Module::parse(text);
  if (!m) ADD_FAILURE() << m.error().text() << text;
  return std::move(*m);
}

struct PixelOutcome {
  LaunchReport report;
  std::vector<uint32_t> out = std::vector<uint32_t>(kSharedWords, 9);
};

PixelOutcome run_pixels(PixelCase c, LaunchStatus status = LaunchStatus::ok) {
  PixelOutcome o;
  std::vector<uint32_t> in(kWords);
  std::iota(in.begin(), in.end(), 1u);
  Sim sim;
  c.map.address = sim.memory.add("in", std::as_writable_bytes(std::span(in)), Access::read_only);
  EXPECT_EQ(wrong_field(c.map).value_or(""), "");
  const auto bytes = encode(c.map);
  std::vector<Bytes8> args{Bytes8(bytes.begin(), bytes.end()), sim.output("out", o.out),
                           arg(uint32_t(c.map.bytes()))};
  for (size_t i = 0; i < c.map.rank; ++i) args.push_back(arg(c.place[i]));
  for (size_t i = 0; i < c.map.rank - 2; ++i) args.push_back(arg(c.offsets[i]));
  o.report = sim.run(pixel_module(c), "t", 1, 64, args, 0, status);
  return o;
}

// A dense tensor of words: channels, then W, H, D, then images.
TensorMap images(std::vector<uint64_t> sizes, uint32_t channels, uint32_t pixels) {
  TensorMap m;
  m.type = TensorType::u32, m.rank = uint32_t(sizes.size()), m.im2col = true;
  m.box = {channels, pixels, 1, 1, 1};
  uint64_t stride = 4;
  for (size_t i = 0; i < sizes.size(); ++i) {
    m.sizes[i] = sizes[i];
    if (i > 0) m.strides[i] = stride;
    stride *= sizes[i];
  }
  return m;
}

// Returns the word of `channel` that one filter tap of a convolution reads for result pixel
// `number`. Walks over results and images independently of the simulator.
uint32_t expected(const PixelCase& p, uint64_t number, uint32_t channel) {
  const TensorMap& m = p.map;
  const size_t spatial = m.rank - 2;
  std::array<int64_t, 3> count{1, 1, 1}, at{};
  for (size_t i = 0; i < spatial; ++i)
    count[i] = (int64_t(m.sizes[i + 1]) + m.upper[i] - m.lower[i] - 1) / m.steps[i + 1] + 1;
  uint64_t skipped = 0;  // results before the first one of the copy
  for (size_t i = spatial; i-- > 0;)
    skipped = skipped * uint64_t(count[i]) +
              uint64_t((p.place[i + 1] - m.lower[i]) / int64_t(m.steps[i + 1]));
  uint64_t rest = skipped + number;
  uint64_t index = 0, stride = m.sizes[0];
  for (size_t i = 0; i < spatial; ++i) {
    at[i] = m.lower[i] + int64_t(rest % uint64_t(count[i])) * m.steps[i + 1] + p.offsets[i];
    rest /= uint64_t(count[i]);
    if (at[i] < 0 || at[i] >= int64_t(m.sizes[i + 1])) return 0;
    index += uint64_t(at[i]) * stride, stride *= m.sizes[i + 1];
  }
  const uint64_t image = rest + uint64_t(p.place[m.rank - 1]);
  if (image >= m.sizes[m.rank - 1] || uint64_t(p.place[0]) + channel >= m.sizes[0]) return 0;
  return uint32_t(image * stride + index + uint64_t(p.place[0]) + channel) + 1;
}

void expect_pixels(const PixelCase& c) {
  const PixelOutcome o = run_pixels(c);
  const uint32_t width = c.map.pitch() / 4;
  for (uint32_t pixel = 0; pixel < c.map.box[1]; ++pixel)
    for (uint32_t channel = 0; channel < c.map.box[0]; ++channel) {
      const uint64_t at = (uint64_t{pixel} * width + channel) * 4;
      const uint64_t moved = swizzled(at & ~15ull, c.map.swizzle) | (at & 15);
      ASSERT_EQ(o.out[moved / 4], expected(c, pixel, channel)) << pixel << " " << channel;
    }
}

// A 3 x 3 convolution with a padding of 1: the bounding box begins one pixel before the image, and
// the last tap has an offset of 2.
PixelCase padded(int32_t n = 0) {
  PixelCase c{images({8, 6, 5, 3}, 8, 20)};
  c.map.lower = {-1, -1, 0}, c.map.upper = {-1, -1, 0};
  c.place = {0, -1, -1, n};
  return c;
}

TEST(Im2col, GoesThroughTheBoundingBoxRowByRow) {
  PixelCase c = padded();
  expect_pixels(c);
  for (uint16_t w : {0, 1, 2})
    for (uint16_t h : {0, 1, 2}) {
      c.offsets = {w, h, 0};
      expect_pixels(c);
    }
}

TEST(Im2col, BeginsAnywhereInTheBoxAndGoesOnInTheNextImage) {
  PixelCase c = padded(1);
  c.offsets = {2, 1, 0};
  c.place = {0, 3, 2, 1};
  expect_pixels(c);
  c.place = {0, 1, 3, 2};  // beyond the last image
  expect_pixels(c);
  c.place[3] = 3;  // no image at all
  expect_pixels(c);
}

TEST(Im2col, StepsAndDilatedTapsSkipPixels) {
  PixelCase c{images({4, 11, 9, 2}, 4, 30)};
  c.map.lower = {-2, -2, 0}, c.map.upper = {-2, -2, 0}, c.map.steps = {1, 2, 3, 1, 1};
  c.place = {0, -2, -2, 0};
  for (uint16_t w : {0, 2, 4}) {
    c.offsets = {w, uint16_t(4 - w), 0};
    expect_pixels(c);
  }
  c.place = {0, 2, 1, 0};
  expect_pixels(c);
}

TEST(Im2col, OneAndThreeSpatialDimensions) {
  PixelCase line{images({16, 50, 4}, 8, 64)};
  line.map.lower[0] = -3, line.map.upper[0] = -3;
  line.place = {8, -3, 0}, line.offsets[0] = 6;
  expect_pixels(line);
  PixelCase cube{images({4, 4, 5, 6, 3}, 4, 40)};
  cube.map.lower = {-1, 0, -2}, cube.map.upper = {-1, -1, 0};
  cube.place = {0, 1, 2, -2, 1}, cube.offsets = {2, 1, 2};
  expect_pixels(cube);
}

TEST(Im2col, ChannelsBeyondTheTensorAreZeroAndSwizzlesApply) {
  PixelCase c = padded();
  c.map.sizes[0] = 4;  // of rows of 8
  const PixelOutcome o = run_pixels(c);
  const uint32_t inner =
      (6 + 1) * 8;  // 6 pixels above the image and one beside it precede pixel (0, 0)
  EXPECT_EQ(o.out[inner + 3], 4u);
  EXPECT_EQ(o.out[inner + 4], 0u);
  c = padded();
  c.map = images({32, 6, 5, 3}, 0, 20), c.map.lower = {-1, -1, 0}, c.map.upper = {-1, -1, 0};
  for (uint8_t swizzle : {1, 2, 3}) {
    c.map.swizzle = swizzle, c.map.box[0] = 4u << swizzle;
    expect_pixels(c);
  }
}

TEST(Im2col, CountsTheBytesOfTheBox) {
  const LaunchReport r = run_pixels(padded()).report;
  EXPECT_EQ(r.counters.tma_load_requests, 2u);  // the other one is the prefetch
  // 20 pixels in rows of 6: the first row lies above the image, and the first pixel of every other
  // row lies beside it.
  EXPECT_EQ(r.counters.tma_load_bytes, 2u * 11 * 32);
}

void expect_pixel_finding(const PixelCase& c, const char* part) {
  const LaunchReport r = run_pixels(c, LaunchStatus::finding).report;
  const Finding f = r.finding.value_or(Finding{});
  EXPECT_EQ(f.kind, "bad_bulk_copy") << r.reason;
  EXPECT_NE(f.message.find(part), std::string::npos) << f.message;
}

TEST(Im2col, WhatACopyMustSatisfy) {
  PixelCase c = padded();
  c.place[1] = -2;
  expect_pixel_finding(
      c, "coordinate 1 is -2: a copy in im2col mode must begin in the bounding box, -1 to 4");
  c = padded();
  c.place[2] = 4;
  expect_pixel_finding(c, "coordinate 2 is 4");
  c = padded();
  c.offsets[0] = 256;
  expect_pixel_finding(c, "im2col offset 0 is 256 (0 to 255 with 2 spatial dimensions)");
  c = padded();
  c.place[0] = 2;
  expect_pixel_finding(c, "coordinate 0 is 2, 8 bytes");
  c = padded();
  c.mode = "";
  expect_pixel_finding(c, "a copy in tile mode with a tensor map in im2col mode");
  c = padded();
  c.map.im2col = false, c.map.box = {8, 4, 1, 1, 1};
  expect_pixel_finding(c, "a copy in im2col mode with a tensor map in tile mode");
}

TEST(Im2col, RulesNameTheField) {
  const auto wrong = [](auto change) {
    TensorMap m = padded().map;
    change(m);
    return wrong_field(m).value_or("none");
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_EQ(wrong([](TensorMap&) {}), "none");
  EXPECT_EQ(wrong([](auto& m) { m.box[1] = 1024; }), "none");
  EXPECT_TRUE(has(wrong([](auto& m) { m.rank = 2; }), "rank of 2 (3 to 5)"));
  EXPECT_TRUE(has(wrong([](auto& m) { m.box[0] = 260; }), "channels_per_pixel is 260 (1 to 256)"));
  EXPECT_TRUE(has(wrong([](auto& m) { m.box[0] = 6; }), "channels_per_pixel has 24 bytes"));
  EXPECT_TRUE(
      has(wrong([](auto& m) { m.box[1] = 1025; }), "pixels_per_column is 1025 (1 to 1024)"));
  EXPECT_TRUE(has(wrong([](auto& m) { m.steps[2] = 9; }), "element_strides[2] is 9"));
  EXPECT_TRUE(has(wrong([](auto& m) { m.lower[1] = -129; }), "lower[1] is -129 (-128 to 127"));
  EXPECT_TRUE(has(wrong([](auto& m) { m.upper[0] = 128; }), "upper[0] is 128 (-128 to 127"));
  EXPECT_TRUE(
      has(wrong([](auto& m) { m.upper[0] = -7; }), "the bounding box is empty: along dims[1]"));
  EXPECT_TRUE(has(wrong([](auto& m) { m.swizzle = 3, m.box[0] = 64; }),
                  "more than the 128 of the swizzle"));
}

TEST(Im2col, MapsKeepTheirCorners) {
  const TensorMap m = padded().map;
  const auto back = decode_tensor_map(encode(m));
  ASSERT_TRUE(back.has_value());
  EXPECT_TRUE(back->im2col);
  EXPECT_EQ(back->lower, m.lower);
  EXPECT_EQ(back->upper, m.upper);
  EXPECT_EQ(back->box, m.box);
}

// Writes one pixel after the other, without the offsets of a tap.
TEST(Im2col, StoresGoThroughTheBoxToo) {
  auto m = Module::parse(
      ".version 8.4\n.target sm_90a\n.address_size 64\n"
      ".visible .entry t(.param .align 64 .b8 map[128]) {\n"
      ".shared .align 1024 .b8 sm[512]; .reg .b64 %m; .reg .b32 %i, %v, %c<4>; .reg .pred %z;\n"
      "mov.u32 %i, %tid.x; mov.u32 %v, sm; setp.eq.u32 %z, %i, 0; mov.b64 %m, map;\n"
      "cvta.param.u64 %m, %m; mov.u32 %c0, 0; mov.u32 %c1, 2; mov.u32 %c2, 1; mov.u32 %c3, 0;\n"
      "add.u32 %c0, %i, 1000; shl.b32 %i, %i, 2; add.u32 %i, %i, %v; st.shared.u32 [%i], %c0;\n"
      "mov.u32 %c0, 0; fence.proxy.async; bar.sync 0;\n"
      "@%z cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group "
      "[%m, {%c0, %c1, %c2, %c3}], [%v];\n"
      "@%z cp.async.bulk.commit_group;\n@%z cp.async.bulk.wait_group 0;\nret;\n}\n");
  ASSERT_TRUE(m.has_value()) << m.error().text();
  TensorMap map = images({4, 5, 3, 2}, 4, 8);
  map.upper = {-2, 0, 0};  // three pixels of each row
  std::vector<uint32_t> in(128, 7);
  Sim sim;
  map.address = sim.memory.add("in", std::as_writable_bytes(std::span(in)), Access::read_write);
  const auto bytes = encode(map);
  sim.run(*m, "t", 1, 32, {Bytes8(bytes.begin(), bytes.end())}, 0);
  // Pixels (2, 1) and (0..2, 2) of image 0, then image 1 from pixel (0, 0) on.
  const int pixels[8] = {5 + 2, 10, 11, 12, 15, 16, 17, 20};
  std::vector<uint32_t> want(128, 7);
  for (int p = 0; p < 8; ++p)
    for (int c = 0; c < 4; ++c) want[size_t(pixels[p] * 4 + c)] = uint32_t(1000 + p * 4 + c);
  EXPECT_EQ(in, want);
}

TEST(Im2col, FormsThatDoNotExistAreRefused) {
  for (const char* opcode :
       {"cp.async.bulk.tensor.3d.shared::cluster.global.im2col_no_offs.mbarrier::complete_tx::"
        "bytes",
        "cp.async.bulk.tensor.3d.global.shared::cta.im2col.bulk_group",
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col::w.mbarrier::complete_tx::bytes"}) {
    auto m = Module::parse(std::string(".version 8.6\n.target sm_90a\n.address_size 64\n"
                                       ".visible .entry t() {\n.reg .b32 %r; .reg .b64 %d;\n") +
                           opcode + " [%r], [%d, {%r, %r, %r}], [%r];\nret;\n}\n");
    ASSERT_TRUE(m.has_value()) << m.error().text();
    Sim sim;
    const auto r = sim.launch(*m, "t", 1, 32, {});
    ASSERT_TRUE(r.has_value());
    EXPECT_EQ(r->status, LaunchStatus::unsupported) << opcode;
  }
}

}  // namespace
}  // namespace cutegen::ptx
