// SPDX-License-Identifier: Apache-2.0
// Tensor copies: boxes, swizzles, fills, reductions, and the rules for a copy.
// tensor_truth_test.cpp compares with an H200.
#include <numeric>

#include "ptx/ops/tensor_map.h"
#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

// Copies one box to shared memory, and from there to `out`, word by word.
Module loads(const std::string& copy, int rank) {
  std::string c;
  for (int i = 0; i < rank; ++i) c += std::string(i ? ", " : "") + "%c" + std::to_string(i);
  auto m = Module::parse(
      ".version 8.4\n.target sm_90a\n.address_size 64\n"
      ".visible .entry t(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 c0, .param "
      ".u32 c1, "
      ".param .u32 tx) {\n.shared .align 8 .b64 bar; .shared .align 1024 .b8 sm[4096];\n"
      ".reg .b64 %o, %m; .reg .b32 %i, %b, %v, %d, %x, %c<5>; .reg .pred %p, %z;\n"
      "mov.u32 %i, %tid.x; mov.u32 %b, bar; mov.u32 %v, sm; mov.b64 %m, map; cvta.param.u64 %m, "
      "%m;\n"
      "ld.param.u32 %c0, [c0]; ld.param.u32 %c1, [c1]; ld.param.u32 %x, [tx]; mov.u32 %c2, 0;\n"
      "ld.param.u64 %o, [out]; mad.wide.u32 %o, %i, 4, %o; setp.eq.u32 %z, %i, 0;\n"
      "shl.b32 %i, %i, 2; add.u32 %i, %i, %v;\n"
      "@%z mbarrier.init.shared::cta.b64 [%b], 1;\nfence.mbarrier_init.release.cluster;\nbar.sync "
      "0;\n"
      "@%z mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], %x;\n"
      "@%z cp.async.bulk.tensor." +
      copy + " [%v], [%m, {" + c +
      "}], [%b];\n"
      "W:\nmbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0;\n@!%p bra W;\n"
      "ld.shared.u32 %d, [%i]; st.global.u32 [%o], %d;\nret;\n}\n");
  if (!m) ADD_FAILURE() << m.error().text();
  return std::move(*m);
}
const std::string kTileCopy = "2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes";

struct CopyCase {
  TensorMap map;
  int32_t c0 = 0, c1 = 0;
  std::string form = kTileCopy;
  int rank = 2;
};
struct TensorOutcome {
  LaunchReport report;
  std::vector<uint32_t> in = std::vector<uint32_t>(64 * 32), out = std::vector<uint32_t>(1024, 9);
};
// A matrix of 32 rows of 64 words, with a box of 4 rows of 16 words.
TensorMap matrix() {
  TensorMap m;
  m.type = TensorType::u32, m.rank = 2, m.sizes = {64, 32, 1, 1, 1}, m.strides[1] = 256;
  m.box = {16, 4, 1, 1, 1};
  return m;
}
TensorOutcome run_copy(CopyCase c, LaunchStatus status = LaunchStatus::ok, int64_t threads = 64) {
  TensorOutcome o;
  std::iota(o.in.begin(), o.in.end(), 0u);
  Sim sim;
  c.map.address += sim.memory.add("in", std::as_writable_bytes(std::span(o.in)), Access::read_only);
  const auto bytes = encode(c.map);
  std::vector<Bytes8> args{Bytes8(bytes.begin(), bytes.end()), sim.output("out", o.out), arg(c.c0),
                           arg(c.c1), arg(uint32_t(c.map.bytes()))};
  o.report = sim.run(loads(c.form, c.rank), "t", 1, threads, args, 0, status);
  return o;
}
Finding copy_finding(const CopyCase& c, const char* kind) {
  const TensorOutcome o = run_copy(c, LaunchStatus::finding);
  const Finding f = o.report.finding.value_or(Finding{});
  EXPECT_EQ(f.kind, kind) << f.message;
  return f;
}

TEST(TensorLoad, ABoxComesRowByRow) {
  const TensorOutcome o = run_copy({matrix(), 8, 3});
  for (uint32_t y = 0; y < 4; ++y)
    for (uint32_t x = 0; x < 16; ++x) EXPECT_EQ(o.out[y * 16 + x], (3 + y) * 64 + 8 + x);
  EXPECT_EQ(o.report.counters.tma_load_requests, 1u);
  EXPECT_EQ(o.report.counters.tma_load_sectors, 8u);
}

TEST(TensorLoad, OutsideTheTensorIsZeroOrNaN) {
  CopyCase c{matrix(), 56, -2};
  const TensorOutcome o = run_copy(c);
  EXPECT_EQ(o.out[0], 0u);
  EXPECT_EQ(o.out[2 * 16 + 7], 63u);
  EXPECT_EQ(o.out[2 * 16 + 8], 0u);
  EXPECT_EQ(o.report.counters.tma_load_bytes, 64u);  // the mbarrier counts 256
  c.map.type = TensorType::f32, c.map.fill_nan = true;
  EXPECT_EQ(run_copy(c).out[0], 0x7ff77ff7u);
}

TEST(TensorLoad, SwizzlesMoveSixteenBytesWithinTheSpan) {
  for (uint8_t swizzle : {1, 2, 3}) {
    CopyCase c{matrix(), 16, 2};
    c.map.swizzle = swizzle, c.map.box[0] = 4u << swizzle, c.map.box[1] = 8;
    const uint32_t words = 4u << swizzle;
    const TensorOutcome o = run_copy(c, LaunchStatus::ok, words * 8);
    for (uint32_t y = 0; y < 8; ++y)
      for (uint32_t x = 0; x < words; ++x) {
        const uint64_t at = (y * words + x) * 4, moved = swizzled(at & ~15ull, swizzle) | (at & 15);
        EXPECT_EQ(o.out[moved / 4], (2 + y) * 64 + 16 + x) << int(swizzle);
      }
  }
}

TEST(TensorLoad, StepsSkipElements) {
  CopyCase c{matrix(), 0, 1};
  c.map.steps[1] = 3, c.map.box[1] = 12;
  const TensorOutcome o = run_copy(c);
  for (uint32_t y = 0; y < 4; ++y) EXPECT_EQ(o.out[y * 16 + 5], (1 + 3 * y) * 64 + 5);
}

TEST(TensorLoad, WhatACopyMustSatisfy) {
  EXPECT_NE(
      copy_finding({matrix(), 2, 0}, "bad_bulk_copy").message.find("coordinate 0 is 2, 8 bytes"),
      std::string::npos);
  CopyCase c{matrix()};
  c.map.rank = 1;
  EXPECT_NE(copy_finding(c, "bad_bulk_copy").message.find("a copy of 2 dimensions"),
            std::string::npos);
  c = {matrix()};
  c.map.address = 4096, c.c1 = 16;  // the tensor ends after the buffer
  EXPECT_EQ(copy_finding(c, "out_of_bounds").buffer, "in");
  c = {matrix()};
  c.map.box = {256, 256, 1, 1, 1};
  EXPECT_NE(copy_finding(c, "bad_bulk_copy").message.find("262144 bytes"), std::string::npos);
  c = {matrix()};
  c.map.address = 8;  // the driver would refuse this map
  EXPECT_NE(copy_finding(c, "bad_bulk_copy").message.find("no tensor map"), std::string::npos);
  c = {matrix()};
  c.form = "2d.shared::cluster.global.mbarrier::complete_tx::bytes", c.map.interleave = 1;
  c.map.rank = 3;
  c.form[0] = '3', c.rank = 3;
  const TensorOutcome o = run_copy(c, LaunchStatus::unsupported);
  EXPECT_NE(o.report.reason.find("interleaved"), std::string::npos);
}

// Copies shared memory, which has the value %x in every word, to the tensor, or reduces it into the
// tensor.
TensorOutcome put(const std::string& form, uint32_t value, int32_t c0, int32_t c1, TensorMap map,
                  LaunchStatus status = LaunchStatus::ok) {
  auto m = Module::parse(
      ".version 8.4\n.target sm_90a\n.address_size 64\n"
      ".visible .entry t(.param .align 64 .b8 map[128], .param .u32 x, .param .u32 c0, .param .u32 "
      "c1) {\n"
      ".shared .align 1024 .b8 sm[4096]; .reg .b64 %m; .reg .b32 %i, %v, %x, %c<2>; .reg .pred "
      "%z;\n"
      "mov.u32 %i, %tid.x; mov.u32 %v, sm; setp.eq.u32 %z, %i, 0; ld.param.u32 %x, [x];\n"
      "ld.param.u32 %c0, [c0]; ld.param.u32 %c1, [c1]; mov.b64 %m, map; cvta.param.u64 %m, %m;\n"
      "shl.b32 %i, %i, 2; add.u32 %i, %i, %v; st.shared.u32 [%i], %x; fence.proxy.async; bar.sync "
      "0;\n"
      "@%z cp." +
      form +
      " [%m, {%c0, %c1}], [%v];\n@%z cp.async.bulk.commit_group;\n"
      "@%z cp.async.bulk.wait_group.read 0;\nret;\n}\n");
  EXPECT_TRUE(m.has_value()) << m.error().text();
  TensorOutcome o;
  std::iota(o.in.begin(), o.in.end(), 0u);
  Sim sim;
  map.address = sim.memory.add("in", std::as_writable_bytes(std::span(o.in)), Access::read_write);
  const auto bytes = encode(map);
  o.report = sim.run(*m, "t", 1, 64,
                     {Bytes8(bytes.begin(), bytes.end()), arg(value), arg(c0), arg(c1)}, 0, status);
  return o;
}

TEST(TensorStore, WritesTheBoxAndNothingOutside) {
  const TensorOutcome o =
      put("async.bulk.tensor.2d.global.shared::cta.bulk_group", 77, 56, 30, matrix());
  EXPECT_EQ(std::count(o.in.begin(), o.in.end(), 77u), 2 * 8 + 1);
  EXPECT_EQ(o.in[31 * 64 + 63], 77u);
  EXPECT_EQ(o.report.counters.tma_store_bytes, 64u);
}

TEST(TensorStore, CannotBeginBeforeTheTensor) {
  const TensorOutcome o = put("async.bulk.tensor.2d.global.shared::cta.bulk_group", 77, 0, -1,
                              matrix(), LaunchStatus::finding);
  EXPECT_NE(o.report.finding->message.find("coordinate 1 is -1"), std::string::npos);
}

TEST(TensorReduce, CombinesByTheTypeOfTheMap) {
  const std::string form = "reduce.async.bulk.tensor.2d.global.shared::cta.";
  EXPECT_EQ(put(form + "add.bulk_group", 5, 0, 0, matrix()).in[3 * 64 + 7], 3 * 64 + 7u + 5);
  TensorMap m = matrix();
  m.type = TensorType::s32;
  EXPECT_EQ(put(form + "min.tile.bulk_group", 0xfffffff0, 0, 0, m).in[7], 0xfffffff0u);
  EXPECT_EQ(put(form + "xor.bulk_group", 1, 0, 0, matrix()).in[8], 9u);
  m.type = TensorType::f32;
  const TensorOutcome o = put(form + "or.bulk_group", 1, 0, 0, m, LaunchStatus::finding);
  EXPECT_NE(o.report.finding->message.find("does not exist for the type"), std::string::npos);
}

TEST(TensorMapRules, NameTheField) {
  const auto wrong = [](auto change) {
    TensorMap m = matrix();
    change(m);
    return wrong_field(m).value_or("none");
  };
  auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_EQ(wrong([](TensorMap&) {}), "none");
  EXPECT_TRUE(has(wrong([](auto& m) { m.rank = 6; }), "rank is 6"));
  EXPECT_TRUE(has(wrong([](auto& m) { m.sizes[1] = 0; }), "dims[1] is 0"));
  EXPECT_TRUE(has(wrong([](auto& m) { m.strides[1] = 136; }), "strides[1] is 136 bytes"));
  EXPECT_TRUE(has(wrong([](auto& m) { m.box[1] = 257; }), "box[1] is 257 (1 to 256)"));
  EXPECT_TRUE(has(wrong([](auto& m) { m.box[0] = 3; }), "box[0] has 12 bytes"));
  EXPECT_TRUE(has(wrong([](auto& m) { m.steps[1] = 9; }), "element_strides[1] is 9"));
  EXPECT_TRUE(
      has(wrong([](auto& m) { m.swizzle = 1; }), "64 bytes, more than the 32 of the swizzle"));
  EXPECT_TRUE(has(wrong([](auto& m) { m.fill_nan = true; }), "NaN"));
  EXPECT_TRUE(has(wrong([](auto& m) { m.address = 8; }), "the address 0x8"));
  EXPECT_TRUE(has(wrong([](auto& m) { m.interleave = 1; }), "interleaved layout of rank 2"));
}

TEST(TensorMapBytes, OnlyWhatWasEncodedIsAMap) {
  TensorMap m = matrix();
  m.sizes[0] = uint64_t{1} << 32, m.strides[1] = (uint64_t{1} << 40) - 16;
  auto bytes = encode(m);
  const auto back = decode_tensor_map(bytes);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->sizes, m.sizes);
  EXPECT_EQ(back->strides, m.strides);
  EXPECT_EQ(back->box, m.box);
  bytes[9] ^= std::byte{1};
  EXPECT_FALSE(decode_tensor_map(bytes).has_value());
  EXPECT_FALSE(decode_tensor_map(std::array<std::byte, 128>{}).has_value());
}

}  // namespace
}  // namespace cutegen::ptx
