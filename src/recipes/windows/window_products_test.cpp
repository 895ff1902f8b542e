// SPDX-License-Identifier: Apache-2.0
#include "recipes/windows/window_products.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "core/program.h"
#include "recipes/emit/recipes.h"
#include "recipes/spatial/conv_products.h"
#include "recipes/testing/test_tasks.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {
namespace {

using testing::HasSubstr;
using testing::Not;

struct ProductsCase {
  Task task;
  RecipeMatch match;
  KernelProgram program;
  std::string text;  // of all kernels
  explicit ProductsCase(const std::string& name, bool tf32 = true,
                        std::string_view arch = kHopperArch)
      : task(golden_task(name)) {
    task.tf32_convolutions = tf32;
    match = match_recipe(task, arch);
    auto made = instantiate(task, match, match.safe);
    if (!made) throw std::runtime_error(made.error().text());
    program = std::move(*made);
    for (const auto& [file, source] : program.sources) text += source;
  }
  Json plan() const { return to_json(program.plan); }
};

// One kernel copies the blocks, and one rounds the filter. TMA loads both.
TEST(WindowProducts, MultipliesBlocksOfTheImage) {
  const ProductsCase c("conv_blocks_floats");
  EXPECT_EQ(c.match.recipe, "matmul");
  EXPECT_EQ(c.plan().at("steps").size(), 3U);
  EXPECT_THAT(c.text, HasSubstr("cutegen::round_to_tf32("));
  EXPECT_THAT(c.text, HasSubstr("cutegen::WgmmaGemm<tfloat32_t, float, float"));
  const std::string plan = c.plan().dump();
  EXPECT_THAT(plan, HasSubstr("(dim(x,3)) % max(1,(dim(conv_weight,3))) == 0"));
  EXPECT_THAT(plan, Not(HasSubstr("== 48")));  // any number of blocks
}

// Otherwise the evaluator could not test the program.
TEST(WindowProducts, NeedsATestShapeThatBlocksCover) {
  Task task = golden_task("conv_blocks_floats");
  task.tf32_convolutions = true;
  for (ShapeCase& shape : task.shapes)
    if (shape.kind != ShapeKind::official) shape.tensors.at("x")[3] = 31;
  EXPECT_EQ(match_recipe(task, kHopperArch).recipe, "windows");
  task.shapes.resize(1);  // no test shape at all
  EXPECT_EQ(match_recipe(task, kHopperArch).recipe, "matmul");
}

TEST(WindowProducts, KeepsFloatsThatMustNotBeRounded) {
  const ProductsCase c("conv_blocks_floats", false);
  EXPECT_EQ(c.match.recipe, "matmul");
  EXPECT_THAT(c.text, Not(HasSubstr("round_to_tf32")));
  EXPECT_THAT(c.text, Not(HasSubstr("tfloat32_t")));
}

// The product reads the images in place.
TEST(WindowProducts, RoundsFloatsOfPixelsInTheProduct) {
  const ProductsCase tf32("conv_pixels_floats"), fp32("conv_pixels_floats", false);
  for (const ProductsCase* c : {&tf32, &fp32}) EXPECT_EQ(c->match.recipe, "matmul");
  EXPECT_THAT(tf32.text, HasSubstr("true, false, 1>"));
  EXPECT_THAT(fp32.text, Not(HasSubstr("true, false, 1>")));
}

// 14 x 14 pixels of 16 bits are not a multiple of 16 bytes, which TMA needs. A copy of all images
// has one row for each channel.
TEST(WindowProducts, GathersPixelsThatTmaCannotRead) {
  const ProductsCase c("conv_pixels_bf16");
  EXPECT_EQ(c.match.recipe, "matmul");
  const Json plan = c.plan();
  ASSERT_EQ(plan.at("steps").size(), 2U);
  EXPECT_EQ(plan.at("tensor_maps").at("map_b_2").at("strides")[2], 16);  // one matrix
  EXPECT_THAT(plan.at("symbols").at("vector_out_2").dump(), HasSubstr("% 4 == 0 ? 4"));
  EXPECT_EQ(c.match.safe.at("s1_items"), 4);  // vectors of a thread that copies
}

// Returns the recipe for a 16-bit convolution with this filter and images.
std::string recipe_of_halves(int64_t channels, int64_t depth, int64_t height, int64_t width) {
  Task task = golden_task("conv_pixels_bf16");
  const std::map<std::string, Shape> shapes{{"x", {64, depth, height, width}},
                                            {"c.weight", {channels, depth, 1, 1}},
                                            {"c.bias", {channels}},
                                            {"out", {64, channels, height, width}}};
  for (TensorInfo& tensor : task.tensors) tensor.shape = shapes.at(tensor.name);
  for (Value& value : task.graph.placeholders) value.shape = shapes.at(value.name);
  for (Node& node : task.graph.nodes) node.outputs[0].shape = shapes.at("out");
  return match_recipe(task, kHopperArch).recipe;
}

TEST(WindowProducts, CopiesPixelsOnlyForDeepFilters) {
  EXPECT_EQ(recipe_of_halves(256, 1024, 14, 14), "matmul");
  EXPECT_EQ(recipe_of_halves(1024, 256, 14, 14), "windows");
  EXPECT_EQ(recipe_of_halves(512, 512, 14, 14), "windows");
  EXPECT_EQ(recipe_of_halves(512, 2048, 7, 7), "windows");
  EXPECT_EQ(recipe_of_halves(512, 128, 28, 28), "matmul");  // in place
}

// 8 pixels of a channel share the factor of a batch norm.
TEST(WindowProducts, ComputesTheFactorOfABatchNormOncePerVector) {
  const ProductsCase c("conv_norm_bf16");
  EXPECT_EQ(c.match.recipe, "matmul");
  const size_t shared = c.text.find("void compute_shared("), one = c.text.find("void compute(");
  ASSERT_NE(shared, std::string::npos) << c.text;
  ASSERT_LT(shared, one) << c.text;
  EXPECT_LT(c.text.rfind("rsqrt("), one) << c.text;
  EXPECT_THAT(c.text, HasSubstr("compute_shared(r_n_running_var[0], r_n_weight[0], "));
}

TEST(WindowProducts, LeavesOtherGpusToTheirKernels) {
  EXPECT_EQ(ProductsCase("conv_pixels_floats", true, "sm_80").match.recipe, "windows");
}

TEST(WindowProducts, NeedsWindowsSideBySide) {
  const Window one{.kernel = {1, 1}, .stride = {1, 1}, .padding = {0, 0}, .dilation = {1, 1}};
  EXPECT_EQ(product_form(one, {2, 3, 7, 9}), ProductForm::pixels);
  Window block = one;
  block.kernel = block.stride = {4, 2};
  EXPECT_EQ(product_form(block, {2, 3, 8, 6}), ProductForm::blocks);
  EXPECT_EQ(product_form(block, {2, 3, 9, 6}),
            ProductForm::none);  // a row is in no window
  for (const auto& change : std::vector<std::function<void(Window&)>>{
           [](Window& w) { w.stride = {2, 2}; }, [](Window& w) { w.padding = {0, 1}; },
           [](Window& w) { w.behind = {0, 1}; }, [](Window& w) { w.dilation = {2, 1}; },
           [](Window& w) { w.groups = 3; }, [](Window& w) { w.kind = WindowKind::transposed; }}) {
    Window other = one;
    change(other);
    EXPECT_EQ(product_form(other, {2, 3, 8, 8}), ProductForm::none);
  }
}

}  // namespace
}  // namespace cutegen::recipes
