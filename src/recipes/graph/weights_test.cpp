// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/weights.h"

#include <gtest/gtest.h>

namespace cutegen::recipes {
namespace {

Json value_ref(const std::string& name) {
  return {{"ref", name}};
}

// A graph that unpacks `w` for a matrix of [64, 256].
class Unpacking {
 public:
  explicit Unpacking(DType dtype = DType::i8, Shape shape = {64, 256}) {
    graph_.placeholders = {{.name = "w", .dtype = dtype, .shape = std::move(shape)},
                           {.name = "row", .dtype = DType::bf16, .shape = {64, 1}},
                           {.name = "groups", .dtype = DType::bf16, .shape = {64, 2}},
                           {.name = "zeros", .dtype = DType::i8, .shape = {64, 2}}};
  }
  std::string add(const std::string& op, std::vector<Json> args, DType dtype, Shape shape) {
    const std::string name = "v" + std::to_string(graph_.nodes.size());
    graph_.nodes.push_back({.id = name,
                            .op = "aten." + op,
                            .args = std::move(args),
                            .outputs = {{.name = name, .dtype = dtype, .shape = shape}}});
    return name;
  }
  std::string cast(const std::string& from, Shape shape = {64, 256}, DType to = DType::bf16) {
    return add("_to_copy.default", {value_ref(from)}, to, std::move(shape));
  }
  std::string view(const std::string& from, DType dtype, Shape shape) {
    return add("view.default", {value_ref(from)}, dtype, std::move(shape));
  }
  std::string nibbles(int low = 0) {
    std::string half[2] = {add("bitwise_and.Scalar", {value_ref("w"), 15}, DType::u8, {64, 128}),
                           add("__rshift__.Scalar", {value_ref("w"), 4}, DType::u8, {64, 128})};
    return add("stack.default", {Json::array({value_ref(half[low]), value_ref(half[1 - low])}), -1},
               DType::u8, {64, 128, 2});
  }
  std::optional<PackedWeights> find(const std::string& value) const {
    return packed_weights(graph_, value);
  }

 private:
  Graph graph_;
};

TEST(PackedWeights, AScaleForEachRow) {
  Unpacking g;
  const auto found = g.find(
      g.add("mul.Tensor", {value_ref(g.cast("w")), value_ref("row")}, DType::bf16, {64, 256}));
  ASSERT_TRUE(found && found->scales);
  EXPECT_EQ(found->tensor, "w");
  EXPECT_EQ(found->scales->tensor, "row");
  EXPECT_EQ(found->scales->rows, 1);
  EXPECT_EQ(found->scales->depth, 0);
}

// (q - zeros) * scales for groups of 128.
std::string grouped(Unpacking& g, const std::string& q) {
  const Shape apart{64, 2, 128}, one{64, 2, 1};
  const std::string zeros = g.view("zeros", DType::i8, one),
                    scales = g.view("groups", DType::bf16, one);
  const std::string shifted =
      g.add("sub.Tensor", {value_ref(g.cast(g.view(q, DType::u8, apart), apart)), value_ref(zeros)},
            DType::bf16, apart);
  return g.view(g.add("mul.Tensor", {value_ref(scales), value_ref(shifted)}, DType::bf16, apart),
                DType::bf16, {64, 256});
}

TEST(PackedWeights, GroupsOfNibblesWithZeros) {
  for (int low : {0, 1}) {
    Unpacking g(DType::u8, {64, 128});
    const auto found = g.find(grouped(g, g.nibbles(low)));
    ASSERT_TRUE(found && found->scales && found->zeros);
    EXPECT_TRUE(found->nibbles);
    EXPECT_EQ(found->high_first, low == 1);
    EXPECT_EQ(found->scales->depth, 128);
    EXPECT_EQ(found->zeros->tensor, "zeros");
  }
}

TEST(PackedWeights, OtherArithmeticIsNotUnpacking) {
  Unpacking bytes(DType::u8);
  // 8-bit integers wrap around.
  EXPECT_FALSE(
      bytes.find(bytes.cast(bytes.add("sub.Tensor", {value_ref("w"), 8}, DType::u8, {64, 256}))));
  // The zero comes after the scale.
  Unpacking g;
  const std::string scaled =
      g.add("mul.Tensor", {value_ref(g.cast("w")), value_ref("row")}, DType::bf16, {64, 256});
  EXPECT_FALSE(g.find(g.add("sub.Tensor", {value_ref(scaled), 8}, DType::bf16, {64, 256})));
  EXPECT_FALSE(g.find(g.add("exp.default", {value_ref(g.cast("w"))}, DType::bf16, {64, 256})));
  // Each weight has a scale of its own.
  EXPECT_FALSE(g.find(
      g.add("mul.Tensor", {value_ref(g.cast("w")), value_ref("w")}, DType::bf16, {64, 256})));
  // The other half of the byte is missing.
  Unpacking half(DType::u8, {64, 128});
  const std::string low =
      half.add("bitwise_and.Scalar", {value_ref("w"), 15}, DType::u8, {64, 128});
  const std::string twice =
      half.add("stack.default", {Json::array({value_ref(low), value_ref(low)}), -1}, DType::u8,
               {64, 128, 2});
  EXPECT_FALSE(half.find(half.cast(half.view(twice, DType::u8, {64, 256}))));
}

}  // namespace
}  // namespace cutegen::recipes
