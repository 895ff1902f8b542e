// SPDX-License-Identifier: Apache-2.0
// Composites, rare scans and orders: each golden task has a program whose plan fits the task.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recipes/composites/composites.h"
#include "recipes/emit/recipes.h"
#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Composite {
  const char* task;
  const char* recipe;
  size_t steps;
};

KernelProgram composite_program(const std::string& name) {
  const Task task = golden_task(name);
  const RecipeMatch match = match_recipe(task, "sm_90a");
  auto made = instantiate(task, match, match.safe);
  EXPECT_TRUE(made) << name << ": " << match.why;
  if (!made) return {};
  for (const Error& error : check_plan(made->plan, task)) ADD_FAILURE() << name << error.text();
  return *made;
}

std::string text_of(const KernelProgram& program) {
  std::string text;
  for (const auto& [file, source] : program.sources) text += source;
  return text;
}

TEST(Composites, EachHasAProgramOfFewSteps) {
  for (const Composite& c :
       std::initializer_list<Composite>{{"scan_places", "scan", 1},
                                        {"scan_log_sum", "scan", 1},
                                        {"scan_integers", "scan", 1},
                                        {"composite_diagonal", "elementwise", 1},
                                        {"composite_unfold", "reduction", 1},
                                        {"composite_columns", "elementwise", 1},
                                        {"composite_pool_places", "reduction", 1},
                                        {"composite_scatter", "elementwise", 2},
                                        {"composite_index_add", "elementwise", 2},
                                        {"composite_slice_scatter", "elementwise", 3},
                                        {"composite_logits", "reduction", 1},
                                        {"composite_bag", "reduction", 1},
                                        {"composite_search", "reduction", 1},
                                        {"scan_integer_product", "scan", 1},
                                        {"integer_product", "reduction", 1},
                                        {"put_by_mask", "elementwise", 1}}) {
    const Task task = golden_task(c.task);
    EXPECT_EQ(match_recipe(task, "sm_90a").recipe, c.recipe) << c.task;
    EXPECT_EQ(composite_program(c.task).plan.steps.size(), c.steps) << c.task;
  }
}

TEST(Composites, OthersHaveAProgramToo) {
  for (const char* name :
       {"sort_integers", "composite_image", "composite_index_copy", "composite_circular",
        "composite_median", "composite_distance", "composite_weight_norm", "composite_grid",
        "heads_of_attention", "windows_of_image", "composite_one_image", "composite_cross",
        "resize_to_other", "slices_to_the_end", "masked_operand", "order_of_product",
        "scatter_booleans", "integers_narrowed"})
    (void)composite_program(name);
}

// Windows of two by two elements that do not overlap. All loads are vectors: of eight elements of a
// row, four are in slices from 0 and four in slices from 1.
TEST(Composites, MaxPoolingOfWindowsApartReadsSlices) {
  const Task task = golden_task("pool_halves");
  EXPECT_EQ(match_recipe(task, "sm_90a").recipe, "elementwise");
  const KernelProgram program = composite_program("pool_halves");
  EXPECT_EQ(program.plan.steps.size(), 1U);
  EXPECT_THAT(text_of(program), HasSubstr("load_turns"));
  EXPECT_THAT(to_json(program.plan).at("requires").dump(), HasSubstr("(dim(x,3)) % 2 == 0"));
  // The windows of pool_line overlap.
  EXPECT_EQ(match_recipe(golden_task("pool_line"), "sm_90a").recipe, "windows");
}

// A group norm would read the slices from copies, so it reads the result of a pooling kernel.
TEST(Composites, MaxPoolingBeforeANormIsPooling) {
  const auto expanded = [](const std::string& reader) {
    Graph g;
    g.placeholders = {{.name = "x", .dtype = DType::f32, .shape = {2, 4, 8, 8}}};
    const auto value = [](const std::string& name) {
      return Value{.name = name, .dtype = DType::f32, .shape = {2, 4, 4, 4}};
    };
    Node pool{.id = "pool",
              .op = "aten.max_pool2d_with_indices.default",
              .args = {Json{{"ref", "x"}}, Json{2, 2}, Json{2, 2}},
              .outputs = {value("pool"), value("places")}};
    Node last{
        .id = "last", .op = reader, .args = {Json{{"ref", "pool"}}}, .outputs = {value("out")}};
    g.nodes = {pool, last};
    g.outputs = {"out"};
    return expand_composites(g).producer("pool")->op;
  };
  EXPECT_EQ(expanded("aten.relu.default"), "aten.maximum.default");
  EXPECT_EQ(expanded("aten.native_group_norm.default"), "aten.max_pool2d_with_indices.default");
}

// Each stage names the sizes of its result, so expressions stay short in a deep network.
TEST(Composites, SizesOfKeptValuesHaveNames) {
  const Json plan = to_json(composite_program("deep_convolutions").plan);
  EXPECT_THAT(plan.at("symbols").dump(), HasSubstr("relu_14_size3"));
  for (const char* part : {"symbols", "defines"})
    for (const auto& [name, text] : plan.at(part).items())
      EXPECT_LT(text.dump().size(), 400U) << name;
}

// torch.arange(20) has 20 elements at every shape, but an axis of the same official size may
// change.
TEST(Composites, PositionsOfAFixedNumberRequireThatSize) {
  for (const char* name : {"counted_classes", "counted_down"})
    EXPECT_THAT(to_json(composite_program(name).plan).at("requires"),
                testing::Contains("dim(x,1) == 20"));
}

// n - 1 is computed from n at every shape; of 2 * n only the official value is known.
TEST(Composites, NumbersThatFollowSizesAreComputedOrRequireThem) {
  for (const char* name : {"sizes_less_one", "counted_down_to_zero"})
    EXPECT_THAT(to_json(composite_program(name).plan).value("requires", Json::array()).dump(),
                Not(HasSubstr("==")))
        << name;
  const Json plan = to_json(composite_program("twice_a_size").plan);
  EXPECT_THAT(plan.at("requires"),
              testing::IsSupersetOf({Json("dim(x,0) == 15"), Json("dim(x,1) == 19")}));
}

// Integers divide by a size, and positions may go in steps up to a size.
TEST(Composites, IntegersFollowSizes) {
  EXPECT_THAT(text_of(composite_program("integers_by_size")),
              HasSubstr("cutegen::floor_div(x_value, int64_t(size"));
  const Json plan = to_json(composite_program("counted_in_steps").plan);
  EXPECT_THAT(plan.value("requires", Json::array()).dump(), Not(HasSubstr("== 10")));
}

// The experts' axes come from the weights, also behind a view of the product.
TEST(Composites, ResultsOfEinsumKeepTheSizesOfTheirAxes) {
  const Json plan = to_json(composite_program("experts_of_einsum").plan);
  EXPECT_THAT(plan.at("scratch").dump(), Not(HasSubstr("max(1,32)")));
}

// Positions and constants are no tensors of the plan.
TEST(Composites, PositionsAndConstantsAreComputed) {
  for (const char* name :
       {"mask_of_positions", "positions_after_convolution", "constant_channels"}) {
    const KernelProgram program = composite_program(name);
    EXPECT_THAT(to_json(program.plan).dump(), Not(HasSubstr("\"place\""))) << name;
  }
  EXPECT_THAT(text_of(composite_program("constant_channels")), HasSubstr("0.6"));
}

// A graph with a warning lacks a write, or has a tensor that nobody passes to a kernel.
TEST(Composites, AGraphWithAWarningHasNoProgram) {
  Task task = golden_task("constant_channels");
  task.graph.warnings.emplace_back("'constant' is a tensor that is neither input nor parameter");
  EXPECT_THAT(match_recipe(task, "sm_90a").why, HasSubstr("'constant'"));
}

// The products of a cross product read four different values.
TEST(Composites, NodesOfARuleHaveDifferentNames) {
  const std::string text = text_of(composite_program("composite_cross"));
  EXPECT_THAT(text, Not(HasSubstr("x_value * x_value")));
  EXPECT_THAT(text, HasSubstr("y_value"));
}

// A window's place along an axis is a sum of multiples of positions, so no index tensor is needed.
TEST(Composites, WindowsAreReadAtComputedPlaces) {
  const KernelProgram program = composite_program("composite_columns");
  EXPECT_TRUE(to_json(program.plan).value("scratch", Json::array()).empty());
  EXPECT_THAT(text_of(program), HasSubstr("cutegen::positions<int>("));
}

// Only sums at equal places need atomic operations.
TEST(Composites, ScattersAddAtomically) {
  EXPECT_THAT(text_of(composite_program("composite_scatter")), HasSubstr("cutegen::add_at("));
  EXPECT_THAT(text_of(composite_program("composite_slice_scatter")),
              Not(HasSubstr("cutegen::add_at(")));
}

// The scratch of zeros_like(x) has the sizes of x, not its official sizes.
TEST(Composites, AScatterIntoZerosHasTheSizesOfItsModel) {
  const Json plan = to_json(composite_program("scatter_rows").plan);
  EXPECT_EQ(plan.at("scratch")[0].at("shape").dump(), "[\"dim(x,0)*dim(x,1)\"]");
  // zeros_like(softmax(x)) reads no softmax, so its kernel has no reduced axis.
  const Json sorted = to_json(composite_program("scatter_sorted").plan);
  for (const Json& scratch : sorted.at("scratch"))
    EXPECT_EQ(scratch.at("shape").dump(), "[\"dim(logits,0)*dim(logits,1)\"]");
  EXPECT_THAT(sorted.at("symbols").dump(), Not(HasSubstr("32")));
}

// The number of merges follows from the row's length, and decides which scratch is the result.
TEST(Composites, LongRowsAreMerged) {
  const Json plan = to_json(composite_program("sort_long").plan);
  EXPECT_EQ(plan.at("scratch").size(), 4U);  // values, positions, and both lists of keys
  EXPECT_THAT(plan.at("steps").dump(), HasSubstr("sort_1_merge11"));
  EXPECT_THAT(plan.at("requires").dump(), HasSubstr("r0_1 <= 16777216"));
}

TEST(Composites, PositionsOfScansAreIntegers) {
  EXPECT_THAT(text_of(composite_program("scan_places")),
              HasSubstr("cutegen::scan_row<cutegen::LargestPlace"));
  EXPECT_THAT(text_of(composite_program("scan_integers")),
              HasSubstr("cutegen::scan_column<cutegen::AddIntegers"));
  EXPECT_THAT(text_of(composite_program("scan_integer_product")),
              HasSubstr("cutegen::scan_row<cutegen::MultiplyIntegers"));
}

}  // namespace
}  // namespace cutegen::recipes
