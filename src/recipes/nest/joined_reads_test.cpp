// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/joined_reads.h"

#include <gmock/gmock.h>

#include "recipes/nest/nest.h"
#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::ElementsAre;

// Returns the loop nest of a task as the reduction recipe reads it.
Fused with_joined_reads(const Task& task) {
  auto graph = prepare(task);
  if (!graph) throw std::runtime_error(graph.error().text());
  auto source = decompose(*graph, task);
  if (!source) throw std::runtime_error(source.error().text());
  std::map<std::string, std::string> names;
  for (const TensorInfo& tensor : task.tensors) names[tensor.name] = tensor.name;
  Region region{.source = *source, .names = names, .kept = {}, .outputs = outputs_of(task, *graph)};
  region.slices = true;
  auto fused = fuse(region).fused;
  if (!fused) throw std::runtime_error(fused.error().text());
  join_reads(*fused);
  return *fused;
}

const Operand* joined_operand(const Fused& fused) {
  for (const Operand& operand : fused.inputs)
    if (operand.is_joined()) return &operand;
  return nullptr;
}

// Puts an operator between the tensor y and the cat() of a task.
Task with_computed_part(const char* op) {
  Task task = golden_task("cat_then_norm");
  Node node;
  node.id = "part", node.op = op, node.args = {{{"ref", "y"}}};
  node.outputs.push_back({.name = "part", .dtype = DType::f32, .shape = {64, 33}});
  task.graph.nodes.front().args[0][1] = {{"ref", "part"}};
  task.graph.nodes.insert(task.graph.nodes.begin(), node);
  return task;
}

// layer_norm(cat([x, y], 1)) with 101 and 33 columns
TEST(JoinedReads, OneLeafReadsAllOperands) {
  const Fused fused = with_joined_reads(golden_task("cat_then_norm"));
  const Operand* joined = joined_operand(fused);
  ASSERT_TRUE(joined);
  ASSERT_EQ(joined->joined.operands.size(), 2u);
  EXPECT_THAT(joined->joined.ends, ElementsAre("size0"));
  const Operand &x = fused.inputs[size_t(joined->joined.operands[0])],
                &y = fused.inputs[size_t(joined->joined.operands[1])];
  EXPECT_EQ(x.tensor, "x");
  EXPECT_EQ(y.tensor, "y");
  EXPECT_TRUE(x.in_join && y.in_join && !x.gathered() && !y.gathered());
  EXPECT_EQ(start_text(fused, x), "0");
  EXPECT_EQ(start_text(fused, y), "(0-(dim(x,1)))*(stride(y,1))");
  EXPECT_TRUE(fused.inputs[size_t(joined->joined.place)].counts);
  // Nothing else remains of the choice between the operands.
  EXPECT_EQ(fused.inputs.size(), 4u);
  EXPECT_EQ(std::count_if(fused.insts.begin(), fused.insts.end(),
                          [](const Inst& inst) { return inst.kind == InstKind::leaf; }),
            1);
  const Nest nest = make_nest(fused);
  EXPECT_EQ(stride(fused, *joined, nest.reduced.back()).move, Move::next);
  EXPECT_THAT(vector_widths(fused, nest.inner()), ElementsAre(1)) << "101 elements of x";
}

TEST(JoinedReads, AViewOfAnOperandIsRead) {
  EXPECT_TRUE(joined_operand(with_joined_reads(with_computed_part("aten.detach.default"))));
}

// A vector could lie in two operands: the plan requires whole vectors only along last axes.
TEST(JoinedReads, ATransposedOperandIsChosenForEachElement) {
  Task task = with_computed_part("aten.t.default");
  for (TensorInfo& tensor : task.tensors)
    if (tensor.name == "y") tensor.shape = {33, 64};
  for (Value& value : task.graph.placeholders)
    if (value.name == "y") value.shape = {33, 64};
  EXPECT_FALSE(joined_operand(with_joined_reads(task)));
}

TEST(JoinedReads, AComputedOperandIsChosenForEachElement) {
  const Fused fused = with_joined_reads(with_computed_part("aten.relu.default"));
  EXPECT_FALSE(joined_operand(fused));
  EXPECT_TRUE(std::any_of(fused.insts.begin(), fused.insts.end(),
                          [](const Inst& inst) { return inst.code == kPartOfJoin; }));
}

}  // namespace
}  // namespace cutegen::recipes
