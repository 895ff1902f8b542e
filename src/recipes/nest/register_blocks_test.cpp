// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/register_blocks.h"

#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

// Returns the loop nest of x.transpose(1, 2) + y, whose result has [8, rows, columns].
Fused transposed(int64_t rows, int64_t columns, DType dtype = DType::f32) {
  Task task = golden_task("transposed");
  const auto shape_of = [&](const std::string& name) {
    return name == "x" ? Shape{8, columns, rows} : Shape{8, rows, columns};
  };
  for (TensorInfo& tensor : task.tensors)
    tensor.shape = shape_of(tensor.name), tensor.dtype = dtype;
  for (Value& value : task.graph.placeholders)
    value.shape = shape_of(value.name), value.dtype = dtype;
  for (Node& node : task.graph.nodes)
    node.outputs[0].shape = shape_of(""), node.outputs[0].dtype = dtype;
  auto fused = fuse(task);
  if (!fused) throw std::runtime_error(fused.error().text());
  return *fused;
}

std::optional<Block> block_of(const Fused& fused) {
  return block_of(fused, make_nest(fused));
}

TEST(RegisterBlocks, ATranspositionReadsAndWritesVectorsOf16Bytes) {
  const auto floats = block_of(transposed(40, 96)),
             halves = block_of(transposed(40, 96, DType::f16));
  ASSERT_TRUE(floats && halves);
  EXPECT_EQ(floats->loop, 1);
  EXPECT_EQ(floats->across, 4);
  EXPECT_EQ(floats->down, 4);
  EXPECT_FALSE(floats->dense);
  EXPECT_EQ(halves->across, 8);
  EXPECT_EQ(halves->down, 8);
  EXPECT_EQ(across_text(*floats, "n2"), "n2 % 4 == 0 ? 4 : 1");
  EXPECT_EQ(down_text(*floats, "n2", "n1"), "n1 % 4 == 0 ? 4 : 1");
}

TEST(RegisterBlocks, ShortLinesAndSizesThatAreNoMultiplesHaveNone) {
  EXPECT_FALSE(block_of(transposed(42, 96))) << "the operand's lines are not multiples";
  EXPECT_FALSE(block_of(transposed(40, 98))) << "the results' lines are not multiples";
  EXPECT_FALSE(block_of(transposed(40, 16))) << "a warp would write parts of sectors";
}

// A thread reads such an operand once for a vector.
TEST(RegisterBlocks, AnOperandWithoutALongInnermostAxisNeedsNone) {
  Fused fused = transposed(40, 96);
  for (Operand& input : fused.inputs)
    if (input.tensor == "x") input.axes = {input.axes[0], -1, input.axes[2]}, input.shape[1] = 1;
  EXPECT_FALSE(block_of(fused));
}

TEST(RegisterBlocks, AShortInnermostAxisFitsIntoABlock) {
  const Fused fused = transposed(40, 3);
  const auto block = block_of(fused);
  ASSERT_TRUE(block);
  EXPECT_TRUE(block->dense);
  EXPECT_EQ(block->across, 3);
  EXPECT_EQ(block->down, 4);
  EXPECT_EQ(across_text(*block, "n2"), "n2 <= 8 ? n2 : 1");
  EXPECT_EQ(down_text(*block, "n2", "n1"), "n2 <= 8 ? (n1 % 4 == 0 ? 4 : 1) : 1");
  EXPECT_TRUE(contiguous_block(fused, make_nest(fused), *block, fused.outputs[0].operand));
  for (const Operand& input : fused.inputs)
    EXPECT_EQ(contiguous_block(fused, make_nest(fused), *block, input), input.tensor == "y");
}

}  // namespace
}  // namespace cutegen::recipes
