// SPDX-License-Identifier: Apache-2.0
// Slices: kernels read a part of a tensor where it lies, or an earlier stage copies it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recipes/emit/recipes.h"
#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

KernelProgram sliced_program(const std::string& name) {
  const Task task = golden_task(name);
  const RecipeMatch match = match_recipe(task, "sm_80");
  auto made = instantiate(task, match, match.safe);
  EXPECT_TRUE(made) << match.why;
  return made ? *made : KernelProgram{};
}

Json plan_of(const std::string& name) {
  return to_json(sliced_program(name).plan);
}

std::vector<std::string> demands_of(const std::string& name) {
  std::vector<std::string> list;
  const Json plan = plan_of(name);
  for (const Json& demand : plan.value("requires", Json::array())) list.push_back(demand);
  return list;
}

TEST(Slices, HalvesFollowTheSize) {
  for (const char* name : {"slice_halves", "slice_glu"}) {
    const Json plan = plan_of(name);
    EXPECT_EQ(plan.at("steps").size(), 1U) << name;
    EXPECT_THAT(plan.at("steps")[0].at("args").dump(), HasSubstr("1*(dim(out,1))*(stride(x,1))"))
        << name;
    EXPECT_THAT(demands_of(name), Not(Contains(HasSubstr("dim(x,1) =="))));
    EXPECT_THAT(demands_of(name), Contains("(dim(x,1)) % 2 == 0"));  // else the halves differ
    EXPECT_THAT(sliced_program(name).sources.begin()->second, HasSubstr("x + x_start"));
  }
}

// The start and every line of the tensor must keep vectors aligned.
TEST(Slices, VectorsStayAligned) {
  const std::string width = plan_of("slice_halves").at("symbols").at("vector");
  EXPECT_EQ(width,
            "n1 % 4 == 0 ? ((dim(x,1)) % 4 == 0 ? ((1*(dim(out,1))) % 4 == 0 ? 4 : 1) : 1) : 1");
  EXPECT_EQ(plan_of("slice_neighbours").at("symbols").at("vector"), 1);
}

TEST(Slices, ByNumbersDemandTheOfficialSize) {
  EXPECT_THAT(demands_of("slice_by_number"), Contains("dim(x,1) == 1024"));
  EXPECT_THAT(demands_of("slice_neighbours"), Not(Contains(HasSubstr("=="))));
}

TEST(Slices, CountFromTheEnd) {
  EXPECT_THAT(plan_of("slice_select").at("steps")[0].at("args").dump(),
              HasSubstr("(dim(x,1)-1)*(stride(x,1))"));
}

TEST(Slices, OfReducedValuesAreStagesOfTheirOwn) {
  EXPECT_EQ(plan_of("slice_of_softmax").at("steps").size(), 2U);
}

// cross_entropy(x[:, :-1].reshape(-1, C), labels[:, 1:].reshape(-1)) reads the slices in place, in
// whole vectors, and the chosen class once more. The second step adds the rows' losses.
TEST(Slices, OfLogitsAndLabelsThatAReshapeMergesAreReadInPlace) {
  const KernelProgram program = sliced_program("shifted_labels");
  const Json plan = to_json(program.plan);
  EXPECT_EQ(plan.at("steps").size(), 2U);
  EXPECT_EQ(plan.at("symbols").at("vector_1"), "r0_1 % 4 == 0 ? ((dim(x,2)) % 4 == 0 ? 4 : 1) : 1");
  EXPECT_THAT(program.sources.at("kernel_1.cu"), Not(HasSubstr("position")));
}

TEST(Slices, OfAFewPartsOfAReshapedTensorAreReadInPlace) {
  EXPECT_EQ(plan_of("slice_of_reshape").at("steps").size(), 1U);
  EXPECT_THAT(demands_of("slice_of_reshape"), Contains("dim(x,1) == 8*(dim(out,1))"));
}

// A number of parts as large as sixteen may follow a size of the task, so the plan requires the
// official size.
TEST(Slices, OfAReshapedTensorAreCopied) {
  Task task = golden_task("slice_of_reshape");
  for (Node& node : task.graph.nodes)
    for (Value& value : node.outputs)
      value.shape = value.name == "view" ? Shape{512, 16, 64} : Shape{512, 64};
  for (TensorInfo& tensor : task.tensors)
    if (tensor.role == TensorRole::output) tensor.shape = {512, 64};
  const RecipeMatch match = match_recipe(task);
  auto program = instantiate(task, match, match.safe);
  ASSERT_TRUE(program) << match.why;
  EXPECT_EQ(program->plan.steps.size(), 2U);
  EXPECT_THAT(to_json(program->plan).at("requires"), Contains("dim(x,1) == 1024"));
}

// The number of a part is an axis of the packed tensor, so nothing is copied before the heads move.
TEST(Slices, APartMayBecomeHeads) {
  for (const char* name : {"split_heads", "packed_select"}) {
    const Json plan = plan_of(name);
    ASSERT_EQ(plan.at("steps").size(), 1U) << name;
    const std::string args = plan.at("steps")[0].at("args").dump();
    EXPECT_THAT(args, HasSubstr("2*(1*(dim(out_0,1))*(dim(out_0,3)))")) << name;  // the third part
    EXPECT_THAT(args, HasSubstr("(3)*(dim(out_0,1))*(dim(out_0,3))")) << name;    // from row to row
    EXPECT_THAT(demands_of(name), Contains("dim(packed,2) == 3*(dim(out_0,1))*(dim(out_0,3))"));
  }
  EXPECT_THAT(demands_of("split_heads"),
              Contains("dim(bias,0) == 3*(dim(out_0,1))*(dim(out_0,3))"));
  EXPECT_EQ(plan_of("split_heads_norm").at("steps").size(), 1U);
}

// Each half of the result reads one half of the joined tensor, so nothing joins it in memory.
TEST(Joins, EqualPartsOfAnOutputShareAKernel) {
  const Json plan = plan_of("join_rope");
  ASSERT_EQ(plan.at("steps").size(), 1U);
  EXPECT_THAT(plan.at("steps")[0].at("args").dump(),
              HasSubstr("(dim(out,3)-((dim(x,3))/2))*(stride(out,3))"));
  EXPECT_FALSE(plan.contains("scratch") && !plan.at("scratch").empty());
  EXPECT_THAT(demands_of("join_rope"), Contains("dim(x,3) == 128"));
  EXPECT_EQ(plan_of("join_stack").at("steps").size(), 1U);
}

// One kernel writes both parts at shapes at which x and y have equal sizes. At other shapes, each
// part has a kernel with the part's own sizes.
TEST(Joins, PartsMayHaveOtherSizesAtOtherShapes) {
  const Task task = golden_task("join_of_three");
  const RecipeMatch match = match_recipe(task, "sm_90a");
  auto program = instantiate(task, match, match.safe);
  ASSERT_TRUE(program) << match.why;
  const Json plan = to_json(program->plan), steps = plan.at("steps");
  ASSERT_EQ(steps.size(), 4U);
  const std::string equal = "(dim(x,1) == dim(y,1))*(dim(x,1) == dim(z,1))";
  EXPECT_EQ(steps[0].at("when"), equal + " ? n_1 > 0 : 0");
  EXPECT_EQ(steps[1].at("when"), equal + " == 0 ? n_2 > 0 : 0");
  EXPECT_EQ(plan.at("symbols").at("n1_3"), "dim(y,1)*dim(y,2)*dim(y,3)");
  EXPECT_THAT(steps[3].at("args").dump(), HasSubstr("(dim(x,1)+dim(y,1))*(stride(out,1))"));
  EXPECT_THAT(plan.at("requires").dump(), Not(HasSubstr("%")));
  // The search changes only the parameters of the kernel that runs at the official shape.
  for (const RecipeParameter& parameter : match.parameters)
    EXPECT_FALSE(parameter.name.starts_with("s2_")) << parameter.name;
}

TEST(Joins, SizesThatAreEqualAtAllShapesAreRequired) {
  EXPECT_EQ(plan_of("join_of_two").at("steps").size(), 1U);
  EXPECT_THAT(demands_of("join_of_two"), Contains("dim(x,1) == dim(y,1)"));
  Task task = golden_task("join_of_two");
  task.shapes[1].tensors["y"][1] += 1;
  const RecipeMatch match = match_recipe(task, "sm_80");
  auto program = instantiate(task, match, match.safe);
  ASSERT_TRUE(program) << match.why;
  EXPECT_EQ(program->plan.steps.size(), 3U);
}

TEST(Joins, OutputsAndSumsOfTwoTensorsFollowTheirOwnSizes) {
  EXPECT_EQ(plan_of("outputs_of_two_tensors").at("steps").size(), 3U);
  EXPECT_EQ(plan_of("sums_of_two_tensors").at("steps").size(), 2U);
}

// stack() interleaves the elements of its tensors, and a slice reads every other element.
TEST(Joins, TurnsOfStackedTensorsShareAKernel) {
  const Json plan = plan_of("rope_interleaved");
  ASSERT_EQ(plan.at("steps").size(), 1U);
  EXPECT_THAT(demands_of("rope_interleaved"), Contains("(dim(out,2)) % 2 == 0"));
  // One access moves two neighbours, one for each of the two lists.
  const std::string source = sliced_program("rope_interleaved").sources.begin()->second;
  EXPECT_THAT(source, HasSubstr("make_shape(Int<kVector * 2>{}, shape), make_stride(Int<1>{}, "));
  EXPECT_THAT(source, HasSubstr("cutegen::load_turns(g_x(_, place(j)), r_x[i]);"));
  EXPECT_THAT(source, HasSubstr("r_x[i][0][v], "));
  EXPECT_THAT(source, HasSubstr("cutegen::store_turns(r_out, g_out(_, place(j)));"));
}

// Stages that do not read one another's results: the second begins while the first one ends.
TEST(Joins, PartsOfTwoOutputsOverlap) {
  const Task task = golden_task("rotated_pairs");
  const RecipeMatch match = match_recipe(task, "sm_90a");
  auto program = instantiate(task, match, match.safe);
  ASSERT_TRUE(program) << match.why;
  const Json plan = to_json(program->plan);
  ASSERT_EQ(plan.at("steps").size(), 2U);
  EXPECT_FALSE(plan.at("steps")[0].contains("pdl"));
  EXPECT_EQ(plan.at("steps")[1].at("pdl"), true);
  EXPECT_EQ(plan.at("arch")[0], "sm_90a");
  EXPECT_THAT(program->sources.at("kernel_1.cu"), HasSubstr("{\n  cutegen::allow_next_step();\n"));
  EXPECT_THAT(program->sources.at("kernel_2.cu"),
              HasSubstr("  cutegen::await_previous_step();\n}"));
  EXPECT_FALSE(to_json(sliced_program("rotated_pairs").plan).at("steps")[1].contains("pdl"));
}

// Vectors of one thread differ along the heads, so it reads the angles once.
TEST(Joins, VectorsOfAThreadShareWhatDoesNotDiffer) {
  const Task task = golden_task("rotated_pairs");
  const RecipeMatch match = match_recipe(task, "sm_80");
  Json params = match.safe;
  params["shared"] = 1, params["items"] = 4;
  auto program = instantiate(task, match, params);
  ASSERT_TRUE(program) << program.error().text();
  const std::string& source = program->sources.at("kernel_1.cu");
  EXPECT_THAT(source, HasSubstr("constexpr int kItems = ITEMS_1;"));
  EXPECT_THAT(source, HasSubstr("    cutegen::load(g_cos_1(_, 0, j), r_cos_1);"));
  EXPECT_THAT(source, HasSubstr("      cutegen::load_turns(g_q(_, i, j), r_q[i]);"));
  EXPECT_THAT(source, HasSubstr("Index(n1) / kItems"));
  const Json plan = to_json(program->plan);
  EXPECT_EQ(plan.at("symbols").at("items_1"), "n1_1 % 4 == 0 ? 4 : 1");
  EXPECT_EQ(plan.at("defines").at("ITEMS_1"), "items_1");
  EXPECT_EQ(plan.at("steps")[0].at("grid")[0], "ceil_div(n_1/(vector_1*items_1),256)");
}

// All heads of a row read the same angles. If the axis of heads lies outside the rows, the angles
// have left the L1 when the next head reads them. If it lies inside, they are still there.
TEST(Joins, SharingIsTheFirstChoiceWhereL1DoesNotHelp) {
  EXPECT_EQ(match_recipe(golden_task("join_rope"), "sm_90a").safe.at("shared"), 1);
  EXPECT_EQ(match_recipe(golden_task("rotated_pairs"), "sm_90a").safe.at("shared"), 0);
}

TEST(Joins, AProductIsCopiedIntoItsPart) {
  const Json plan = plan_of("join_of_product");
  EXPECT_EQ(plan.at("steps").size(), 3U);
  EXPECT_EQ(plan.at("scratch").size(), 1U);
}

// torch.cat() accepts an empty tensor of one axis beside tensors of any rank.
TEST(Joins, AnOperandOfAnotherRankIsRefused) {
  Task task = golden_task("join_in_the_middle");
  for (Value& value : task.graph.placeholders)
    if (value.name == "y") value.shape = {0};
  const RecipeMatch match = match_recipe(task, "sm_80");
  EXPECT_EQ(match.recipe, "");
  EXPECT_THAT(match.why, HasSubstr("operands of different ranks"));
}

// A reduction finds the operand of each vector. Vectors have one element at sizes at which the
// joined operands have no whole vectors.
TEST(Joins, AReductionReadsTheOperandOfEachVector) {
  const Task task = golden_task("join_in_the_middle");
  const RecipeMatch match = match_recipe(task);
  EXPECT_EQ(match.recipe, "reduction");
  auto program = instantiate(task, match, match.safe);
  ASSERT_TRUE(program) << program.error().text();
  const std::string& source = program->sources.begin()->second;
  EXPECT_THAT(source, HasSubstr("auto g_x = cutegen::joined(cutegen::positions<int>("));
  EXPECT_THAT(source, HasSubstr("cutegen::ends<int>(size0),"));
  EXPECT_THAT(source, HasSubstr("cutegen::load(g_x(_, j), e.x);"));
  EXPECT_THAT(source, Not(HasSubstr("cutegen::take<")));
  const Json plan = to_json(program->plan);
  const std::string vector = plan.at("symbols").at("vector");
  EXPECT_THAT(vector, HasSubstr("(dim(x,1)) % 4 == 0"));
  EXPECT_THAT(vector, HasSubstr("(dim(y,1)) % 4 == 0"));
  EXPECT_THAT(vector, HasSubstr("((0-(dim(x,1)))) % 4 == 0"));
}

// LayerNorm(384) of four strided slices with 96 channels each. The slices share the strides of x,
// and registers keep their elements in 16 bits.
TEST(Joins, SlicesOfOneTensorShareTheirAddresses) {
  const Task task = golden_task("patch_merging");
  const RecipeMatch match = match_recipe(task, "sm_90a");
  auto program = instantiate(task, match, match.safe);
  ASSERT_TRUE(program) << match.why;
  const std::string& source = program->sources.at("kernel_1.cu");
  EXPECT_THAT(source, HasSubstr("cutegen::ends<int>(size0, size1, size2),"));
  EXPECT_THAT(source, HasSubstr("cutegen::load_pack(g_x(_, j), e.x);"));
  EXPECT_THAT(source, HasSubstr("return cutegen::coordinates(at, across, inverse2, inverse1);"));
  const Json args = to_json(program->plan).at("steps")[0].at("args");
  for (const char* stride : {"2*(stride(x,2))", "2*(stride(x,1))", "stride(x,0)"})
    EXPECT_EQ(std::count(args.begin(), args.end(), Json{{"i64", stride}}), 1) << stride;
}

TEST(Slices, AreCopiedForAProduct) {
  const Json plan = plan_of("slice_into_product");
  EXPECT_EQ(plan.at("steps").size(), 2U);
  EXPECT_EQ(plan.at("steps")[0].at("kernel"), "elementwise_1");
}

// x[:, n - 5:n - 2] begins at another element at other sizes.
TEST(Slices, BoundsThatFollowSizesAreComputed) {
  EXPECT_THAT(plan_of("slice_from_size").at("steps").dump(), HasSubstr("(dim(x,1)-5)"));
  EXPECT_THAT(plan_of("slice_to_size").at("symbols").dump(), HasSubstr("(dim(x,1)-5)"));
  EXPECT_THAT(plan_of("split_by_sizes").dump(), HasSubstr("0+5"));
  EXPECT_THAT(plan_of("slice_of_residual").dump(), HasSubstr("4*(stride(x,2))"));
}

// The last elements of an axis begin at another element at other sizes, so a slice of them, too.
TEST(Slices, SlicesOfPartsFollowTheSize) {
  EXPECT_EQ(plan_of("slice_of_end").at("steps").size(), 2U);  // the end is copied first
  EXPECT_THAT(plan_of("slice_of_part").at("steps").dump(), HasSubstr("(dim(x,1))/2*1"));
  EXPECT_THAT(demands_of("slice_of_part"), Contains("(dim(x,1)) % 2 == 0"));
}

// chunk(3) of 128 elements gives parts of 43, 43 and 42 elements; split(64) gives parts of 64.
TEST(Slices, PartsOfASplitMayBeUnequal) {
  const Json plan = plan_of("chunk_unequal");
  EXPECT_EQ(plan.at("steps").size(), 2U);
  EXPECT_THAT(plan.dump(), HasSubstr("(ceil_div(dim(x,1),3)*2)*(stride(x,1))"));
  EXPECT_THAT(demands_of("chunk_unequal"), Not(Contains(HasSubstr("%"))));
  EXPECT_THAT(plan_of("split_by_number").dump(), HasSubstr("(64*1)*(stride(x,1))"));
  EXPECT_THAT(demands_of("split_by_number"), Not(Contains(HasSubstr("dim(x,1)"))));
}

// x[:, ::2] *= w: each turn of the columns has its own pointwise work.
TEST(Slices, TurnsThatAModuleReplacesAreStoredInPlace) {
  EXPECT_EQ(plan_of("turns_in_place").at("steps").size(), 1U);
  EXPECT_THAT(demands_of("turns_in_place"), Contains("(dim(out,1)) % 2 == 0"));
  EXPECT_THAT(demands_of("turns_of_rows"), Contains("(dim(x,0)) % 3 == 0"));
  for (const char* name : {"turns_then_norm", "turns_of_zeros"})
    EXPECT_THAT(demands_of(name), Contains(HasSubstr("% 2 == 0"))) << name;
}

}  // namespace
}  // namespace cutegen::recipes
