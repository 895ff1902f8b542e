// SPDX-License-Identifier: Apache-2.0
#include "ptx/model/machine_code.h"

#include <gtest/gtest.h>

#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

// Two loops: the first loads a word in each iteration, the second exchanges a word between lanes.
constexpr const char* kTwoLoops = R"(
  mov.u32 %r3, 0;
  mov.u32 %r1, 0;
A:
  ld.global.u32 %r2, [%rd1];
  add.u32 %r3, %r3, %r2;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 10;
  @%p1 bra A;
  mov.u32 %r1, 0;
B:
  shfl.sync.bfly.b32 %r2, %r3, 1, 31, -1;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 10;
  @%p1 bra B;
  st.global.u32 [%rd1], %r3;
)";

std::string coded_kernel(const std::string& body) {
  return R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x)
{
  .reg .pred %p<2>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [x];
)" + body +
         "  ret;\n}\n";
}

LaunchReport coded_run(const std::string& body, const CodeShape* machine) {
  auto m = Module::parse(coded_kernel(body));
  EXPECT_TRUE(m) << m.error().text();
  std::vector<float> x(64);
  Sim sim;
  sim.options.machine_code = machine;
  return sim.run(*m, "k", 1, 32, {sim.output("x", x)});
}

uint64_t coded_slots(const CodeShape* machine, const std::string& body = kTwoLoops) {
  return coded_run(body, machine).counters.issue_slots;
}

// 10 iterations of 5 and of 4 instructions, and 6 instructions outside.
constexpr uint64_t kEstimate = 10 * 5 + 10 * 4 + 6;

TEST(MachineCode, WithoutItTheEstimateOfThePtxCounts) {
  EXPECT_EQ(coded_slots(nullptr), kEstimate);
}

// 12 machine instructions for each iteration of the first loop, 4 for the second one, 12 outside.
TEST(MachineCode, InstructionsAreThoseOfTheMachineCode) {
  const CodeShape shape{.outside = {.instructions = 12, .marks = {{"store", 1}}},
                        .loops = {{.instructions = 12, .marks = {{"load", 1}}},
                                  {.instructions = 4, .marks = {{"shuffle", 1}}}}};
  EXPECT_EQ(coded_slots(&shape), 10 * 12 + 10 * 4 + 12);
}

// The assembler has unrolled the first loop by four, with 20 instructions for four iterations, and
// has kept a loop of 10 instructions for the rest: 30 / 5 an iteration.
TEST(MachineCode, AnUnrolledLoopCountsByItsMarks) {
  const CodeShape shape{.outside = {.instructions = 6, .marks = {{"store", 1}}},
                        .loops = {{.instructions = 20, .marks = {{"load", 4}}},
                                  {.instructions = 10, .marks = {{"load", 1}}},
                                  {.instructions = 4, .marks = {{"shuffle", 1}}}}};
  EXPECT_EQ(coded_slots(&shape), 10 * 30 / 5 + 10 * 4 + 6);
}

// A part without a counterpart keeps its estimate.
TEST(MachineCode, PartsThatDoNotMatchKeepTheEstimate) {
  const CodeShape other{.outside = {.instructions = 90, .marks = {{"atomic", 1}}},
                        .loops = {{.instructions = 90, .marks = {{"load", 1}, {"store", 2}}}}};
  EXPECT_EQ(coded_slots(&other), kEstimate);
  const CodeShape unknown;
  EXPECT_EQ(coded_slots(&unknown), kEstimate);
}

TEST(MachineCode, FactorsAreLimited) {
  const CodeShape large{.outside = {.instructions = 6, .marks = {{"store", 1}}},
                        .loops = {{.instructions = 1000, .marks = {{"load", 1}}},
                                  {.instructions = 4, .marks = {{"shuffle", 1}}}}};
  EXPECT_EQ(coded_slots(&large), uint64_t(kMostFactor * 10 * 5) + 10 * 4 + 6);
}

// Lines and the kernel have the same total.
TEST(MachineCode, LinesAddUpToTheKernel) {
  const CodeShape shape{.outside = {.instructions = 12, .marks = {{"store", 1}}},
                        .loops = {{.instructions = 12, .marks = {{"load", 1}}}}};
  const LaunchReport r = coded_run(kTwoLoops, &shape);
  uint64_t sum = 0;
  for (const LineCounters& line : r.lines) sum += line.counters.issue_slots;
  EXPECT_EQ(sum, r.counters.issue_slots);
}

}  // namespace
}  // namespace cutegen::ptx
