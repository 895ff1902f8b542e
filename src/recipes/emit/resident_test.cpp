// SPDX-License-Identifier: Apache-2.0
// Rows that stay in shared memory, and arithmetic for results of 16 bits.
#include <gmock/gmock.h>

#include "recipes/emit/recipes.h"
#include "recipes/nest/accuracy.h"
#include "recipes/testing/test_tasks.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

struct ResidentCase {
  Task task;
  RecipeMatch match;
  ResidentCase(const std::string& name, std::string_view arch, MathMode mode = MathMode::fp32)
      : task(golden_task(name)) {
    task.math_mode = mode;
    match = match_recipe(task, arch);
  }
  Result<KernelProgram> try_program(const Json& changes) const {
    Json params = match.safe;
    params.update(changes);
    return instantiate(task, match, params);
  }
  KernelProgram program(const Json& changes = Json::object()) const {
    auto program = try_program(changes);
    if (!program) throw std::runtime_error(program.error().text());
    for (const Error& error : check_plan(program->plan, task)) ADD_FAILURE() << error.text();
    return *program;
  }
  std::string source(const Json& changes = Json::object()) const {
    return program(changes).sources.at("kernel.cu");
  }
};

// The safe parameters of a golden task with other sizes.
Json safe_of(const std::string& name,
             const std::vector<std::pair<std::string, std::string>>& changes) {
  auto text = read_file(golden_folder() / (name + ".json"));
  if (!text) throw std::runtime_error(text.error().text());
  for (const auto& [from, to] : changes) *text = replace_all(*text, from, to);
  const auto json = parse_json(*text, name);
  if (!json) throw std::runtime_error(json.error().text());
  const auto task = read_json<Task>(*json);
  if (!task) throw std::runtime_error(task.error().text());
  return match_recipe(*task, kHopperArch).safe;
}

TEST(Resident, LongRowsStayInAClusterOfHopper) {
  const ResidentCase c("softmax_resident", kHopperArch);
  const KernelProgram program = c.program();
  EXPECT_EQ(program.plan.arch, std::vector<std::string>{"sm_90a"});
  const Json step = to_json(program.plan).at("steps").at(0);
  EXPECT_EQ(step.at("cluster").at(0), 8);  // 64 KiB of shared memory, so that two CTAs fit an SM
  EXPECT_EQ(step.at("grid").at(0), "rows*8");
  EXPECT_THAT(c.source(), HasSubstr("combine_cluster<kCluster>"));
  EXPECT_THAT(c.source(), HasSubstr("leave_cluster<kCluster>"));
}

TEST(Resident, OtherGpusGetNoCluster) {
  const ResidentCase c("softmax_resident", "sm_80");
  EXPECT_EQ(c.match.safe.at("cluster"), 1);
  EXPECT_EQ(c.program().plan.arch, std::vector<std::string>{"sm_80+"});
  auto refused = c.try_program({{"cluster", 8}, {"cached", 2}, {"width", 512}, {"threads", 512}});
  ASSERT_FALSE(refused);
}

TEST(Resident, AClusterNeedsElementsInSharedMemory) {
  const ResidentCase c("softmax_resident", kHopperArch);
  auto refused = c.try_program({{"cached", 0}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("cannot be combined"));
}

TEST(Resident, ShortRowsStayInRegisters) {
  const ResidentCase c("softmax_last", kHopperArch);
  EXPECT_EQ(c.match.safe.at("cached"), 1);
  for (const RecipeParameter& p : c.match.parameters) {
    EXPECT_NE(p.name, "cluster");
    if (p.name == "cached") {
      EXPECT_THAT(p.legal, Not(Contains(2)));
    }
  }
}

TEST(Registers, KeepRowsThatFitAFewThreads) {
  const ResidentCase c("softmax_bf16", kHopperArch);  // 512 rows of 4096
  EXPECT_EQ(c.match.safe.at("cached"), 1);
  EXPECT_EQ(c.match.safe.at("width"), 256);
  EXPECT_THAT(c.source(), HasSubstr("constexpr int kItems = 16 / kVector;"));
  EXPECT_THAT(to_json(c.program().plan).at("requires").dump(), HasSubstr("length <= 4096"));
  // A wider row takes more threads of the CTA, too.
  const auto next = neighbours(c.match, c.match.safe);
  EXPECT_TRUE(std::any_of(next.begin(), next.end(), [](const Json& params) {
    return params.at("width") == 512 && params.at("threads") == 512;
  }));
}

TEST(Registers, HoldMoreElementsIfTheyHave16Bits) {
  // A thread keeps 32 elements of a row of 4096.
  EXPECT_EQ(safe_of("softmax_bf16", {{"[512,", "[16384,"}}).at("width"), 128);
}

// The task with more timed shapes, whose rows have other lengths.
ResidentCase with_lengths(const std::string& name, const std::vector<int64_t>& lengths) {
  ResidentCase c(name, kHopperArch);
  for (int64_t length : lengths) {
    ShapeCase shape = c.task.official();
    shape.name = std::to_string(length);
    shape.kind = ShapeKind::user;
    for (auto& [tensor, sizes] : shape.tensors) sizes.back() = length;
    c.task.shapes.push_back(shape);
  }
  c.match = match_recipe(c.task, kHopperArch);
  return c;
}

TEST(Registers, ThreadsFollowTheRowsOfEveryTimedShape) {
  const ResidentCase c = with_lengths("softmax_bf16", {11008, 14336, 100});
  EXPECT_EQ(c.match.safe.at("cached"), 1);
  EXPECT_EQ(c.match.safe.at("width"), 256);
  const Json plan = to_json(c.program().plan);
  EXPECT_EQ(plan.at("symbols").at("width"),
            "length <= 2048 ? 128 : length <= 4096 ? 256 : length <= 11264 ? 704 : 896");
  EXPECT_EQ(plan.at("defines").at("WIDTH"), "width");
  EXPECT_EQ(plan.at("steps").at(0).at("block").at(0), "width");
  EXPECT_THAT(plan.at("requires").dump(), HasSubstr("length <= 14336"));
  EXPECT_THAT(c.source(), HasSubstr("constexpr int kWidth = WIDTH;"));
  EXPECT_THAT(c.source(), HasSubstr("constexpr int kThreads = WIDTH;"));
}

TEST(Registers, TooLongRowsOfATimedShapeAreNotKept) {
  const ResidentCase c = with_lengths("softmax_bf16", {1 << 20});
  EXPECT_EQ(c.match.safe.at("cached"), 0);
  EXPECT_FALSE(c.try_program({{"cached", 1}, {"width", 256}, {"threads", 256}}));
}

TEST(Registers, AThreadKeepsMoreElementsIfATimedShapeNeedsIt) {
  // With 8 elements for each thread, the longest rows would need 1792 threads.
  EXPECT_EQ(with_lengths("softmax_bf16", {14336}).match.safe.at("width"), 256);
  EXPECT_EQ(with_lengths("softmax_bf16", {2048}).match.safe.at("width"), 256);
}

TEST(Registers, DoNotKeepWhatAllRowsShare) {
  ResidentCase c("take_then_norm", kHopperArch);
  auto text = read_file(golden_folder() / "take_then_norm.json");
  ASSERT_TRUE(text);
  auto longer = parse_json(replace_all(*text, "512", "4096"), "longer");
  ASSERT_TRUE(longer);
  auto task = read_json<Task>(*longer);
  ASSERT_TRUE(task) << task.error().text();
  c.task = *task;
  c.match = match_recipe(c.task, kHopperArch);
  const auto comes_late = [&](int width) {
    const std::string source = c.source({{"cached", 1}, {"width", width}, {"threads", 256}});
    const size_t weight = source.find("cutegen::load_pack(g_w(_, j), e.w)");
    EXPECT_NE(weight, std::string::npos) << source;
    return weight > source.find("// Computes the results along the row.");
  };
  EXPECT_TRUE(comes_late(64));
  EXPECT_FALSE(comes_late(256));  // few weights are read early, so no thread waits for them
}

// The second pass and the results read what the first pass has stored.
TEST(Resident, LaterPassesReadWhatTheFirstHasComputed) {
  const ResidentCase c("gelu_group_norm", kHopperArch);
  EXPECT_EQ(c.match.safe.at("cached"), 2);
  for (int cached : {1, 2}) {
    const std::string source = c.source({{"cached", cached}, {"width", 512}, {"threads", 512}});
    EXPECT_THAT(source, HasSubstr("e.x[v] = gelu;"));
    EXPECT_THAT(source, HasSubstr("const float gelu = e.x[v];"));
    const std::string call = "cutegen::gelu(";
    EXPECT_EQ(source.find(call), source.rfind(call)) << source;
    EXPECT_EQ(source.find("store_slot(e.x, kept_x[i * kThreads])") != std::string::npos,
              cached == 2);
  }
  const std::string again = c.source({{"cached", 0}});
  EXPECT_THAT(again, Not(HasSubstr("e.x[v] = gelu;")));
}

// A cluster reads ahead of the row whose results it writes, as far as shared memory has room.
TEST(Resident, AClusterTakesTurns) {
  const ResidentCase c("gelu_group_norm", kHopperArch);
  EXPECT_EQ(c.match.safe.at("turns"), 1);  // several CTAs share an SM
  EXPECT_THAT(c.source(), Not(HasSubstr("fetch")));
  const std::string source = c.source({{"turns", 4}});
  EXPECT_THAT(source, HasSubstr("fetch(turn * kGroups + group + kPlaces);"));
  EXPECT_THAT(source, HasSubstr("wait_groups(kPlaces - 1 - group);"));
  EXPECT_THAT(source, HasSubstr("copy_async(kept_x + i * kThreads, &next_x(0, j));"));
  const Json step = to_json(c.program({{"turns", 4}}).plan).at("steps").at(0);
  EXPECT_EQ(step.at("grid").at(0), "ceil_div(rows,4)*1");
  EXPECT_FALSE(c.try_program({{"turns", 4}, {"cached", 1}}));
}

TEST(Resident, ColumnsStayInTheRegistersOfACluster) {
  const ResidentCase c("standardise_columns", kHopperArch);
  EXPECT_EQ(c.match.safe.at("cached"), 1);
  EXPECT_GT(c.match.safe.at("cluster"), 1);
  const KernelProgram program = c.program();
  EXPECT_EQ(program.plan.arch, std::vector<std::string>{"sm_90a"});
  const std::string source = c.source({{"columns", 8}, {"cluster", 16}});
  EXPECT_THAT(source, HasSubstr("first = Index(part) * kRows + team"));
  EXPECT_THAT(source, HasSubstr("combine_columns_of_cluster<kCluster, kColumns, kThreads>("));
  EXPECT_THAT(source, HasSubstr("leave_cluster<kCluster>"));
  const Json step = to_json(c.program({{"columns", 8}, {"cluster", 16}}).plan).at("steps").at(0);
  EXPECT_EQ(step.at("grid").at(0), "ceil_div(rows/vector,8)*16");
  EXPECT_EQ(step.at("cluster").at(0), 16);
  // One CTA has too few registers.
  EXPECT_FALSE(c.try_program({{"cluster", 1}}));
}

// Only a cluster of 16 CTAs could keep columns of 16384 rows.
TEST(Resident, VeryLongColumnsAreReadTwice) {
  const Json safe = safe_of("standardise_columns", {{",3000", ",2048"}, {"[8192,", "[16384,"}});
  EXPECT_EQ(safe.at("cached"), 0);
  EXPECT_EQ(safe.at("online"), 1);
  EXPECT_EQ(safe.at("parts"), 16);
}

TEST(Resident, RegistersKeepColumnsIn16BitsAsTheyAre) {
  const ResidentCase c("channel_rms_half", kHopperArch, MathMode::bf16);
  EXPECT_EQ(c.match.safe.at("vector"), 8);
  EXPECT_THAT(c.source(), HasSubstr("cutegen::Pack<bfloat16_t, kVector> x;"));
  EXPECT_THAT(c.source(), HasSubstr("cutegen::load_pack(g_x(_, j), e.x);"));
  EXPECT_THAT(c.source(), HasSubstr("= cutegen::to_float(e.x.element[v]);"));
  EXPECT_THAT(c.source({{"cached", 0}}), HasSubstr("cutegen::load_pack(g_x(_, j), e.x);"));
}

TEST(Resident, LaterPassesReadElementsThatTheyNeedAsTheyAre) {
  const ResidentCase c("layer_norm_short", kHopperArch);
  EXPECT_THAT(c.source(), HasSubstr("const Elements& e = cache[i];"));
  EXPECT_THAT(c.source(), Not(HasSubstr("for the next passes")));
}

// A channel has an odd number of elements (31 * 71), but 4 channels lie side by side.
TEST(Resident, VectorsCrossFromOneChannelToTheNext) {
  const ResidentCase c("gelu_group_norm", kHopperArch);
  EXPECT_EQ(c.match.safe.at("vector"), 4);
  EXPECT_THAT(c.source(), HasSubstr("const cutegen::Runs runs{Index(r1)};"));
  EXPECT_THAT(c.source(),
              HasSubstr("cutegen::load_run<kWholeRuns>(g_norm_weight, runs, j * kVector, "));
  EXPECT_EQ(to_json(c.program().plan).at("symbols").at("vector"),
            "r1 >= 4 ? (length % 4 == 0 ? 4 : 1) : 1");
}

TEST(ShortRows, AThreadTakesSeveralVectorsIfRowsAreMany) {
  const ResidentCase c("layer_norm_short", kHopperArch);
  EXPECT_EQ(c.match.safe.at("width"), 4);
  EXPECT_EQ(c.match.safe.at("cached"), 1);
  EXPECT_EQ(to_json(c.program().plan).at("steps").at(0).at("grid").at(0), "ceil_div(rows,64)");
  const ResidentCase few("layer_norm", kHopperArch);
  EXPECT_EQ(few.match.safe.at("width"), 32);
}

// Of five operands three vary along the row, so 16 elements of each fit a thread's registers.
TEST(ShortRows, OperandsWithOneValueARowTakeOneRegister) {
  const ResidentCase c("layer_norm_shifted", kHopperArch);
  EXPECT_EQ(c.match.safe.at("width"), 4);
  EXPECT_EQ(c.match.safe.at("cached"), 1);
}

TEST(Resident, ManyRowsOfCtasThatAreAloneGoInTurn) {
  EXPECT_EQ(ResidentCase("group_norm_alone", kHopperArch).match.safe.at("turns"), 4);
  EXPECT_EQ(ResidentCase("softmax_resident", kHopperArch).match.safe.at("turns"),
            1);  // two fit an SM
}

TEST(Loads, OfSeveralStepsComeBeforeTheirUse) {
  const std::string source = ResidentCase("sum_all", kHopperArch).source({{"unroll", 4}});
  EXPECT_THAT(source, HasSubstr("cache[u] = read(j < steps ? j : "));
  EXPECT_THAT(source, Not(HasSubstr("#pragma unroll kUnroll")));
}

TEST(Loads, LeaveTheConversionOf16BitElementsToThePasses) {
  const std::string source = ResidentCase("softmax_bf16", kHopperArch).source();
  EXPECT_THAT(source, HasSubstr("cutegen::Pack<bfloat16_t, kVector> x;"));
  EXPECT_THAT(source, HasSubstr("cache[i] = read(j < steps ? j : steps - 1);"));
}

TEST(Loads, OfLongRowsAreSeveralAtOnceByDefault) {
  EXPECT_EQ(ResidentCase("frobenius_large", kHopperArch).match.safe.at("unroll"), 4);
}

TEST(Passes, LaterOnesBeginWhereTheOneBeforeEnded) {
  const ResidentCase c("softmax_last", kHopperArch);
  const std::string source = c.source({{"cached", 0}, {"online", 1}, {"unroll", 2}});
  EXPECT_THAT(source, HasSubstr("for (; left >= kUnroll; left -= kUnroll)"));
  EXPECT_THAT(c.source({{"cached", 1}}), Not(HasSubstr("Index left")));
}

TEST(Passes, OnePassComputesALogSumExp) {
  const std::string source = ResidentCase("logsumexp", kHopperArch).source({{"online", 1}});
  EXPECT_THAT(source, HasSubstr(".sum_of_finite_shift()"));
  EXPECT_THAT(source, Not(HasSubstr("Pass 2")));
}

TEST(NeededAccuracy, FollowsTheDtypeOfResultsAndTheMode) {
  const ResidentCase half("softmax_bf16", {}, MathMode::bf16);
  EXPECT_THAT(half.source(), HasSubstr("cutegen::PlainSum"));
  EXPECT_THAT(half.source(), HasSubstr("cutegen::fast_exp("));
  EXPECT_THAT(half.source(), HasSubstr("* cutegen::fast_reciprocal("));
  EXPECT_THAT(half.source({{"online", 1}}), HasSubstr("MaxSumExpOf<cutegen::PlainSum>"));
  // For a 16-bit result in fp32 mode, a short row has a plain sum but exact functions.
  const ResidentCase strict("softmax_bf16", {}, MathMode::fp32);
  EXPECT_THAT(strict.source(), HasSubstr("cutegen::PlainSum"));
  EXPECT_THAT(strict.source(), HasSubstr("expf("));
  const ResidentCase single("softmax_last", {});
  EXPECT_THAT(single.source(), HasSubstr("cutegen::Sum"));
  EXPECT_THAT(single.source(), Not(HasSubstr("fast_")));
}

TEST(NeededAccuracy, Float32ResultsOfA16BitModeKeepExactSums) {
  const ResidentCase c("softmax_last", {}, MathMode::bf16);
  EXPECT_THAT(c.source(), Not(HasSubstr("PlainSum")));
}

TEST(NeededAccuracy, QuotientsOfAnythingElseStayExact) {
  Fused fused;
  fused.insts.push_back({.kind = InstKind::leaf, .name = "a"});
  fused.insts.push_back({.kind = InstKind::leaf, .name = "b"});
  fused.insts.push_back({.kind = InstKind::pointwise, .code = "{0} / {1}", .inputs = {0, 1}});
  const Fused out = relaxed({.plain_sums = true, .fast_functions = true}, fused);
  EXPECT_EQ(out.insts[2].code, "{0} / {1}");
}

// Otherwise, the compiler subtracts the maximum of rounded products from an unrounded product, and
// the largest element of a softmax may be above 1.
TEST(NeededAccuracy, AProductIsRoundedBeforeItsMaximumIsSubtracted) {
  Fused fused;
  fused.insts.push_back({.kind = InstKind::leaf, .name = "a"});
  fused.insts.push_back({.kind = InstKind::pointwise, .code = "{0} * 3.0f", .inputs = {0}});
  for (int of : {1, 0}) {
    const int highest = int(fused.insts.size());
    fused.insts.push_back({.kind = InstKind::reduction, .inputs = {of}, .reduce = ReduceKind::max});
    fused.insts.push_back(
        {.kind = InstKind::pointwise, .code = kDifference, .inputs = {of, highest}});
  }
  const Fused exact = relaxed({}, fused);
  EXPECT_EQ(exact.insts[3].code, kRoundedDifference);
  EXPECT_EQ(exact.insts[5].code, kDifference);  // a loaded element is no product
  EXPECT_EQ(relaxed({.fast_functions = true}, fused).insts[3].code, kDifference);
}

TEST(NeededAccuracy, FastFunctionsReplaceExactOnes) {
  Fused fused;
  fused.insts.push_back({.kind = InstKind::leaf, .name = "a"});
  fused.insts.push_back({.kind = InstKind::pointwise, .code = "cutegen::gelu({0})", .inputs = {0}});
  EXPECT_EQ(relaxed({}, fused).insts[1].code, "cutegen::gelu({0})");
  EXPECT_EQ(relaxed({.fast_functions = true}, fused).insts[1].code, "cutegen::fast_gelu({0})");
  const auto accuracy_of = [&](DType dtype) {
    fused.outputs = {{.operand = Operand{.tensor = "out", .dtype = dtype}, .inst = 1}};
    return needed_accuracy(golden_task("softmax_last"), fused);
  };
  EXPECT_TRUE(accuracy_of(DType::f8e4m3).fast_functions);  // 3 bits of mantissa
  EXPECT_FALSE(accuracy_of(DType::bf16).fast_functions);   // in mode fp32
}

TEST(NeededAccuracy, ARowsDivisorIsInvertedOnce) {
  const ResidentCase c("softmax_last", {});
  EXPECT_THAT(c.source(), HasSubstr("= cutegen::row_reciprocal("));
  EXPECT_THAT(c.source(), HasSubstr("= cutegen::quotient("));
}

}  // namespace
}  // namespace cutegen::recipes
