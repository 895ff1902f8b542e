// SPDX-License-Identifier: Apache-2.0
#include "core/floor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cutegen {
namespace {

using testing::HasSubstr;
using testing::Not;

Node node(const std::string& op, double flops) {
  Node n;
  n.op = op, n.flops = flops;
  return n;
}

Task task() {
  Task t;
  t.tensors = {
      {.name = "x", .role = TensorRole::input, .dtype = DType::f32, .shape = {64}, .mutated = true},
      {.name = "w", .role = TensorRole::parameter, .dtype = DType::f32, .shape = {32}},
      {.name = "out", .role = TensorRole::output, .dtype = DType::f16, .shape = {128}}};
  ShapeCase s;
  s.tensors = {{"x", {64}}, {"w", {32}}, {"out", {128}}};
  s.flops = Flops{111}, s.least_bytes = Bytes{4096};
  t.shapes = {s};
  return t;
}

TEST(Work, SplitsTheOperationsByTheUnitThatServesThem) {
  Task t = task();
  t.graph.nodes = {node("aten.addmm.default", 1),
                   node("aten.convolution.default", 10),
                   node("aten.relu.default", 100),
                   node("aten._softmax.default", 1000),
                   node("aten.bmm.default", 2),
                   node("aten.lstm.input", 4),
                   node("aten.addcmul.default", 1e4),
                   node("aten._convolution.deprecated", 20),
                   node("aten._scaled_dot_product_flash_attention.default", 8)};
  t.math_mode = MathMode::fp16, t.tf32_convolutions = true;
  const Work w = work_of(t, t.official());
  EXPECT_EQ(w.products.value, 15);
  EXPECT_EQ(w.convolutions.value, 30);
  EXPECT_EQ(w.other.value, 11'100);
  EXPECT_EQ(w.least.value, 4096);
  EXPECT_EQ(w.math_mode, MathMode::fp16);
  EXPECT_TRUE(w.tf32_convolutions);
}

TEST(Work, WithoutAGraphAllOperationsMayBeProducts) {
  EXPECT_EQ(work_of(task(), task().official()).products.value, 111);
  EXPECT_EQ(work_of(task(), task().official()).other.value, 0);
}

TEST(Work, OutputsAndWhatIsWrittenInPlaceAreWritten) {
  Task t = task();
  EXPECT_EQ(written_bytes(t, t.official()).value, 64 * 4 + 128 * 2);
  t.shapes[0].tensors["out"] = {int64_t{1} << 40, 1 << 22};
  EXPECT_EQ(written_bytes(t, t.official()).value, INT64_MAX) << "no overflow";
}

TEST(FloorText, SaysWhatIsABoundAndWhatIsAnEstimate) {
  EXPECT_EQ(
      floor_text(213e3, 245e3, RooflineBound::memory),
      "213 us (least traffic at the nominal bandwidth): no kernel is faster; reachable 245 us "
      "(a copy's bandwidth)");
  EXPECT_THAT(floor_text(1000, 2100, RooflineBound::launch),
              HasSubstr("1 us (a launch): no kernel is faster"));
  EXPECT_EQ(roofline_text(2.05e6, RooflineBound::compute),
            "2.05 ms (bound by compute), an estimate for the operations as written; algebraic "
            "rewrites can beat it");
}

// `cutegen describe` tries no degenerate solution, so it does not know the final floor.
TEST(FloorText, AnUnadmittedTaskNamesTheException) {
  const Roofline bounds{
      .floor_ns = 213e3, .reachable_ns = 245e3, .bound_by = RooflineBound::memory};
  EXPECT_EQ(
      unadmitted_floor_text(bounds),
      "213 us (least traffic at the nominal bandwidth): no kernel is faster unless a "
      "degenerate solution (such as zeros) is correct; reachable 245 us (a copy's bandwidth)");
}

TEST(FloorText, AnOldRunClaimsNoBound) {
  EXPECT_THAT(floor_text(2.05e6, 0, RooflineBound::compute), Not(HasSubstr("no kernel is faster")));
  EXPECT_THAT(floor_text(2.05e6, 0, RooflineBound::compute),
              HasSubstr("as an older version computed it"));
  EXPECT_EQ(roofline_text(0, RooflineBound::compute), "");
  EXPECT_EQ(floor_text(0, 0, RooflineBound::memory), "unknown");
}

}  // namespace
}  // namespace cutegen
