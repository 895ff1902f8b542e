// SPDX-License-Identifier: Apache-2.0
#include "core/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "base/file.h"
#include "core/testing/test_task.h"

namespace cutegen {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

KernelProgram program(const std::function<void(Json&)>& change = {}) {
  Json plan = parse_json(test_plan_text(), "plan").value();
  if (change) change(plan);
  return {.sources = {{"norm.cu", "// norm\n"}}, .plan = plan_from_json(plan).value()};
}

class Folder : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() / ("cutegen_core_" + std::to_string(::getpid()));
    fs::remove_all(dir_);
    ASSERT_TRUE(private_dir(dir_));
  }
  void TearDown() override { fs::remove_all(dir_); }
  fs::path dir_;
};

TEST_F(Folder, SavesAndLoads) {
  ASSERT_TRUE(save_program(program(), dir_ / "out"));
  auto loaded = load_program(dir_ / "out");
  ASSERT_TRUE(loaded) << loaded.error().text();
  EXPECT_EQ(program_id(*loaded), program_id(program()));
  EXPECT_EQ(loaded->sources.at("norm.cu"), "// norm\n");
}

TEST_F(Folder, LoadErrors) {
  EXPECT_THAT(load_program(dir_ / "none").error().text(), HasSubstr("is not a folder"));
  EXPECT_THAT(load_program(dir_).error().text(), HasSubstr("plan.json"));
  ASSERT_TRUE(write_file(dir_ / "plan.json", test_plan_text()));
  EXPECT_THAT(load_program(dir_).error().text(), HasSubstr("norm.cu"));
  EXPECT_THAT(load_program(dir_).error().where, HasSubstr("#/sources/0"));
  ASSERT_TRUE(write_file(dir_ / "norm.cu", std::string(2 << 20, 'x')));
  EXPECT_THAT(load_program(dir_).error().text(), HasSubstr("the limit is 1048576"));
  ASSERT_TRUE(write_file(dir_ / "norm.cu", std::string("a\0b", 3)));
  EXPECT_THAT(load_program(dir_).error().text(), HasSubstr("is not text"));
  ASSERT_TRUE(write_file(dir_ / "plan.json", "{"));
  EXPECT_THAT(load_program(dir_).error().text(), HasSubstr("plan.json:1:2"));
}

TEST_F(Folder, SaveRefusesWhatThePlanDoesNotList) {
  KernelProgram p = program();
  p.sources["more.cu"] = "";
  EXPECT_THAT(save_program(p, dir_).error().text(), HasSubstr("'more.cu' is not in the plan's"));
  p.sources.clear();
  EXPECT_THAT(save_program(p, dir_).error().text(), HasSubstr("which does not exist"));
}

TEST(ProgramId, DependsOnMeaningOnly) {
  KernelProgram a = program(), b = program();
  b.sources["norm.cu"] = "// norm\r\n";
  EXPECT_EQ(program_id(a), program_id(b));
  b.sources["norm.cu"] = "// Norm\n";
  EXPECT_NE(program_id(a), program_id(b));
  EXPECT_EQ(program_id(a), program_id(program([](Json& j) { j["dialect"] = "cute"; })));
  EXPECT_NE(program_id(a), program_id(program([](Json& j) { j["dialect"] = "cuda"; })));
  EXPECT_EQ(program_id(a).size(), 64U);
}

class Resolve : public testing::Test {
 protected:
  Result<ResolvedPlan> resolve(const std::function<void(Json&)>& change = {},
                               size_t shape = 0) const {
    return resolve_plan(program(change), task_, task_.shapes[shape], device_, facts_);
  }
  std::string error(const std::function<void(Json&)>& change) const {
    auto r = resolve(change);
    return r ? "no error" : r.error().text();
  }
  Task task_ = test_task();
  DeviceFacts device_ = test_device();
  std::vector<ModuleFacts> facts_ = test_facts();
};

TEST_F(Resolve, GivesNumbers) {
  ResolvedPlan r = resolve().value();
  ASSERT_EQ(r.steps.size(), 1U);  // the fill is skipped: M is not 0
  const auto& l = std::get<Launch>(r.steps[0]);
  EXPECT_EQ(l.step, "norm");
  EXPECT_EQ(l.grid, (std::array<int64_t, 3>{4096, 1, 1}));
  EXPECT_EQ(l.block, (std::array<int64_t, 3>{256, 1, 1}));
  EXPECT_EQ(l.shared_bytes, 4096);
  ASSERT_EQ(l.args.size(), 6U);
  EXPECT_EQ(l.args[1].buffer, "fc.weight");
  EXPECT_EQ(l.args[2].buffer, "sums");
  int32_t k = 0;
  float eps = 0;
  ASSERT_EQ(l.args[4].bytes.size(), sizeof k);
  std::memcpy(&k, l.args[4].bytes.data(), sizeof k);
  std::memcpy(&eps, l.args[5].bytes.data(), sizeof eps);
  EXPECT_EQ(k, 1024);
  EXPECT_EQ(eps, 1e-5F);
  EXPECT_EQ(r.scratch[0].bytes, 4096 * 4);
  EXPECT_TRUE(r.scratch[0].zero);
}

TEST_F(Resolve, FollowsTheShape) {
  const auto r = resolve({}, 1).value();
  EXPECT_EQ(std::get<Launch>(r.steps[0]).grid[0], 7);
  task_.shapes[0].tensors = {{"x", {0, 5}}, {"fc.weight", {5}}, {"out", {0, 5}}};
  const auto empty = resolve().value();
  ASSERT_EQ(empty.steps.size(), 1U);
  EXPECT_EQ(std::get<Fill>(empty.steps[0]).buffer, "out");
  EXPECT_EQ(std::get<Fill>(empty.steps[0]).dtype, DType::f32);
  EXPECT_EQ(empty.scratch[0].bytes, 0);
}

TEST_F(Resolve, FillsKnowTheDtype) {
  const auto r = resolve([](Json& j) {
                   j["scratch"][0]["dtype"] = "u32";
                   j["steps"][1] = {{"fill", "sums"}, {"value", 1}};
                 }).value();
  EXPECT_EQ(std::get<Fill>(r.steps[1]).dtype, DType::u32);
  EXPECT_EQ(std::get<Fill>(r.steps[1]).value, 1);
}

TEST_F(Resolve, GridAndBlockErrors) {
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["grid"][0] = "M - 4096"; }),
              testing::AllOf(HasSubstr("plan.json#/steps/0/grid/0: error: grid of 0 ('M - 4096')"),
                             HasSubstr("\"when\"")));
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["grid"][0] = "0 - M"; }), HasSubstr("of -4096"));
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["grid"] = {1, "M * 32"}; }),
              HasSubstr("grid of 131072: the limit is 65535"));
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["grid"][0] = "M * 1000000"; }),
              HasSubstr("the limit is 2147483647"));
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["block"] = {32, 64}; }),
              HasSubstr("2048 threads per block: the limit is 1024"));
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["block"] = {1, 1, 128}; }),
              HasSubstr("block of 128: the limit is 64"));
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["block"] = {1024}; }),
              HasSubstr("compiled for at most 512"));
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["cluster"] = {3}; }),
              HasSubstr("cluster of 3 does not divide a grid of 4096"));
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["cluster"] = {32}; }), HasSubstr("at most 16"));
}

TEST_F(Resolve, SharedMemoryErrors) {
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["shared_bytes"] = "3 * 1000 * 1000 * 1000"; }),
              HasSubstr("3 GB of shared memory: the limit on sim:h200 is 232 KB"));
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["shared_bytes"] = "0 - 8"; }),
              HasSubstr("negative"));
  facts_[0].entries[0].static_shared_bytes = 232448;
  EXPECT_THAT(error([](Json&) {}), HasSubstr("static"));
}

TEST_F(Resolve, ArgumentErrors) {
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["args"].erase(0); }),
              HasSubstr("'norm' takes 6 argument(s), the plan gives 5"));
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["args"][4] = {{"i64", "K"}}; }),
              HasSubstr("plan.json#/steps/0/args/4: error: argument 4 of 'norm' has 4 bytes, the "
                        "plan gives 8"));
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["args"][4] = {{"i32", "M * 4096 * 4096"}}; }),
              HasSubstr("does not fit in an i32"));
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["args"][4] = {{"u32", "0 - 1"}}; }),
              HasSubstr("does not fit in a u32"));
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["args"][4] = {{"i32", "attr(eps)"}}; }),
              HasSubstr("an integer is needed"));
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["args"][5] = {{"f32", 1e300}}; }),
              HasSubstr("does not fit"));
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["args"][0]["tensor"] = "xx"; }),
              HasSubstr("neither the task nor the scratch has 'xx'"));
}

TEST_F(Resolve, KernelErrors) {
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["kernel"] = "nrm"; }),
              HasSubstr("no kernel 'nrm' in the sources (did you mean 'norm'?)"));
  facts_.push_back(facts_[0]);
  auto p = program([](Json& j) { j["sources"] = {"norm.cu", "b.cu"}; });
  auto r = resolve_plan(p, task_, task_.official(), device_, facts_);
  EXPECT_THAT(r.error().text(), HasSubstr("two sources define the kernel 'norm'"));
}

TEST_F(Resolve, ScratchErrors) {
  EXPECT_THAT(error([](Json& j) { j["scratch"][0]["shape"] = {"M", "M", "M"}; }),
              HasSubstr("takes the total over the limit of 68.7 GB"));
  EXPECT_THAT(error([](Json& j) { j["scratch"][0]["shape"] = {"M", "M", "M", "M", "M", "M"}; }),
              HasSubstr("overflow"));
  EXPECT_THAT(error([](Json& j) { j["scratch"][0]["shape"] = {"K - M"}; }), HasSubstr("negative"));
  EXPECT_THAT(
      error([](Json& j) {
        j["scratch"][0]["shape"] = {int64_t{10} << 30};
        j["scratch"].push_back({{"name", "b"}, {"dtype", "f64"}, {"shape", {int64_t{7} << 30}}});
      }),
      HasSubstr("scratch 'b'"));
}

TEST_F(Resolve, RequiresThatDoNotHoldAreUnsupported) {
  auto r = resolve([](Json& j) { j["requires"] = {"K % 32 == 0"}; }, 1);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().kind, ErrorKind::unsupported);
  EXPECT_THAT(r.error().text(), HasSubstr("shape 'odd1' does not meet 'K % 32 == 0' (K = 33)"));
  EXPECT_TRUE(resolve([](Json& j) { j["requires"] = {"K % 32 == 0", "size(x) > attr(eps)"}; }));
  EXPECT_EQ(module_builds(program([](Json& j) { j["requires"] = {"dim(x,0) > 5000"}; }), task_,
                          task_.official(), device_)
                .error()
                .kind,
            ErrorKind::unsupported);
}

TEST_F(Resolve, SymbolsThatFailAreErrorsOnlyWhereUsed) {
  EXPECT_TRUE(resolve([](Json& j) { j["symbols"]["bad"] = "1 / (M - M)"; }));
  EXPECT_THAT(error([](Json& j) {
                j["symbols"]["bad"] = "1 / (M - M)";
                j["steps"][0]["grid"][0] = "bad";
              }),
              HasSubstr("plan.json#/symbols/bad: error: division by zero"));
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["shared_bytes"] = "k(smen)"; }),
              HasSubstr("did you mean 'smem'?"));
}

TEST_F(Resolve, OccupancyIsModelled) {
  auto grid = [&](const Json& shared, const Json& block) {
    auto r = resolve([&](Json& j) {
      j["symbols"]["blocks"] = "occupancy(norm) * gpu.sms";
      j["steps"][0]["grid"] = {"blocks"};
      j["steps"][0]["shared_bytes"] = shared;
      j["steps"][0]["block"] = block;
    });
    return r ? std::get<Launch>(r->steps[0]).grid[0] / 132 : -1;
  };
  EXPECT_EQ(grid(0, {256}), 8);        // limited by threads
  EXPECT_EQ(grid(0, {32}), 32);        // limited by blocks
  EXPECT_EQ(grid(100'000, {256}), 2);  // limited by shared memory
  EXPECT_EQ(grid("occupancy(norm)", {256}), -1);
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["block"] = {"32 * occupancy(norm)"}; }),
              HasSubstr("depends on itself"));
  EXPECT_THAT(error([](Json& j) { j["steps"][0]["grid"] = {"occupancy(other)"}; }),
              HasSubstr("no step launches a kernel 'other'"));
}

TEST_F(Resolve, TensorMapsNeedASpec) {
  auto with_map = [](Json& j) {
    j["tensor_maps"]["a"] = {
        {"tensor", "w"}, {"spec", "cg_tma"}, {"dims", {"K"}}, {"strides", {1}}};
    j["steps"][0]["args"][0] = {{"map", "a"}};
  };
  auto refused = resolve(with_map);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::unsupported);
  EXPECT_THAT(refused.error().text(), HasSubstr("tensor maps are not available on sim:h200"));
  facts_[0].tma_specs["cg_tma"] = {1, 1, 64};
  facts_[0].entries[0].params[0].size = 128;
  const auto r = resolve(with_map).value();
  const LaunchArg& arg = std::get<Launch>(r.steps[0]).args[0];
  EXPECT_EQ(arg.buffer, "fc.weight");
  std::vector<int64_t> words(arg.bytes.size() / 8);
  std::memcpy(words.data(), arg.bytes.data(), arg.bytes.size());
  EXPECT_EQ(words, (std::vector<int64_t>{1, 1024, 1, 1, 1, 64}));
}

TEST_F(Resolve, TensorMapsInIm2colMode) {
  const auto with_pixels = [](const Json& im2col, int dims = 3) {
    return [=](Json& j) {
      Json sizes = Json::array(), strides = Json::array();
      for (int i = 0; i < dims; ++i) sizes.push_back("K"), strides.push_back(1);
      j["tensor_maps"]["a"] = {{"tensor", "w"},
                               {"spec", "cg_tma"},
                               {"dims", sizes},
                               {"strides", strides},
                               {"im2col", im2col}};
      j["steps"][0]["args"][0] = {{"map", "a"}};
    };
  };
  facts_[0].tma_specs["cg_tma"] = {1, 3, 64};
  facts_[0].entries[0].params[0].size = 128;
  const auto words_of = [&](const Json& im2col) {
    const auto r = resolve(with_pixels(im2col)).value();
    const LaunchArg& arg = std::get<Launch>(r.steps[0]).args[0];
    std::vector<int64_t> words(arg.bytes.size() / 8);
    std::memcpy(words.data(), arg.bytes.data(), arg.bytes.size());
    return std::vector<int64_t>(words.end() - 3, words.end());
  };
  EXPECT_EQ(words_of({{"lower", {-1}}, {"upper", {"1-2"}}, {"steps", {2}}}),
            (std::vector<int64_t>{-1, -1, 2}));
  EXPECT_EQ(words_of({{"lower", {-1}}, {"upper", {0}}}), (std::vector<int64_t>{-1, 0, 1}));
  const Json whole = {{"lower", {-1}}, {"upper", {0}}, {"steps", {2}}};
  EXPECT_EQ(to_json(program(with_pixels(whole)).plan)["tensor_maps"]["a"]["im2col"], whole);
  const auto refused = [&](const Json& im2col, int dims = 3) {
    Json plan = parse_json(test_plan_text(), "plan").value();
    with_pixels(im2col, dims)(plan);
    return plan_from_json(plan).error().text();
  };
  EXPECT_THAT(refused({{"lower", {-1}}, {"upper", {0}}}, 2), HasSubstr("im2col mode with 2 dims"));
  EXPECT_THAT(refused({{"lower", {-1}}}), HasSubstr("upper"));
  EXPECT_THAT(refused({{"lower", {-1, 0}}, {"upper", {0}}}), HasSubstr("/im2col/lower"));
}

TEST_F(Resolve, ModuleBuildsFormatDefines) {
  auto builds = [&](const std::function<void(Json&)>& change) {
    return module_builds(program(change), task_, task_.official(), device_);
  };
  auto b = builds({}).value();
  ASSERT_EQ(b.size(), 1U);
  EXPECT_EQ(b[0].key(), "norm.cu|THREADS=256|EPS=1e-05f");
  auto text = [&](const Json& e) {
    auto r = builds([&](Json& j) { j["defines"] = {{"V", e}}; });
    return r ? (*r)[0].defines[0].second : r.error().text();
  };
  EXPECT_EQ(text("dim(x,1)"), "1024");
  EXPECT_EQ(text("attr(affine)"), "1");
  EXPECT_EQ(text("attr(axis)"), "-1");
  EXPECT_EQ(text(2.0), "2.0f");
  EXPECT_EQ(text(-0.5), "-0.5f");
  EXPECT_THAT(text(1e300), HasSubstr("does not fit in a float"));
  EXPECT_THAT(text("k(smem)"), HasSubstr("known only after compiling"));
  EXPECT_THAT(text("attr(epsilon)"), HasSubstr("plan.json#/defines/V"));
  task_.attributes.push_back({.name = "hi", .value = std::numeric_limits<double>::infinity()});
  EXPECT_EQ(text("attr(hi)"), "__builtin_bit_cast(float,0x7f800000)");
}

TEST(ChooseArch, TakesTheFirstThatRuns) {
  DeviceFacts h200 = test_device(), a100 = test_device();
  a100.name = "sim:a100";
  a100.arch = "sm_80";
  Plan plan;
  EXPECT_EQ(choose_arch(plan, h200).value(), "sm_90a");
  EXPECT_EQ(choose_arch(plan, a100).value(), "sm_80");
  plan.arch = {"sm_90a"};
  EXPECT_EQ(choose_arch(plan, h200).value(), "sm_90a");
  auto no = choose_arch(plan, a100);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().kind, ErrorKind::unsupported);
  EXPECT_THAT(no.error().text(), HasSubstr("the plan is for sm_90a; sim:a100 is sm_80"));
  plan.arch = {"sm_90"};
  EXPECT_EQ(choose_arch(plan, h200).value(), "sm_90");
  plan.arch = {"sm_100+", "sm_80"};
  EXPECT_FALSE(choose_arch(plan, h200));
}

}  // namespace
}  // namespace cutegen
