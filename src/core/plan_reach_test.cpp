// SPDX-License-Identifier: Apache-2.0
#include "core/plan_reach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cutegen {
namespace {

using testing::ElementsAre;

// A task with one matrix product: x [m, k], y [k, n], out [m, n].
ShapeCase shape_of(int64_t m, int64_t k, int64_t n) {
  ShapeCase s{.name = "s", .kind = ShapeKind::small};
  s.tensors = {{"x", {m, k}}, {"y", {k, n}}, {"out", {m, n}}};
  return s;
}

KernelProgram program_of(const std::string& plan, const std::string& source = "") {
  KernelProgram p;
  auto parsed = plan_from_json(Json::parse(plan));
  EXPECT_TRUE(parsed) << parsed.error().text();
  if (parsed) p.plan = *parsed;
  p.sources["kernel.cu"] = source;
  return p;
}

const char* const kProduct = R"json({"cutegen": 1, "dialect": "cuda", "sources": ["kernel.cu"],
  "symbols": {"m": "dim(x,0)", "tiles": "ceil_div(m,k(kTile))"},
  "steps": [{"kernel": "f", "block": [256, 1, 1],
             "grid": ["min(tiles*((dim(y,1)+63)/64),gpu.sms)", 1, 1],
             "args": [{"tensor": "out"}, {"i32": "dim(x,1)/32"}]}]})json";

PlanReach reach_of(const KernelProgram& program, const ShapeCase& shape) {
  auto reach = plan_reach(program, Task{}, shape, DeviceFacts{.name = "d", .sms = 6});
  EXPECT_TRUE(reach) << reach.error().text();
  return reach ? *reach : PlanReach{};
}

TEST(PlanReach, ListsDivisionsBoundsAndLaunches) {
  const auto program = program_of(kProduct, "constexpr int kTile = 128;  // kTile = 7");
  const PlanReach r = reach_of(program, shape_of(300, 96, 200));
  ASSERT_EQ(r.divisions.size(), 3u);
  EXPECT_EQ(r.divisions[0]->size, 300);  // through the symbol and k(kTile)
  EXPECT_EQ(r.divisions[0]->step, 128);
  EXPECT_EQ(r.divisions[0]->tiles(), 3);
  EXPECT_TRUE(r.divisions[0]->has_tail());
  // The argument's division comes before the grid's.
  EXPECT_EQ(r.divisions[1]->size, 96);
  EXPECT_FALSE(r.divisions[1]->has_tail());
  EXPECT_EQ(r.divisions[2]->size, 200);  // (n + 63) / 64 is ceil_div(n, 64)
  EXPECT_EQ(r.divisions[2]->tiles(), 4);
  ASSERT_EQ(r.bounds.size(), 1u);
  EXPECT_EQ(r.bounds[0]->a, 12);
  EXPECT_EQ(r.bounds[0]->b, 6);
  ASSERT_EQ(r.launches.size(), 1u);
  EXPECT_EQ(r.launches[0]->grid[0], 6);
  EXPECT_EQ(r.launches[0]->threads, 256);
  EXPECT_THAT(r.divisions_of[0], ElementsAre(0, 2));
}

TEST(PlanReach, WhatCannotBeEvaluatedIsLeftOpen) {
  const PlanReach r = reach_of(program_of(kProduct, "int kTile;"), shape_of(300, 96, 200));
  EXPECT_FALSE(r.divisions[0]);
  EXPECT_TRUE(r.divisions[1]);
  EXPECT_FALSE(r.bounds[0]);
  EXPECT_FALSE(r.launches[0]);
}

TEST(PlanReach, WholeNumbersAreThoseOfTheCode) {
  const auto program = program_of(
      kProduct, "constexpr int a = 4096; // 8192\n/* 2048 */ float f = 512.0f; x128 = 64u; 64; 7;");
  EXPECT_THAT(whole_numbers(program, 8, 16384), ElementsAre(64, 4096));
  EXPECT_TRUE(whole_numbers(program_of(kProduct, "/* 4096"), 8, 16384).empty());
  EXPECT_TRUE(whole_numbers(program_of(kProduct, "99999999999999999999"), 8, 16384).empty());
}

}  // namespace
}  // namespace cutegen
