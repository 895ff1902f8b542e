// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/recipes.h"
#include "recipes/text/program_part.h"

#include <gmock/gmock.h>

#include <set>

#include "recipes/graph/names.h"
#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using recipes::golden_task;
using testing::HasSubstr;
using testing::Not;

class EveryTask : public testing::TestWithParam<const char*> {};

// The safe program, its neighbours and their neighbours have complete text, and plans that fit the
// task.
TEST_P(EveryTask, GivesSoundProgramsForAllParameters) {
  Task task = golden_task(GetParam());
  RecipeMatch match = match_recipe(task);
  ASSERT_FALSE(match.recipe.empty()) << match.why;
  std::set<std::string> seen;
  std::vector<Json> work{match.safe};
  for (const Json& near : neighbours(match, match.safe)) work.push_back(near);
  for (const Json& near : neighbours(match, work.back())) work.push_back(near);
  for (const Json& params : work) {
    auto program = instantiate(task, match, params);
    ASSERT_TRUE(program) << program.error().text();
    for (const auto& [file, source] : program->sources) {
      EXPECT_THAT(source, HasSubstr("extern \"C\" __global__"));
      EXPECT_THAT(source, Not(HasSubstr("{{")));
    }
    for (const Error& error : check_plan(program->plan, task)) ADD_FAILURE() << error.text();
    seen.insert(program_id(*program));
  }
  EXPECT_GT(seen.size(), 3u);
}

INSTANTIATE_TEST_SUITE_P(
    Recipes, EveryTask,
    testing::Values("relu", "gelu_bias", "scalar_scale", "transposed", "two_outputs", "half",
                    "in_place", "masked", "softmax_last", "softmax_first", "softmax_by_hand",
                    "rms_middle", "layer_norm", "mean_middle", "max_first", "logsumexp", "sum_all",
                    "flat_sum", "var", "norm_dotted", "group_norm", "instance_norm", "batch_norm",
                    "layer_norm_wide", "argmax_middle", "argmin_last", "max_with_index", "mse",
                    "huber", "kl_div", "cross_entropy", "triplet", "cosine", "hinge", "frobenius",
                    "frobenius_large", "sum_columns_large", "sum_two_axes", "softmax_then_sum",
                    "two_axes", "merge_states", "add_norm_in_place", "merged_views", "mm_plain",
                    "mm_turned", "mm_bias_residual", "mm_batched", "mm_scores", "mm_einsum",
                    "mm_heads", "mm_upper", "mm_transposed_out", "mm_baddbmm", "mm_large_k",
                    "mm_diagonal", "mm_vector", "mm_row", "mm_linear_3d", "no_matmul", "sized",
                    "sized_rows", "mm_sized", "lifted", "mm_two_products", "mm_computed_factor",
                    "mm_softmax_after", "mm_repeated_product", "lowest_plus_bias", "mish_by_hand",
                    "attention_causal", "attention_mask", "attention_by_hand", "gelu_group_norm",
                    "layer_norm_short", "take_rows", "take_along", "take_then_norm", "take_and_sum",
                    "take_two", "take_by_places", "window_partition", "local_response",
                    "resize_twice", "standardize_columns", "quantize_rows", "counts", "top_k",
                    "sort_rows", "joined_qkv", "joined_gate", "joined_packed", "joined_weights",
                    "joined_overlap", "joined_strided", "standardise_columns", "channel_rms_half",
                    "roll_two", "pad_reflect", "one_hot_sum", "cat_then_norm", "triangle",
                    "sort_first", "joined_mean", "pooled_line", "train_norm", "patch_merging",
                    "pool_by_softmax"));

// Kernels compute positions along an axis instead of reading a tensor.
TEST(Recipes, ReadsElementsAtComputedPlaces) {
  const auto source_of = [](const char* name) {
    Task task = golden_task(name);
    RecipeMatch match = match_recipe(task);
    auto program = instantiate(task, match, match.safe);
    EXPECT_TRUE(program) << program.error().text();
    return program ? program->sources.begin()->second + to_json(program->plan).dump() : "";
  };
  EXPECT_THAT(source_of("roll_two"), HasSubstr("cutegen::take<5>("));
  EXPECT_THAT(source_of("roll_two"), HasSubstr("= cutegen::positions<int>(0,"));
  EXPECT_THAT(source_of("pad_reflect"), HasSubstr("cutegen::take<4>("));
  EXPECT_THAT(source_of("one_hot_sum"), HasSubstr("cutegen::positions("));
  EXPECT_THAT(source_of("cat_then_norm"), HasSubstr("cutegen::positions<int>("));
  EXPECT_THAT(source_of("cat_then_norm"), Not(HasSubstr("scratch")));
  EXPECT_THAT(source_of("triangle"), HasSubstr("tril_keep"));
}

// A linear layer with one output gives scores of one element, and softmax(scores, 1) reduces the
// axis before it. The elements of this axis are neighbours.
TEST(Recipes, AnAxisOfOneElementIsNotInnermost) {
  const Task task = golden_task("pool_by_softmax");
  const RecipeMatch match = match_recipe(task, kHopperArch);
  const auto program = instantiate(task, match, match.safe);
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_EQ(program->plan.steps.size(), 3u);
  const std::string& softmax = program->sources.at("kernel_2.cu");
  EXPECT_THAT(softmax, HasSubstr("// The reduced axis is the innermost one."));
  EXPECT_THAT(softmax, HasSubstr("make_stride(Int<1>{}, Int<kVector>{})"));
  const Json plan = to_json(program->plan);
  EXPECT_EQ(plan.at("symbols").at("vector_2"), "r0_2 % 4 == 0 ? 4 : 1");
  EXPECT_FALSE(plan.at("symbols").contains("k1_2"));
}

// The weights of a row are computed once for each vector, and one kernel writes both outputs.
TEST(Recipes, ComputesWhatAVectorSharesOnce) {
  const Task task = golden_task("merge_states");
  const RecipeMatch match = match_recipe(task, kHopperArch);
  const auto program = instantiate(task, match, match.safe);
  ASSERT_TRUE(program) << program.error().text();
  ASSERT_EQ(program->plan.steps.size(), 1u);
  const std::string& source = program->sources.at("kernel.cu");
  const size_t shared = source.find("void compute_shared("),
               element = source.find("float compute(");
  ASSERT_NE(shared, std::string::npos) << source;
  ASSERT_NE(element, std::string::npos) << source;
  EXPECT_EQ(source.find("expf(", element), std::string::npos) << source;
  EXPECT_THAT(source, HasSubstr("if (get<0>(place(j)) == 0) g_out_1(_, place(j))(0) ="));
  EXPECT_EQ(match.safe.count("shared"), 0u);
  for (const Json& near : neighbours(match, match.safe))
    EXPECT_TRUE(instantiate(task, match, near)) << near;
}

// Clusters of 16 CTAs read, wait and write in step, so two kernels read long columns.
TEST(Recipes, LongColumnsThatManyCtasShareAreReadByTwoKernels) {
  const RecipeMatch match = match_recipe(golden_task("standardize_columns"), kHopperArch);
  EXPECT_EQ(match.safe.at("parts"), 66) << match.safe;
  EXPECT_EQ(match.safe.at("cluster"), 1) << match.safe;
  EXPECT_EQ(match.safe.at("online"), 1) << match.safe;
}

// A CTA takes 32 elements along the output's line, and as many lines as fill a tile.
TEST(Recipes, VectorsOfATransposedOperandFormTiles) {
  Task task = golden_task("transposed");
  const auto wide = [](Shape shape, size_t axis) {
    shape[axis] = 96;
    return shape;
  };
  for (TensorInfo& tensor : task.tensors)
    tensor.shape = wide(tensor.shape, tensor.name == "x" ? 1 : 2);
  for (ShapeCase& shape : task.shapes)
    for (auto& [name, sizes] : shape.tensors) sizes = wide(sizes, name == "x" ? 1 : 2);
  for (Value& value : task.graph.placeholders)
    value.shape = wide(value.shape, value.name == "x" ? 1 : 2);
  for (Node& node : task.graph.nodes) node.outputs[0].shape = wide(node.outputs[0].shape, 2);
  RecipeMatch match = match_recipe(task);
  EXPECT_FALSE(match.safe.contains("tiled")) << "12 lines are too few for a tile";
  const auto tall = [](Shape& shape, bool x) { shape[x ? 2 : 1] = 42; };  // no vectors
  for (TensorInfo& tensor : task.tensors) tall(tensor.shape, tensor.name == "x");
  for (ShapeCase& shape : task.shapes)
    for (auto& [name, sizes] : shape.tensors) tall(sizes, name == "x");
  for (Value& value : task.graph.placeholders) tall(value.shape, value.name == "x");
  for (Node& node : task.graph.nodes) tall(node.outputs[0].shape, false);
  match = match_recipe(task);
  ASSERT_EQ(match.safe.value("tiled", 0), 1) << match.safe;
  const auto program = instantiate(task, match, match.safe);
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_THAT(program->sources.begin()->second, HasSubstr("tile_coordinates<1, 32 / kVector>"));
  const Json symbols = to_json(program->plan).at("symbols");
  EXPECT_EQ(symbols.at("vectors"),
            "n0*ceil_div(n1,256/(32 / vector))*ceil_div(n2/vector,32 / vector)*256");
  for (const Json& near : neighbours(match, match.safe))
    EXPECT_TRUE(instantiate(task, match, near)) << near;
}

// A linear layer of one row: threads read neighbouring elements of the matrix, and a warp has a
// row.
TEST(Recipes, OneRowTimesATransposedMatrixReadsTheMatrixAlongItsRows) {
  Task task = golden_task("mm_row");
  for (TensorInfo& tensor : task.tensors)
    if (tensor.name == "b") tensor.shape = {20, 24};
  for (ShapeCase& shape : task.shapes) shape.tensors["b"] = {20, 24};
  Graph& graph = task.graph;
  graph.placeholders[1].shape = {20, 24};
  graph.nodes.front().args[1] = {{"ref", "turned"}};
  Node turned;
  turned.id = "turned", turned.op = "aten.t.default", turned.args = {{{"ref", "b"}}};
  turned.outputs.push_back({.name = "turned", .dtype = DType::f32, .shape = {24, 20}});
  graph.nodes.insert(graph.nodes.begin(), turned);
  const RecipeMatch match = match_recipe(task);
  ASSERT_EQ(match.recipe, "reduction");
  EXPECT_TRUE(match.safe.contains("width")) << match.safe;
  EXPECT_EQ(match.safe.at("vector"), 4);
}

// tanh(softplus(x)) becomes one function; a softplus with another beta stays.
TEST(Recipes, KnowsMishWrittenOut) {
  Task task = golden_task("mish_by_hand");
  RecipeMatch match = match_recipe(task);
  auto program = instantiate(task, match, match.safe);
  ASSERT_TRUE(program) << program.error().text();
  const std::string& source = program->sources.begin()->second;
  EXPECT_THAT(source, HasSubstr("cutegen::tanh_softplus(x_value)"));
  EXPECT_THAT(source, Not(HasSubstr("tanhf")));
  EXPECT_THAT(source, HasSubstr("cutegen::softplus(x_value, 2.0f"));
}

// Programs whose whole text is known: a split row, columns, positions, two stages, groups. After a
// deliberate change: CUTEGEN_UPDATE_GOLDEN=1 recipes_test, then read the difference.
class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, SafeProgramIsAsRecorded) {
  Task task = golden_task(GetParam());
  RecipeMatch match = match_recipe(task);
  auto program = instantiate(task, match, match.safe);
  ASSERT_TRUE(program) << program.error().text();
  std::string text = to_json(program->plan).dump(1) + "\n";
  for (const auto& [file, source] : program->sources) text += "==> " + file + "\n" + source;
  const auto path = recipes::golden_folder() / (std::string(GetParam()) + ".txt");
  if (std::getenv("CUTEGEN_UPDATE_GOLDEN")) {
    ASSERT_TRUE(write_file(path, text));
  }
  auto recorded = read_file(path);
  ASSERT_TRUE(recorded) << recorded.error().text();
  EXPECT_EQ(text, *recorded);
}

INSTANTIATE_TEST_SUITE_P(Recipes, Golden,
                         testing::Values("frobenius_large", "sum_columns_large", "argmin_last",
                                         "cross_entropy", "group_norm", "take_rows",
                                         "quantize_rows", "top_k"));

TEST(Match, SizesThatAModuleComputesWithComeFromThePlan) {
  for (const char* name : {"sized", "sized_rows", "mm_sized", "lifted"}) {
    Task task = golden_task(name);
    RecipeMatch match = match_recipe(task);
    auto program = instantiate(task, match, match.safe);
    ASSERT_TRUE(program) << program.error().text();
    const std::string plan = to_json(program->plan).dump(),
                      source = program->sources.begin()->second;
    for (const char* size : {"dim(x,0)", "dim(x,1)"})
      EXPECT_THAT(plan, HasSubstr(std::string("{\"i64\":\"") + size + "\"}")) << name;
    EXPECT_THAT(source, HasSubstr("int64_t size0_of_x, int64_t size1_of_x")) << name;
    EXPECT_THAT(source, HasSubstr("float(size1_of_x)")) << name;
    const int64_t rows = task.official().tensors.at("x")[0];
    EXPECT_THAT(source, Not(HasSubstr(std::to_string(rows) + ".0f"))) << name;
  }
}

TEST(Match, SplitsLongRowsOnly) {
  RecipeMatch large = match_recipe(golden_task("frobenius_large"));
  EXPECT_GT(large.safe.at("parts").get<int64_t>(), 1);
  RecipeMatch small = match_recipe(golden_task("frobenius"));
  EXPECT_EQ(small.safe.at("parts"), 1);
  Json params = large.safe;
  params["cached"] = 1;
  auto program = instantiate(golden_task("frobenius_large"), large, params);
  ASSERT_FALSE(program);
  EXPECT_THAT(program.error().message, HasSubstr("cannot be combined"));
}

TEST(Match, TunesTheLargestStageByItsOwnNames) {
  RecipeMatch match = match_recipe(golden_task("softmax_then_sum"));
  EXPECT_TRUE(match.safe.contains("vector"));
  EXPECT_TRUE(match.safe.contains("s2_vector"));
  RecipeMatch loss = match_recipe(golden_task("cross_entropy"));
  EXPECT_EQ(loss.why, "pointwise work and reductions in 2 stages");
}

// Each stage has its own symbols, macros and kernels.
TEST(Match, ProductsAreStagesAmongStages) {
  Task task = golden_task("mm_softmax_after");
  RecipeMatch match = match_recipe(task);
  EXPECT_EQ(match.recipe, "matmul");
  EXPECT_EQ(match.why, "one matrix product (aten.mm.default) and the work around it in 2 stages");
  auto program = instantiate(task, match, match.safe);
  ASSERT_TRUE(program) << program.error().text();
  ASSERT_EQ(program->plan.steps.size(), 2u);
  EXPECT_THAT(program->sources.at("kernel_1.cu"), HasSubstr("kVector = VECTOR_OUT_1;"));
  EXPECT_THAT(program->sources.at("kernel_1.cu"), HasSubstr("\nmatmul_1("));
  EXPECT_THAT(program->sources.at("kernel_2.cu"), HasSubstr("\nreduction_2("));
  EXPECT_EQ(match_recipe(golden_task("mm_two_products")).why,
            "2 matrix products and the work around them in 2 stages");
}

// Tensor maps of two products do not clash, and one of them describes scratch.
TEST(Match, EveryProductHasItsOwnTensorMaps) {
  Task task = golden_task("mm_two_products");
  task.math_mode = MathMode::bf16;
  RecipeMatch match = match_recipe(task, kHopperArch);
  auto program = instantiate(task, match, match.safe);
  ASSERT_TRUE(program) << program.error().text();
  ASSERT_EQ(program->plan.tensor_maps.size(), 4u);
  EXPECT_EQ(program->plan.tensor_maps[2].name, "map_a_2");
  EXPECT_EQ(program->plan.tensor_maps[2].tensor, program->plan.scratch[0].name);
}

TEST(Match, SaysWhyNoneApplies) {
  RecipeMatch match = match_recipe(golden_task("no_digamma"));
  EXPECT_TRUE(match.recipe.empty());
  EXPECT_EQ(match.why, "no recipe covers aten.digamma.default (node digamma)");
  EXPECT_FALSE(instantiate(golden_task("no_digamma"), match, Json::object()));
}

TEST(Match, NoRecipeForgetsWhatForwardMutates) {
  for (const char* name : {"relu", "two_outputs"}) {
    Task task = golden_task(name);
    task.tensors[0].mutated = true;
    RecipeMatch match = match_recipe(task);
    EXPECT_EQ(match.recipe, "");
    EXPECT_THAT(match.why, HasSubstr("forward() mutates 'x'"));
    EXPECT_FALSE(instantiate(task, match, match.safe));
  }
}

TEST(Neighbours, ChangeOneParameterMostPromisingFirst) {
  RecipeMatch match = match_recipe(golden_task("relu"));
  auto near = neighbours(match, match.safe);
  ASSERT_FALSE(near.empty());
  EXPECT_EQ(near[0].at("items"), 2);
  for (const Json& params : near) {
    int changed = 0;
    for (const auto& [name, value] : params.items()) changed += value != match.safe.at(name);
    EXPECT_EQ(changed, 1) << params.dump();
  }
}

TEST(Neighbours, LeaveOutCombinationsThatDoNotGoTogether) {
  RecipeMatch match = match_recipe(golden_task("softmax_last"));
  Json params = match.safe;
  params["threads"] = 128;
  params["width"] = 128;
  for (const Json& near : neighbours(match, params))
    EXPECT_LE(near.at("width").get<int64_t>(), near.at("threads").get<int64_t>());
}

TEST(Instantiate, RefusesParametersThatAreMissingWrongOrUnknown) {
  Task task = golden_task("relu");
  RecipeMatch match = match_recipe(task);
  auto message = [&](const Json& params) {
    auto program = instantiate(task, match, params);
    return program ? std::string("accepted") : program.error().message;
  };
  EXPECT_THAT(message(Json::array()), HasSubstr("not a JSON object"));
  EXPECT_THAT(message(Json::object()), HasSubstr("vector is missing"));
  Json params = match.safe;
  params["threads"] = "many";
  EXPECT_THAT(message(params), HasSubstr("not an integer"));
  params["threads"] = 100000;
  EXPECT_THAT(message(params), HasSubstr("cannot be 100000"));
}

TEST(Instantiate, BindsNamesThatAreNoIdentifiers) {
  Task task = golden_task("norm_dotted");
  RecipeMatch match = match_recipe(task);
  auto program = instantiate(task, match, match.safe);
  ASSERT_TRUE(program);
  Json plan = to_json(program->plan);
  EXPECT_EQ(plan["bind"]["fc_weight"], "fc.weight");
}

TEST(Instantiate, IsDeterministic) {
  Task task = golden_task("layer_norm");
  RecipeMatch a = match_recipe(task), b = match_recipe(task);
  EXPECT_EQ(program_id(*instantiate(task, a, a.safe)), program_id(*instantiate(task, b, b.safe)));
}

TEST(Skeleton, FitsEveryTaskAndOwnsUpToBeingOne) {
  for (const char* name : {"relu", "two_outputs", "norm_dotted", "no_matmul", "no_integers"}) {
    Task task = golden_task(name);
    auto program = skeleton(task);
    ASSERT_TRUE(program) << program.error().text();
    for (const Error& error : check_plan(program->plan, task)) ADD_FAILURE() << error.text();
    EXPECT_THAT(program->sources.at("kernel.cu"), HasSubstr("skeleton"));
  }
}

TEST(Recipes, RefuseAGraphThatIsTooLarge) {
  Task task = golden_task("argmin_last");
  const std::string input = task.graph.placeholders.front().name;
  Node node = task.graph.nodes.front();
  node.op = "aten.relu.default";
  node.kwargs = Json::object();
  node.outputs = {task.graph.placeholders.front()};
  std::vector<Node> chain;
  for (int i = 0; i < 601; ++i) {
    node.args = {{{"ref", i == 0 ? input : chain.back().outputs.front().name}}};
    node.id = node.outputs.front().name = "relu_" + std::to_string(i);
    chain.push_back(node);
  }
  for (Node& last : task.graph.nodes)
    if (last.args.front() == Json{{"ref", input}})
      last.args.front() = {{"ref", chain.back().outputs.front().name}};
  task.graph.nodes.insert(task.graph.nodes.begin(), chain.begin(), chain.end());
  EXPECT_EQ(match_recipe(task).why, "more than 600 operators");
}

TEST(Skeleton, WritesMutatedTensorsToo) {
  Task task = golden_task("relu");
  task.tensors[0].mutated = true;
  task.tensors.pop_back();  // forward() returns nothing, or x itself
  auto program = skeleton(task);
  ASSERT_TRUE(program) << program.error().text();
  const std::string& text = program->sources.at("kernel.cu");
  EXPECT_THAT(text, HasSubstr("mutated: it holds its initial values"));
  EXPECT_THAT(text, HasSubstr("float* __restrict__ x"));
  EXPECT_THAT(text, Not(HasSubstr("const float*")));
  EXPECT_TRUE(check_plan(program->plan, task).empty());
}

TEST(Skeleton, NeedsAnOutput) {
  Task task = golden_task("relu");
  task.tensors.pop_back();
  EXPECT_FALSE(skeleton(task));
}

TEST(Names, AreUniqueAndNoKeywords) {
  recipes::Names names;
  EXPECT_EQ(names.unique("x"), "x");
  EXPECT_EQ(names.unique("x"), "x_1");
  EXPECT_EQ(names.unique("float"), "float_1");
  EXPECT_EQ(names.unique("fc.weight"), "fc_weight");
  EXPECT_EQ(names.unique("0"), "t0");
  EXPECT_EQ(names.unique("k0"), "k0_1");
  EXPECT_EQ(names.unique(""), "t");
}

}  // namespace
}  // namespace cutegen::recipes
