// SPDX-License-Identifier: Apache-2.0
#include "recipes/matmul/matmul.h"
#include "recipes/emit/recipes.h"

#include <gmock/gmock.h>

#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::HasSubstr;
using testing::Not;

struct ProductCase {
  Task task;
  RecipeMatch match;
  explicit ProductCase(const std::string& name, MathMode mode = MathMode::fp32,
                       const std::string& arch = "")
      : task(golden_task(name)) {
    task.math_mode = mode;
    match = match_recipe(task, arch);
    if (match.recipe != "matmul") throw std::runtime_error(match.why);
  }
  KernelProgram program(const Json& changes = Json::object()) const {
    Json params = match.safe;
    params.update(changes);
    auto program = instantiate(task, match, params);
    if (!program) throw std::runtime_error(program.error().text());
    return *program;
  }
  std::string source(const Json& changes = Json::object()) const {
    return program(changes).sources.at("kernel.cu");
  }
};

// The whole text of one program: what people see in out/. After a deliberate change:
// CUTEGEN_UPDATE_GOLDEN=1 recipes_test, then read the difference.
TEST(Matmul, WritesTheGoldenProgram) {
  KernelProgram program = ProductCase("mm_bias_residual").program({{"vector", 4}});
  if (std::getenv("CUTEGEN_UPDATE_GOLDEN")) {
    ASSERT_TRUE(write_file(golden_folder() / "mm_bias_residual.cu", program.sources["kernel.cu"]));
    ASSERT_TRUE(write_file(golden_folder() / "mm_bias_residual.plan.json",
                           dump_json(to_json(program.plan), 2) + "\n"));
  }
  auto kernel = read_file(golden_folder() / "mm_bias_residual.cu");
  auto plan = read_file(golden_folder() / "mm_bias_residual.plan.json");
  ASSERT_TRUE(kernel && plan);
  EXPECT_EQ(program.sources.at("kernel.cu"), *kernel);
  EXPECT_EQ(dump_json(to_json(program.plan), 2) + "\n", *plan);
}

TEST(Matmul, MaskIsComputedFromThePlace) {
  std::string source = ProductCase("mm_upper").source();
  EXPECT_THAT(source, HasSubstr("n + v - m >= 1"));
  EXPECT_THAT(source, HasSubstr("last = first"));  // tiles below the diagonal are skipped
  EXPECT_THAT(ProductCase("mm_transposed_out").source(), Not(HasSubstr("last = first")));
}

// 8 rows of bf16: the weights go to registers, and a CTA computes no rows beyond the last one.
TEST(Matmul, FewRowsStreamTheirWeights) {
  const ProductCase few("mm_few_rows", MathMode::bf16, "sm_90a");
  EXPECT_EQ(few.match.safe.at("stream"), 1);
  EXPECT_EQ(few.match.safe.at("tile_m"), 8);
  EXPECT_THAT(few.source(), HasSubstr("cutegen::StreamGemm<"));
  EXPECT_THAT(few.source({{"stream", 0}, {"tile_m", 64}, {"tile_n", 64}, {"split", 1}}),
              HasSubstr("cutegen::WgmmaGemm<"));
}

// With tiles of 128 x 192, a product of 48 rows took 28 us on an H200, 19 us of them in the
// product.
TEST(Matmul, TilesOfFewRowsAreShort) {
  Task task = golden_task("mm_few_rows");
  const auto lengthen = [](Shape& shape) {
    if (shape[0] == 8) shape[0] = 48;
  };
  for (TensorInfo& t : task.tensors) lengthen(t.shape);
  for (ShapeCase& shape : task.shapes)
    for (auto& [name, sizes] : shape.tensors) lengthen(sizes);
  for (Value& v : task.graph.placeholders) lengthen(v.shape);
  for (Node& n : task.graph.nodes)
    for (Value& v : n.outputs) lengthen(v.shape);
  task.math_mode = MathMode::bf16;
  const Json safe = match_recipe(task, "sm_90a").safe;
  EXPECT_EQ(safe.at("tile_m"), 64);
  EXPECT_EQ(safe.at("tile_n"), 64);
  EXPECT_EQ(safe.at("split"), 1);
}

// A second kernel would cost 2 us.
TEST(Matmul, AClusterAddsThePartsOfAStreamedProduct) {
  const ProductCase few("mm_few_rows", MathMode::bf16, "sm_90a");
  const Json four{{"split", 4}}, sixteen{{"split", 16}};
  EXPECT_THAT(few.source(four), HasSubstr("gemm.each_of_cluster<kVector, kSplit>("));
  const Json plan = to_json(few.program(four).plan);
  EXPECT_EQ(plan["steps"].size(), 1u);
  EXPECT_EQ(plan["steps"][0]["cluster"], Json({1, 4, 1}));
  EXPECT_FALSE(plan.contains("scratch"));
  EXPECT_EQ(to_json(few.program(sixteen).plan)["steps"].size(), 2u);  // a cluster has up to 8 CTAs
  const ProductCase ampere("mm_few_rows", MathMode::bf16, "sm_80");
  EXPECT_THAT(ampere.source({{"stream", 1}, {"split", 4}}), Not(HasSubstr("each_of_cluster")));
}

// 16 bytes of each factor in one access; results stay pairs.
TEST(Matmul, HalfTensorsMoveEightElementsAtOnce) {
  Task task = golden_task("mm_plain");
  task.math_mode = MathMode::fp16;
  for (TensorInfo& t : task.tensors) t.dtype = DType::f16;
  for (Value& v : task.graph.placeholders) v.dtype = DType::f16;
  for (Node& n : task.graph.nodes)
    for (Value& v : n.outputs) v.dtype = DType::f16;
  RecipeMatch match = match_recipe(task);
  auto vector = std::find_if(match.parameters.begin(), match.parameters.end(),
                             [](const RecipeParameter& p) { return p.name == "vector"; });
  ASSERT_NE(vector, match.parameters.end());
  EXPECT_THAT(vector->legal, testing::ElementsAre(8, 4, 1));
  Json params = match.safe;
  params.update({{"vector", 8}, {"tensor_cores", 1}, {"tile_m", 128}, {"tile_n", 128}});
  params.update({{"tile_k", 32}, {"stages", 4}, {"threads", 128}});
  auto program = instantiate(task, match, params);
  ASSERT_TRUE(program) << program.error().text();
  Json plan = to_json(program->plan);
  EXPECT_EQ(plan["symbols"]["vector_out"], "(dim(out,1)) % 2 == 0 ? 2 : 1");
  EXPECT_THAT(plan["symbols"]["vector_a"].get<std::string>(), HasSubstr("? 8 : 1"));
}

TEST(Matmul, LargeDepthIsSharedAmongCtas) {
  ProductCase c("mm_large_k");
  EXPECT_GT(c.match.safe.at("split").get<int>(), 1);
  KernelProgram program = c.program();
  EXPECT_THAT(program.sources.at("kernel.cu"), HasSubstr("combine("));
  ASSERT_EQ(program.plan.steps.size(), 2u);
  EXPECT_EQ(program.plan.scratch.size(), 1u);
  EXPECT_EQ(ProductCase("mm_plain").match.safe.at("split"), 1);
}

TEST(Matmul, TensorCoresNeedTheTasksLeave) {
  EXPECT_FALSE(ProductCase("mm_plain").match.safe.contains("tensor_cores"));
  ProductCase c("mm_plain", MathMode::bf16);
  EXPECT_EQ(c.match.safe.at("tensor_cores"), 0);
  EXPECT_THAT(c.source(), HasSubstr("SimtGemm<"));
  EXPECT_THAT(c.source({{"tensor_cores", 1}}), HasSubstr("MmaGemm<bfloat16_t, float, float"));
  EXPECT_THAT(ProductCase("mm_plain", MathMode::tf32).source({{"tensor_cores", 1}}),
              HasSubstr("MmaGemm<tfloat32_t"));
  EXPECT_THAT(ProductCase("mm_plain", MathMode::fp16).source({{"tensor_cores", 1}}),
              HasSubstr("MmaGemm<half_t"));
}

// All outputs share the product's factors, so all of them must allow the tensor cores.
TEST(Matmul, TensorCoresNeedTheLeaveOfEveryOutput) {
  Task task = golden_task("mm_plain");
  task.math_mode = MathMode::bf16;
  for (TensorInfo& t : task.tensors)
    if (t.role == TensorRole::output) t.math_mode = MathMode::fp32;
  EXPECT_FALSE(match_recipe(task).safe.contains("tensor_cores"));
}

// Tiles are large if enough of them remain to fill the GPU.
TEST(Matmul, SafeTilesFillTheGpu) {
  EXPECT_EQ(ProductCase("mm_plain").match.safe.at("tile_m"), 64);
  Contraction c;
  c.loads.axes = {{.size = 2048, .reduced = false, .extent = "M"},
                  {.size = 2048, .reduced = false, .extent = "N"},
                  {.size = 64, .reduced = false, .extent = "K"}};
  c.m = 0, c.n = 1, c.k = 2;
  EXPECT_EQ(matmul_safe(c).at("tile_m"), 128);  // two CTAs of an SM hide prologue and epilogue
  EXPECT_TRUE(matmul_legal(c, matmul_safe(c)));
  c.loads.axes = {{.size = 4096, .reduced = false, .extent = "M"},
                  {.size = 4096, .reduced = false, .extent = "N"},
                  {.size = 4096, .reduced = false, .extent = "K"}};
  EXPECT_EQ(matmul_safe(c).at("tile_m"), 256);
  EXPECT_TRUE(matmul_legal(c, matmul_safe(c)));
  c.loads.axes = {{.size = 2048, .reduced = false, .extent = "M"},
                  {.size = 2048, .reduced = false, .extent = "N"},
                  {.size = 64, .reduced = false, .extent = "K"}};
  c.math_mode = MathMode::bf16;
  Json safe = matmul_safe(c);
  EXPECT_EQ(safe.at("tile_n"), 128);
  EXPECT_TRUE(matmul_legal(c, safe));
  safe["tensor_cores"] = 1;
  EXPECT_TRUE(matmul_legal(c, safe));
  c.loads.axes[0].size = 256;
  EXPECT_EQ(matmul_safe(c).at("tile_m"), 64);
}

// CTAs share the depth if the tiles leave SMs idle. Such products may have large tiles.
TEST(Matmul, SafeSplitsFillTheGpu) {
  Contraction c;
  c.loads.axes = {{.size = 256, .reduced = false, .extent = "M"},
                  {.size = 256, .reduced = false, .extent = "N"},
                  {.size = 524288, .reduced = false, .extent = "K"}};
  c.m = 0, c.n = 1, c.k = 2;
  EXPECT_GE(matmul_safe(c).at("tile_m"), 128);
  EXPECT_GE(matmul_safe(c).at("split"), 32);
  c.loads.axes = {{.size = 128, .reduced = false, .extent = "M"},
                  {.size = 16384, .reduced = false, .extent = "N"},
                  {.size = 16384, .reduced = false, .extent = "K"}};
  EXPECT_EQ(matmul_safe(c).at("tile_m"), 128);
  EXPECT_EQ(matmul_safe(c).at("split"), 2);
}

TEST(Matmul, RefusesTilesThatDoNotFit) {
  ProductCase c("mm_plain"), cores("mm_plain", MathMode::fp16);
  auto legal = [](const ProductCase& of, const Json& changes) {
    Json params = of.match.safe;
    params.update(changes);
    return instantiate(of.task, of.match, params).has_value();
  };
  EXPECT_TRUE(legal(c, {{"tile_m", 128}, {"tile_n", 128}, {"stages", 2}}));
  EXPECT_FALSE(legal(c, {{"tile_m", 256}, {"tile_n", 128}, {"threads", 128}}));  // registers
  EXPECT_FALSE(legal(c, {{"tile_m", 256}, {"tile_n", 128}, {"tile_k", 32}}));    // shared memory
  EXPECT_FALSE(legal(c, {{"tile_k", 8}, {"vector", 4}}));  // too few vectors for the threads
  EXPECT_TRUE(legal(cores, {{"tensor_cores", 1}, {"stages", 4}}));
  EXPECT_FALSE(legal(cores, {{"tensor_cores", 1}, {"tile_k", 16}}));  // rows of 32 bytes
}

// On Hopper, float32 products may use its tensor cores; the plan then needs that GPU.
TEST(Matmul, WgmmaWithFloat32AccuracyNeedsHopper) {
  EXPECT_FALSE(ProductCase("mm_plain").match.safe.contains("wgmma"));
  ProductCase c("mm_plain", MathMode::fp32, "sm_90a");
  const Json on{{"wgmma", 1}, {"tile_m", 128}, {"tile_n", 64}};
  KernelProgram program = c.program(on);
  EXPECT_EQ(program.plan.arch, std::vector<std::string>{"sm_90a"});
  const std::string& source = program.sources.at("kernel.cu");
  EXPECT_THAT(source, HasSubstr("WgmmaFp32Gemm<float, float, kTileM, kTileN, kTileK, kStages"));
  EXPECT_THAT(source, HasSubstr("gemm.repair("));
  Json off = c.match.safe;
  off["wgmma"] = 0;
  EXPECT_EQ(c.program(off).plan.arch, std::vector<std::string>{"sm_80+"});
  EXPECT_THAT(c.source(off), HasSubstr("SimtGemm<"));
}

// Large float32 products multiply pairs of 16-bit values, and keep the product of floats for values
// that pairs cannot represent.
TEST(Matmul, LargeProductsMultiplyPairsOfHalves) {
  const ProductCase c("mm_plain", MathMode::fp32, "sm_90a");
  EXPECT_EQ(c.match.safe.at("by_halves"), 0);  // a small product
  const Json on{{"wgmma", 1},  {"by_halves", 1}, {"tile_m", 128}, {"tile_n", 192},
                {"stages", 2}, {"cluster", 2},   {"split", 1}};
  const KernelProgram program = c.program(on);
  EXPECT_THAT(program.sources.at("split_halves.cu"), HasSubstr("cutegen::split_pairs<"));
  EXPECT_THAT(program.sources.at("kernel_halves.cu"),
              HasSubstr("cutegen::WgmmaPairGemm<kTileM, kTileN, kStages, true, false, kCluster>"));
  EXPECT_THAT(program.sources.at("kernel_halves.cu"), HasSubstr("if (control[0] != 0) return;"));
  EXPECT_THAT(program.sources.at("kernel.cu"), HasSubstr("if (control[0] == 0) return;"));
  EXPECT_THAT(program.sources.at("kernel.cu"), HasSubstr("kTileN = 128;"));
  const Json plan = to_json(program.plan);
  std::vector<std::string> kernels;
  for (const Json& step : plan["steps"]) kernels.push_back(step["kernel"]);
  EXPECT_THAT(kernels,
              testing::ElementsAre("range_halves", "split_halves", "matmul_halves", "matmul"));
  EXPECT_EQ(plan["steps"][2]["cluster"][0], 2);
}

// A pair of tiles of 128 x 192 has 80 KiB in a stage.
TEST(Matmul, PairsOfHalvesFitAnSm) {
  const ProductCase c("mm_plain", MathMode::fp32, "sm_90a");
  const auto legal = [&](const Json& change) {
    Json params = c.match.safe;
    params.update({{"wgmma", 1},
                   {"by_halves", 1},
                   {"tile_m", 128},
                   {"tile_n", 128},
                   {"stages", 3},
                   {"split", 1}});
    params.update(change);
    return bool(instantiate(c.task, c.match, params));
  };
  EXPECT_TRUE(legal(Json::object()));
  EXPECT_TRUE(legal({{"tile_n", 192}, {"stages", 2}}));
  EXPECT_FALSE(legal({{"tile_n", 192}}));
  EXPECT_FALSE(legal({{"stages", 4}}));
  EXPECT_FALSE(legal({{"tile_m", 64}}));
  EXPECT_FALSE(legal({{"split", 2}}));
  EXPECT_FALSE(legal({{"by_halves", 0}, {"cluster", 2}}));
}

// The cost model weighs the split of both factors against the faster product.
TEST(Matmul, OnlyLargeProductsPayForPairs) {
  const auto chosen = [](int64_t m, int64_t n, int64_t k) {
    Contraction c;
    c.hopper = true;
    c.loads.axes = {{.size = m, .reduced = false, .extent = "M"},
                    {.size = n, .reduced = false, .extent = "N"},
                    {.size = k, .reduced = false, .extent = "K"}};
    c.m = 0, c.n = 1, c.k = 2;
    for (Factor* factor : {&c.a, &c.b}) {
      factor->operand.dtype = DType::f32;
      factor->row = {.move = Move::stride, .expression = "K"};
      factor->depth = {.move = Move::next, .expression = "1"};
    }
    EXPECT_TRUE(matmul_legal(c, matmul_safe(c)));
    return matmul_safe(c).at("by_halves") == 1;
  };
  EXPECT_TRUE(chosen(4096, 4096, 4096));
  EXPECT_TRUE(chosen(4096, 8192, 8192));
  EXPECT_FALSE(chosen(8192, 8192, 32));   // the split moves as much as the product
  EXPECT_FALSE(chosen(128, 1024, 1024));  // the launches take longer than the product
  EXPECT_TRUE(chosen(32768, 32768, 64));  // on an H200, 1.68 ms instead of 2.54 ms
  EXPECT_FALSE(chosen(16, 8192, 8192));
}

// In 16-bit modes wgmma reads both operands from shared memory, in any order.
TEST(Matmul, WgmmaMultipliesInTheMathMode) {
  EXPECT_FALSE(ProductCase("mm_plain", MathMode::bf16).match.safe.contains("wgmma"));
  ProductCase c("mm_plain", MathMode::bf16, "sm_90a");
  EXPECT_EQ(c.match.safe.at("wgmma"), 1);
  EXPECT_THAT(c.source(c.match.safe), HasSubstr("WgmmaGemm<bfloat16_t, float, float"));
  EXPECT_THAT(ProductCase("mm_plain", MathMode::fp16, "sm_90a").source({{"wgmma", 1}}),
              HasSubstr("WgmmaGemm<half_t, float, float"));
  // Tensor maps cannot convert floats, so the kernel copies by address.
  const Json plan = to_json(c.program(c.match.safe).plan);
  EXPECT_EQ(plan["symbols"]["tma"], 0);
  EXPECT_EQ(plan["steps"][0]["args"][0]["map"], "map_a");
}

// A division for each tensor and vector took as long as the multiplications. Now the compiler
// divides once for each row and column of a thread, because the coordinates come before the check.
TEST(Matmul, ResultsLieAtCoordinatesThatTensorsShare) {
  const std::string source = ProductCase("mm_heads", MathMode::bf16, "sm_90a").source();
  const size_t of_m = source.find("const auto at_m = cutegen::split_index(m, int(m_size1)"),
               of_n = source.find("const auto at_n = cutegen::split_index(n, int(n_size1)");
  EXPECT_LT(of_m, of_n);
  EXPECT_LT(of_n, source.find("if (m >= m_size"));
  EXPECT_THAT(source, HasSubstr("g_out(_, at_m, at_n, batch)"));
}

// One product instead of three halves the memory of the split operand: more stages fit.
TEST(Matmul, WgmmaMultipliesFloatsOnceInTf32) {
  EXPECT_FALSE(ProductCase("mm_plain", MathMode::tf32).match.safe.contains("wgmma"));
  const Json six{{"wgmma", 1}, {"tile_m", 128}, {"tile_n", 128}, {"stages", 6}};
  ProductCase once("mm_plain", MathMode::tf32, "sm_90a");
  const std::string source = once.source(six);
  EXPECT_THAT(source, HasSubstr("WgmmaFp32Gemm<float, float"));
  EXPECT_THAT(source, HasSubstr("true, false, 1>"));
  EXPECT_THAT(once.source({{"wgmma", 0}, {"stages", 1}, {"tile_m", 64}, {"tile_n", 64}}),
              HasSubstr("SimtGemm<"));
  ProductCase thrice("mm_plain", MathMode::fp32, "sm_90a");
  Json params = thrice.match.safe;
  params.update(six);
  EXPECT_FALSE(instantiate(thrice.task, thrice.match, params));
  EXPECT_THAT(thrice.source({{"wgmma", 1}}), Not(HasSubstr(", 1>")));
}

// Rounded results take half as many shuffles. A residual differs between rows, so its element is
// added to a float.
TEST(Matmul, SixteenBitResultsAreRoundedBeforeLanesExchangeThem) {
  const ProductCase bias("mm_few_rows", MathMode::bf16, "sm_90a");
  const Json wgmma{{"stream", 0}, {"tile_m", 64}, {"tile_n", 64}, {"split", 1}};
  const std::string source = bias.source(wgmma);
  EXPECT_THAT(source, HasSubstr("if constexpr (kVector == 8) {"));
  EXPECT_THAT(source, HasSubstr("gemm.template each_packed<bfloat16_t>("));
  EXPECT_THAT(source, HasSubstr("cutegen::load(pairs_of_f_bias(_, m, n, batch), r_f_bias);"));
  EXPECT_THAT(source, HasSubstr("n = min(n, n_size - 2);"));  // no branch between pairs
  EXPECT_THAT(source, HasSubstr("cutegen::write_pack(pack, &g_out(0, m, n, batch));"));
  // Results of 32 bits, operands that differ between rows, and other engines keep each().
  EXPECT_THAT(ProductCase("mm_plain", MathMode::bf16, "sm_90a").source(),
              Not(HasSubstr("each_packed")));
  EXPECT_THAT(bias.source(), Not(HasSubstr("each_packed")));
}

// The result of this layer is viewed as [8, 1024, 3, 12, 64] and permuted; its bias stays a vector.
TEST(Matmul, ABiasOfSplitColumnsIsReadByColumn) {
  const ProductCase heads("mm_qkv_heads", MathMode::bf16, "sm_90a");
  const std::string source = heads.source();
  EXPECT_THAT(source, HasSubstr("gemm.template each_packed<bfloat16_t>("));
  EXPECT_THAT(source, HasSubstr("cutegen::load(pairs_of_a_bias(_, n), r_a_bias);"));
  EXPECT_THAT(source, HasSubstr("&g_out(0, at_m, at_n, batch)"));
}

// Half precision has as many significant bits as tf32, and wgmma multiplies it twice as fast.
TEST(Matmul, LargeProductsInTf32MultiplyHalves) {
  const auto of_size = [](int64_t size) {
    Task task = golden_task("mm_plain");
    task.math_mode = MathMode::tf32;
    const auto lengthen = [&](Shape& shape) {
      for (int64_t& n : shape) n = size;
    };
    for (TensorInfo& t : task.tensors) lengthen(t.shape);
    for (ShapeCase& shape : task.shapes)
      for (auto& [name, sizes] : shape.tensors) lengthen(sizes);
    for (Value& v : task.graph.placeholders) lengthen(v.shape);
    for (Node& n : task.graph.nodes)
      for (Value& v : n.outputs) lengthen(v.shape);
    return task;
  };
  const Task large = of_size(4096), small = of_size(256);
  const RecipeMatch match = match_recipe(large, "sm_90a");
  ASSERT_EQ(match.safe.at("by_halves"), 1);
  EXPECT_EQ(match_recipe(small, "sm_90a").safe.at("by_halves"), 0);
  const auto program = instantiate(large, match, match.safe);
  ASSERT_TRUE(program) << program.error().text();
  const Json plan = to_json(program->plan);
  std::vector<std::string> steps;
  for (const Json& step : plan["steps"]) steps.push_back(step["id"]);
  EXPECT_THAT(steps,
              testing::ElementsAre("clear_halves", "split_halves", "matmul_halves", "matmul"));
  EXPECT_THAT(program->sources.at("kernel_halves.cu"),
              HasSubstr("cutegen::WgmmaGemm<half_t, half_t, half_t,"));
  EXPECT_THAT(program->sources.at("kernel_halves.cu"), HasSubstr("if (control[0] != 0) return;"));
  EXPECT_THAT(program->sources.at("kernel_halves.cu"), Not(HasSubstr("gemm.scale(")));
  EXPECT_THAT(program->sources.at("kernel.cu"), HasSubstr("if (control[0] == 0) return;"));
  EXPECT_THAT(program->sources.at("split_halves.cu"), HasSubstr(", 1>(rows, 0, scales"));
  Json clustered = match.safe;
  clustered["cluster"] = 2;
  EXPECT_FALSE(instantiate(large, match, clustered));
}

TEST(Matmul, WgmmaTilesFitAnSm) {
  ProductCase c("mm_plain", MathMode::bf16, "sm_90a");
  auto legal = [&](const Json& change) {
    Json params = c.match.safe;
    params.update(change);
    return bool(instantiate(c.task, c.match, params));
  };
  EXPECT_TRUE(legal({{"tile_m", 128}, {"tile_n", 256}, {"stages", 4}}));
  EXPECT_FALSE(legal({{"tile_m", 256}, {"tile_n", 256}, {"stages", 2}}));  // registers
  EXPECT_FALSE(legal({{"tile_m", 128}, {"tile_n", 256}, {"stages", 6}}));  // shared memory
  EXPECT_FALSE(legal({{"tile_m", 128}, {"tile_n", 64}, {"cluster", 2}}));  // half a block of B
  EXPECT_FALSE(legal({{"tile_m", 128}, {"tile_n", 32}}));
  EXPECT_FALSE(legal({{"tile_m", 128}, {"tile_n", 128}, {"stages", 2}}));  // deadlock without TMA
}

// Each of two warpgroups has tiles of its own, with half of the rows.
TEST(Matmul, WarpgroupsTakeTilesInTurn) {
  ProductCase c("mm_plain", MathMode::bf16, "sm_90a");
  Json params = c.match.safe;
  params.update({{"ping_pong", 1}, {"tile_m", 256}, {"tile_n", 128}, {"stages", 6}, {"split", 1}});
  const KernelProgram program = c.program(params);
  const std::string& source = program.sources.at("kernel.cu");
  EXPECT_THAT(source, HasSubstr("kTileM = 128;"));
  EXPECT_THAT(source, HasSubstr("kCluster, 1, true>"));
  EXPECT_THAT(source, HasSubstr("if (gemm.skips(first, last)) continue;"));
  params["ping_pong"] = 0;
  params["stages"] = 4;
  EXPECT_THAT(c.source(params), Not(HasSubstr("skips")));
  auto legal = [&](const Json& change) {
    Json changed = params;
    changed["ping_pong"] = 1;
    changed.update(change);
    return bool(instantiate(c.task, c.match, changed));
  };
  EXPECT_TRUE(legal({{"tile_m", 128}, {"tile_n", 256}}));
  EXPECT_FALSE(legal({{"tile_m", 256}, {"tile_n", 256}}));  // registers
  EXPECT_FALSE(legal({{"tile_m", 64}, {"tile_n", 256}}));
  EXPECT_FALSE(legal({{"tile_m", 192}, {"tile_n", 192}}));
}

// With many short tiles, writing results takes a large part of the time.
TEST(Matmul, TakesShortTilesInTurn) {
  const auto choice = [](const Shape& a, const Shape& b, const Shape& out) {
    Task task = golden_task("mm_plain");
    const std::map<std::string, Shape> sizes{{"a", a}, {"b", b}, {"out", out}};
    for (TensorInfo& t : task.tensors) t.shape = sizes.at(t.name);
    for (ShapeCase& s : task.shapes) s.tensors = sizes;
    for (Value& v : task.graph.placeholders) v.shape = sizes.at(v.name);
    task.graph.nodes.at(0).outputs.at(0).shape = out;
    task.math_mode = MathMode::bf16;
    return match_recipe(task, "sm_90a").safe;
  };
  const Json many = choice({4000, 1280}, {1280, 3840}, {4000, 3840});
  EXPECT_EQ(many.at("ping_pong"), 1);
  EXPECT_EQ(many.at("tile_m"), 256);
  EXPECT_EQ(choice({8192, 8192}, {8192, 8192}, {8192, 8192}).at("ping_pong"), 0);
  EXPECT_EQ(choice({128, 1280}, {1280, 128}, {128, 128}).at("ping_pong"), 0);
}

TEST(Matmul, CtasShareTilesOfTheLastRound) {
  ProductCase c("mm_plain", MathMode::bf16, "sm_90a");
  const Json shared{{"tail", 8},  {"tile_m", 128}, {"tile_n", 256},
                    {"split", 1}, {"stages", 4},   {"ping_pong", 0}};
  const KernelProgram program = c.program(shared);
  const Json plan = to_json(program.plan);
  ASSERT_EQ(plan.at("steps").size(), 2U);
  EXPECT_EQ(plan.at("steps")[1].at("when"), "parts > 0");
  EXPECT_EQ(plan.at("symbols").at("rest"), "all_tiles % 132");
  EXPECT_EQ(plan.at("scratch")[0].at("shape"), Json({"max(parts,1)", 128, 256}));
  EXPECT_THAT(program.sources.at("kernel.cu"), HasSubstr("id < items"));
  EXPECT_THAT(c.source({{"tail", 1}, {"split", 1}}), Not(HasSubstr("whole")));
  Json params = c.match.safe;
  params.update({{"tail", 8}, {"split", 2}});
  EXPECT_FALSE(instantiate(c.task, c.match, params));
}

// Each part of the product goes to its own output, from its own tiles.
TEST(Matmul, PartsOfAProductShareAKernel) {
  ProductCase c("joined_qkv", MathMode::bf16, "sm_90a");
  const KernelProgram program = c.program();
  const Json plan = to_json(program.plan);
  ASSERT_EQ(plan.at("steps").size(), 1U);
  EXPECT_EQ(plan.at("tensor_maps").size(), 2U);  // all parts read one weight
  EXPECT_TRUE(plan.at("symbols").contains("part2_size"));
  const std::string& source = program.sources.at("kernel.cu");
  EXPECT_THAT(source, HasSubstr("cutegen::part_of(tile, part_tiles)"));
  EXPECT_THAT(source, HasSubstr("ColumnMaps<1>{{&map_b}"));
  EXPECT_THAT(source, HasSubstr("compute_part2("));
  for (const Json& engine : {Json{{"wgmma", 0}, {"tensor_cores", 1}}, Json{{"wgmma", 0}}}) {
    Json simple{{"tile_m", 64}, {"tile_n", 64}, {"stages", 1}, {"vector", 1}};
    simple.update(engine);
    EXPECT_THAT(c.source(simple), HasSubstr("if (which == 2)"));
  }
}

TEST(Matmul, Float32KeepsExactFunctions) {
  ProductCase c("joined_packed", MathMode::fp32, "sm_90a");
  auto program = instantiate(c.task, c.match, c.match.safe);
  ASSERT_TRUE(program) << program.error().text();
  std::string all;
  for (const auto& [name, text] : program->sources) all += text;
  EXPECT_THAT(all, HasSubstr("cutegen::gelu("));
  EXPECT_THAT(all, testing::Not(HasSubstr("fast_gelu(")));
}

TEST(Matmul, PartnersShareATile) {
  ProductCase c("joined_packed", MathMode::bf16, "sm_90a");
  const KernelProgram program =
      c.program({{"tile_m", 192}, {"tile_n", 192}, {"stages", 4}, {"ping_pong", 0}});
  const std::string& source = program.sources.at("kernel.cu");
  EXPECT_THAT(source, HasSubstr("ceil_div(n_size, kTileN / 2)"));
  EXPECT_THAT(source, HasSubstr("ColumnMaps<2>{{&map_b, &map_b}"));
  EXPECT_THAT(source, HasSubstr("product[0][v], product[1][v]"));
  EXPECT_THAT(source, HasSubstr("{1, 3, 64, 96, 1, "));  // a box has the columns of one product
  EXPECT_THAT(source, HasSubstr("fast_gelu("));          // 16 bits need no more
  const Json plan = to_json(program.plan);
  EXPECT_EQ(plan.at("steps")[0].at("block")[0], "384 + (tma == 1 ? 128 : 128)");
  EXPECT_THAT(plan.at("requires").dump(), HasSubstr("(dim(l_weight,0)) % 2 == 0"));
  for (const char* name : {"wgmma", "split", "tile_n"}) {
    Json params = c.match.safe;
    params[name] = std::string(name) == "wgmma" ? 0 : std::string(name) == "split" ? 2 : 32;
    EXPECT_FALSE(instantiate(c.task, c.match, params)) << name;
  }
}

// In float32 a tile holds both products, too, if B is in shared memory.
TEST(Matmul, PartnersOfFloatsShareATile) {
  for (MathMode mode : {MathMode::fp32, MathMode::tf32}) {
    ProductCase c("joined_packed", mode, "sm_90a");
    const KernelProgram program = c.program();
    EXPECT_EQ(to_json(program.plan).at("steps").size(), 1U);
    const std::string& source = program.sources.at("kernel.cu");
    EXPECT_THAT(source,
                HasSubstr(mode == MathMode::fp32 ? "true, true, 3, 2>" : "true, true, 1, 2>"));
    EXPECT_THAT(source, HasSubstr("gemm.repair(rows, columns, tile, first, last);"));
    EXPECT_THAT(source, HasSubstr("product[0][v], product[1][v]"));
    for (const Json& change : {Json{{"wgmma", 0}}, Json{{"split", 2}}, Json{{"tile_n", 32}}}) {
      Json params = c.match.safe;
      params.update(change);
      EXPECT_FALSE(instantiate(c.task, c.match, params)) << change;
    }
  }
}

// The softmax's CTAs wait on the SMs while the product ends.
TEST(Matmul, TheNextStageBeginsEarly) {
  ProductCase c("mm_softmax_after", MathMode::bf16, "sm_90a");
  const KernelProgram program = c.program();
  const Json steps = to_json(program.plan).at("steps");
  EXPECT_FALSE(steps[0].contains("pdl"));
  EXPECT_EQ(steps[1].at("pdl"), true);
  EXPECT_THAT(program.sources.at("kernel_1.cu"), HasSubstr("cutegen::allow_next_step();"));
  EXPECT_THAT(program.sources.at("kernel_2.cu"), HasSubstr("cutegen::await_previous_step();"));
}

// A row-major B is read through registers; its columns become the instruction's rows.
TEST(Matmul, WgmmaTurnsAPlainProduct) {
  const Json on{{"wgmma", 1}, {"tile_m", 128}, {"tile_n", 64}};
  auto block = [&](const std::string& name) {
    return to_json(
        ProductCase(name, MathMode::fp32, "sm_90a").program(on).plan)["steps"][0]["block"][0];
  };
  EXPECT_EQ(block("mm_plain"), 256 + 128);          // tile_n / 64 consumers
  EXPECT_EQ(block("mm_bias_residual"), 256 + 256);  // tile_m / 64 consumers
}

TEST(Matmul, SafeChoiceOnHopperFollowsTheCost) {
  Contraction c;
  c.hopper = true;
  c.loads.axes = {{.size = 4096, .reduced = false, .extent = "M"},
                  {.size = 4096, .reduced = false, .extent = "N"},
                  {.size = 4096, .reduced = false, .extent = "K"}};
  c.m = 0, c.n = 1, c.k = 2;
  EXPECT_EQ(matmul_safe(c).at("wgmma"), 1);
  EXPECT_EQ(matmul_safe(c).at("tile_m"), 128);
  EXPECT_TRUE(matmul_legal(c, matmul_safe(c)));
  c.loads.axes = {{.size = 128, .reduced = false, .extent = "M"},
                  {.size = 4096, .reduced = false, .extent = "N"},
                  {.size = 4096, .reduced = false, .extent = "K"}};
  EXPECT_GE(matmul_safe(c).at("split"), 2);
  c.loads.axes = {{.size = 64, .reduced = false, .extent = "M"},
                  {.size = 64, .reduced = false, .extent = "N"},
                  {.size = 16, .reduced = false, .extent = "K"}};
  EXPECT_TRUE(matmul_legal(c, matmul_safe(c)));
  Json wrong = matmul_safe(c);
  wrong.update({{"wgmma", 1}, {"tile_m", 256}});
  EXPECT_FALSE(matmul_legal(c, wrong));
}

// Sizes come from tensors: no number of the official shape is in source or plan.
TEST(Matmul, HoldsNoSizes) {
  KernelProgram program = ProductCase("mm_large_k").program();
  EXPECT_THAT(program.sources.at("kernel.cu"), Not(HasSubstr("65536")));
  EXPECT_THAT(dump_json(to_json(program.plan)), Not(HasSubstr("65536")));
}

}  // namespace
}  // namespace cutegen::recipes
