// SPDX-License-Identifier: Apache-2.0
#include "engine/report/before_after.h"

#include <gtest/gtest.h>

#include "engine/testing/toy_world.h"

namespace cutegen::engine {
namespace {

using toy::numbered_program;
using toy::relu_task;
using toy::timed;

Node node(const std::string& op, const std::vector<std::string>& from, const std::string& to,
          const Shape& shape) {
  Node n{.id = to,
         .op = "aten." + op + ".default",
         .kwargs = Json::object(),
         .outputs = {{.name = to, .dtype = DType::f32, .shape = shape}}};
  for (const std::string& name : from) n.args.push_back(Json{{"ref", name}});
  return n;
}

TEST(BeforeAfter, OperatorsReadAndWriteOnceAndViewsAreFree) {
  Graph g;
  g.placeholders = {{.name = "x", .dtype = DType::f32, .shape = {8, 4}},
                    {.name = "b", .dtype = DType::f32, .shape = {4}}};
  g.nodes = {node("view", {"x"}, "flat", {32}), node("relu", {"flat"}, "r", {32}),
             node("expand", {"b"}, "wide", {8, 4}), node("mul", {"wide", "wide"}, "m", {8, 4})};
  const OperatorCost cost = cost_of(g);
  EXPECT_EQ(cost.launches, 2);
  // relu reads x and writes; mul reads the four values of b once and writes
  EXPECT_EQ(cost.bytes, 128 + 128 + 16 + 128);
}

TEST(BeforeAfter, OfARunThePlanOrTheProfileCounts) {
  RunView view;
  EXPECT_FALSE(before_after(view));
  view.task = relu_task();
  view.best = "c1";
  RunStep step;
  step.candidate.id = "c1";
  step.candidate.program = numbered_program(1);
  step.verdict = timed(50);
  view.steps.push_back(step);
  auto saved = before_after(view);
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->launches_before, 1);
  EXPECT_EQ(saved->launches_after, 1);
  EXPECT_FALSE(saved->bytes_after);
  EXPECT_EQ(to_text(*saved),
            "launches 1 -> 1; memory traffic 8.19 KB (modelled) -> not counted, least 8.19 KB");
  KernelProfile k;
  k.kernel = "k", k.origin = Origin::measured;
  k.counters = {{"dram_read_bytes", 4096}, {"dram_write_bytes", 5000}};
  view.profiled = BestProfile{.candidate = "c1",
                              .profile = Profile{.kernels = {k, k},
                                                 .shape = "official",
                                                 .source = CounterSource::from("ncu"),
                                                 .note = ""}};
  saved = before_after(view);
  EXPECT_EQ(saved->launches_after, 2);
  EXPECT_EQ(saved->bytes_after, 2 * 9096);
  EXPECT_EQ(to_json(*saved)["bytes_after_origin"], "measured");
  view.profiled->profile->kernels[1].counters.erase("dram_read_bytes");
  EXPECT_FALSE(before_after(view)->bytes_after) << "a part is not the whole";
}

}  // namespace
}  // namespace cutegen::engine
