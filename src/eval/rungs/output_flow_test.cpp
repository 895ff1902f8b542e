// SPDX-License-Identifier: Apache-2.0
#include "eval/rungs/output_flow.h"

#include <gtest/gtest.h>

#include "eval/rungs/sampled_check.h"

namespace cutegen::eval {
namespace {

struct Plan {
  Task task;
  device::PlanSteps steps;
  device::RunReport report;

  Plan() {
    task.tensors = {{.name = "x", .role = TensorRole::input, .dtype = DType::f32, .shape = {8}},
                    {.name = "out", .role = TensorRole::output, .dtype = DType::f32, .shape = {8}}};
  }
  Plan& launch(const std::string& kernel, const std::vector<std::string>& buffers, int64_t ran,
               bool atomics = false) {
    Launch l;
    l.kernel = kernel;
    for (const std::string& b : buffers) l.args.push_back({.buffer = b});
    steps.emplace_back(l);
    device::LaunchTrace t;
    t.kernel = kernel, t.ctas_total = 100, t.ctas_run = ran, t.atomics = atomics;
    report.traces.push_back(t);
    return *this;
  }
  Plan& fill(const std::string& buffer) {
    steps.emplace_back(Fill{.step = "fill", .buffer = buffer, .value = 0, .dtype = DType::f32});
    return *this;
  }
  Flow flow(const std::string& aliased = {}) const {
    return flow_to("out", task, steps, report,
                   [&](const std::string& name) { return name == aliased; });
  }
};

TEST(OutputFlow, OneLaunchIsJudgedOnItsSample) {
  const Flow f = Plan().launch("f", {"x", "out"}, 8).flow();
  EXPECT_EQ(f.why_not, "");
  EXPECT_TRUE(f.complete);
  EXPECT_EQ(f.launches, std::vector<size_t>{0});
}

TEST(OutputFlow, LaunchesBeforeItMustHaveRunWhole) {
  EXPECT_TRUE(Plan().launch("a", {"x", "s"}, 100).launch("b", {"s", "out"}, 8).flow().complete);
  EXPECT_FALSE(Plan().launch("a", {"x", "s"}, 8).launch("b", {"s", "out"}, 100).flow().complete);
}

TEST(OutputFlow, ScratchIsFollowedThroughSeveralLaunches) {
  const Flow f = Plan()
                     .launch("a", {"x", "s"}, 8)
                     .launch("other", {"x", "u"}, 8)
                     .launch("b", {"s", "t"}, 100)
                     .launch("c", {"t", "out"}, 8)
                     .flow();
  EXPECT_FALSE(f.complete);
  EXPECT_EQ(f.launches, (std::vector<size_t>{3, 2, 0}));
}

TEST(OutputFlow, WhatBlocksDoTogetherIsNotJudged) {
  EXPECT_NE(Plan().launch("f", {"x", "out"}, 8, true).flow().why_not.find("atomics"),
            std::string::npos);
  EXPECT_EQ(Plan().launch("f", {"x", "out"}, 100, true).flow().why_not, "");
  EXPECT_NE(Plan().launch("f", {"x", "out"}, 8).launch("g", {"x", "out"}, 8).flow().why_not, "");
  EXPECT_NE(Plan().fill("out").launch("f", {"x", "out"}, 8).flow().why_not, "");
  EXPECT_NE(Plan().fill("out").flow().why_not.find("no launch writes out"), std::string::npos);
}

TEST(OutputFlow, ScratchThatIsNotKeptCarriesNothing) {
  Plan p;
  p.launch("a", {"x", "s"}, 100).launch("b", {"s", "out"}, 8);
  EXPECT_EQ(p.flow("u").why_not, "");
  EXPECT_NE(p.flow("s").why_not.find("too large"), std::string::npos);
}

TEST(BlocksMissed, NamesKernelsWithKindsThatDidNotRun) {
  device::RunReport report;
  report.traces.push_back({.kernel = "f", .ctas_total = 900, .ctas_run = 9});
  EXPECT_EQ(blocks_missed(report), "");
  report.traces[0].kinds = 5, report.traces[0].kinds_missed = 2;
  EXPECT_EQ(blocks_missed(report), "results of 2 of 5 kinds of blocks of f: no such block ran");
  report.traces[0].ctas_run = 900;
  EXPECT_EQ(blocks_missed(report), "");
  report.traces.push_back({.kernel = "g", .ctas_total = 1 << 24, .ctas_run = 128});
  report.traces[1].kinds_known = false;
  EXPECT_EQ(blocks_missed(report),
            "perhaps results of some blocks of g, which has too many blocks, or too long loops, "
            "to look at each block");
}

}  // namespace
}  // namespace cutegen::eval
