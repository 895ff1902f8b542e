// SPDX-License-Identifier: Apache-2.0
#include "eval/rungs/coverage.h"

#include <gtest/gtest.h>

namespace cutegen::eval {
namespace {

device::LaunchTrace trace(size_t module, std::vector<device::TracedInst> executed,
                          double flops = 0) {
  device::LaunchTrace t;
  t.kernel = "f", t.module = module, t.executed = std::move(executed), t.flops = flops;
  return t;
}

device::RunReport report(std::vector<device::LaunchTrace> traces) {
  device::RunReport r;
  r.traces = std::move(traces);
  return r;
}

class CoverageTest : public testing::Test {
 protected:
  CoverageTest() {
    shape_.tensors = {{"x", {320}}};
    shape_.flops = Flops{6400};
  }
  std::optional<Coverage::Gap> gap(const device::RunReport& r,
                                   const std::set<size_t>& compared = {}) const {
    return coverage_.gap(r, sources_, compared);
  }
  std::vector<std::string> sources_{"kernel.cu", "kernel.cu", "other.cu"};
  ShapeCase shape_;
  Coverage coverage_;
};

TEST_F(CoverageTest, WithoutComparedRunsNothingIsCovered) {
  auto found =
      gap(report({trace(0, {{.index = 0, .line = 7, .column = 5, .opcode = 1, .runs = 3}})}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kernel, "f");
  EXPECT_EQ(found->line, 7);
  EXPECT_EQ(found->share, 1);
}

TEST_F(CoverageTest, LaunchesThatWereComparedAreLeftAlone) {
  EXPECT_FALSE(gap(report({trace(0, {{0, 7, 5, 1, 3}})}), {0}));
}

TEST_F(CoverageTest, InTheSameModuleInstructionsCount) {
  coverage_.add(report({trace(0, {{.index = 0, .line = 7, .column = 5, .opcode = 1, .runs = 3},
                                  {.index = 1, .line = 7, .column = 5, .opcode = 1, .runs = 3}})}),
                sources_, shape_);
  EXPECT_FALSE(gap(report({trace(0, {{0, 7, 5, 1, 30}, {1, 7, 5, 1, 10}})})));
  EXPECT_FALSE(gap(report({trace(0, {{0, 7, 5, 1, 30}, {2, 7, 5, 1, 10}})}))) << "an unrolled copy";
  EXPECT_TRUE(gap(report({trace(0, {{0, 7, 5, 1, 30}, {2, 0, 5, 1, 10}})}))) << "an unknown line";
  auto found =
      gap(report({trace(0, {{.index = 0, .line = 7, .column = 5, .opcode = 1, .runs = 30},
                            {.index = 2, .line = 9, .column = 5, .opcode = 1, .runs = 10}})}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->line, 9);
  EXPECT_DOUBLE_EQ(found->share, 0.25);
}

TEST_F(CoverageTest, AnotherStatementOfALineIsNotCovered) {
  coverage_.add(report({trace(0, {{.index = 0, .line = 7, .column = 5, .opcode = 1, .runs = 3}})}),
                sources_, shape_);
  EXPECT_TRUE(gap(report({trace(0, {{0, 7, 5, 1, 30}, {2, 7, 9, 1, 10}})}))) << "another column";
  EXPECT_TRUE(gap(report({trace(0, {{0, 7, 5, 1, 30}, {2, 7, 5, 2, 10}})})))
      << "another instruction of a macro";
  EXPECT_TRUE(gap(report({trace(1, {{0, 7, 9, 1, 30}})}))) << "in another module";
  EXPECT_FALSE(gap(report({trace(1, {{0, 7, 5, 2, 30}})}))) << "with other constants";
}

TEST_F(CoverageTest, InAnotherModuleOfTheSourceItsLinesCount) {
  coverage_.add(report({trace(0, {{.index = 0, .line = 7, .column = 5, .opcode = 1, .runs = 3}})}),
                sources_, shape_);
  EXPECT_FALSE(gap(report({trace(1, {{5, 7, 5, 1, 3}})})));
  EXPECT_TRUE(gap(report({trace(1, {{5, 8, 5, 1, 3}})})));
  EXPECT_TRUE(gap(report({trace(2, {{0, 7, 5, 1, 3}})}))) << "another source";
}

TEST_F(CoverageTest, TheLeastArithmeticIsAShareOfTheTasks) {
  EXPECT_FALSE(coverage_.least_arithmetic());
  coverage_.add(
      report({trace(0, {{.index = 0, .line = 7, .column = 5, .opcode = 1, .runs = 3}}, 12800)}),
      sources_, shape_);
  EXPECT_EQ(coverage_.least_arithmetic(), 1.0);
  coverage_.add(
      report({trace(0, {{.index = 0, .line = 7, .column = 5, .opcode = 1, .runs = 3}}, 1600)}),
      sources_, shape_);
  EXPECT_EQ(coverage_.least_arithmetic(), 0.25);
}

TEST_F(CoverageTest, ImpliedWorkIsFusedOperationsAndElements) {
  EXPECT_DOUBLE_EQ(implied_work(shape_), 6400.0 / 64 + 320.0 / 32);
}

}  // namespace
}  // namespace cutegen::eval
