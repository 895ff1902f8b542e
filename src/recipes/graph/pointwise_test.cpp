// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/pointwise.h"

#include <gtest/gtest.h>

namespace cutegen::recipes {
namespace {

Json ref(const std::string& name) {
  return {{"ref", name}};
}

Node node(const std::string& op, std::vector<Json> args, Json kwargs = Json::object(),
          DType dtype = DType::f32) {
  return Node{.id = "n",
              .op = op,
              .args = std::move(args),
              .kwargs = std::move(kwargs),
              .outputs = {Value{.name = "n", .dtype = dtype, .shape = {4}}}};
}

std::string code(const Node& n) {
  auto p = lower_pointwise(n);
  if (!p) return "error: " + p.error().message;
  return *p ? (*p)->code : "none";
}

TEST(BaseName, DropsNamespaceOverloadAndInPlaceMark) {
  EXPECT_EQ(base_name("aten.relu_.default"), "relu");
  EXPECT_EQ(base_name("aten._softmax.default"), "_softmax");
  EXPECT_EQ(base_name("aten.add.Tensor"), "add");
  EXPECT_TRUE(is_in_place("aten.add_.Tensor"));
  EXPECT_FALSE(is_in_place("aten.add.Tensor"));
}

TEST(Literal, IsAFloatThatReadsBackTheSame) {
  EXPECT_EQ(literal(1), "1.0f");
  EXPECT_EQ(literal(0.01), "0.01f");
  EXPECT_EQ(literal(1e-5), "1e-05f");
  EXPECT_EQ(literal(-2), "(-2.0f)");
  EXPECT_EQ(literal(1e300), "cutegen::infinity()");
  EXPECT_EQ(literal(-1e300), "(-cutegen::infinity())");
  EXPECT_EQ(literal(number(Json{{"float", "nan"}}).value()), "cutegen::not_a_number()");
}

TEST(Pointwise, FillsArgumentsKeywordsAndDefaults) {
  EXPECT_EQ(code(node("aten.leaky_relu.default", {ref("x")})), "cutegen::leaky_relu({0}, 0.01f)");
  EXPECT_EQ(code(node("aten.leaky_relu.default", {ref("x"), 0.2})),
            "cutegen::leaky_relu({0}, 0.2f)");
  EXPECT_EQ(code(node("aten.addcmul.default", {ref("a"), ref("b"), ref("c")}, {{"value", 2}})),
            "{0} + 2.0f * {1} * {2}");
  EXPECT_EQ(code(node("aten.gelu.default", {ref("x")}, {{"approximate", "tanh"}})),
            "cutegen::gelu_tanh({0})");
}

TEST(Pointwise, AlphaOfSumsAndDifferences) {
  EXPECT_EQ(code(node("aten.add.Tensor", {ref("x"), ref("y")})), "{0} + {1}");
  EXPECT_EQ(code(node("aten.add.Tensor", {ref("x"), ref("y")}, {{"alpha", 2}})),
            "{0} + 2.0f * {1}");
  EXPECT_EQ(code(node("aten.rsub.Scalar", {ref("x"), 1})), "1.0f - {0}");
  EXPECT_EQ(code(node("aten.mul.Tensor", {ref("x"), ref("x")})), "{0} * {0}");
}

TEST(Pointwise, PowersOfSmallIntegersAreProducts) {
  EXPECT_EQ(code(node("aten.pow.Tensor_Scalar", {ref("x"), 2})), "cutegen::square({0})");
  EXPECT_EQ(code(node("aten.pow.Tensor_Scalar", {ref("x"), 3.0})), "cutegen::cube({0})");
  EXPECT_EQ(code(node("aten.pow.Tensor_Scalar", {ref("x"), 2.5})), "powf({0}, 2.5f)");
  EXPECT_EQ(code(node("aten.pow.Scalar", {2, ref("x")})), "powf(2.0f, {0})");
}

TEST(Pointwise, ClampWithOneLimit) {
  EXPECT_EQ(code(node("aten.clamp.default", {ref("x"), 0, 1})), "cutegen::clamp({0}, 0.0f, 1.0f)");
  EXPECT_EQ(code(node("aten.clamp.default", {ref("x"), nullptr, 1})),
            "cutegen::clamp_max({0}, 1.0f)");
  EXPECT_EQ(code(node("aten.clamp.default", {ref("x"), 0})), "cutegen::clamp_min({0}, 0.0f)");
}

TEST(Pointwise, ComparisonsAreTruthValues) {
  auto p = lower_pointwise(node("aten.gt.Scalar", {ref("x"), 0}, Json::object(), DType::boolean));
  ASSERT_TRUE(p && *p);
  EXPECT_TRUE((*p)->boolean);
}

TEST(Pointwise, CastsRoundAsAStoreWould) {
  EXPECT_EQ(code(node("aten._to_copy.default", {ref("x")}, Json::object(), DType::bf16)),
            "cutegen::round_to<bfloat16_t>({0})");
  EXPECT_EQ(code(node("aten._to_copy.default", {ref("x")}, Json::object(), DType::f8e4m3)),
            "cutegen::round_to<float_e4m3_t>({0})");
  EXPECT_EQ(code(node("aten._to_copy.default", {ref("x")}, Json::object(), DType::u8)),
            "truncf({0})");
  EXPECT_EQ(code(node("aten._to_copy.default", {ref("x")}, Json::object(), DType::i16)),
            "error: aten._to_copy.default: a cast to i16");
}

TEST(Pointwise, LossesArePointwiseWhereNothingIsReduced) {
  EXPECT_EQ(code(node("aten.mse_loss.default", {ref("x"), ref("y"), 0})),
            "cutegen::square({0} - {1})");
  EXPECT_EQ(code(node("aten.mse_loss.default", {ref("x"), ref("y"), 1})), "none");
  EXPECT_EQ(code(node("aten.huber_loss.default", {ref("x"), ref("y"), 0, 2.0})),
            "cutegen::huber({0} - {1}, 2.0f)");
  EXPECT_EQ(code(node("aten.binary_cross_entropy.default", {ref("x"), ref("y"), ref("w"), 0})),
            "error: aten.binary_cross_entropy.default with weights");
  EXPECT_EQ(code(node("aten.lerp.Scalar", {ref("x"), ref("y"), 0.25})),
            "cutegen::lerp({0}, {1}, 0.25f)");
}

TEST(Pointwise, SaysWhatItDoesNotCover) {
  EXPECT_EQ(code(node("aten.mm.default", {ref("x"), ref("y")})), "none");
  EXPECT_EQ(code(node("aten.round.decimals", {ref("x"), 2})), "(rintf({0} * 100.0f) / 100.0f)");
  EXPECT_EQ(code(node("aten.threshold.default", {ref("x"), 1, nullptr})),
            "error: aten.threshold.default: argument value is neither a tensor nor a number");
}

}  // namespace
}  // namespace cutegen::recipes
