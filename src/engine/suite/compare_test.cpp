// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/text.h"
#include "engine/suite/compare_table.h"
#include "engine/testing/toy_world.h"

namespace cutegen::engine {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using toy::scratch_path;
using toy::ToyWorld;

constexpr const char* kPlan = R"json({"cutegen": 1, "dialect": "cuda",
 "sources": ["kernel.cu"], "symbols": {"n": "size(x)"},
 "steps": [{"id": "k", "kernel": "k", "grid": ["ceil_div(n,256)"], "block": [256],
 "args": [{"tensor": "x"}, {"tensor": "out"}, {"i32": "n"}]}]})json";

// Answers every question with the next complete program; judges and planners accept that, too.
class CountingModel final : public llm::ChatModel {
 public:
  Result<llm::ChatReply> chat(const Context&, const llm::ChatRequest&) override {
    const std::string n = std::to_string(++answers_);
    llm::ChatReply reply;
    reply.message.speaker = llm::Speaker::assistant;
    reply.message.text = "SUMMARY: program " + n + "\n```file kernel.cu\n// " + n +
                         "\nextern \"C\" __global__ void k(const float* x, float* out, int n) {}\n"
                         "```\n```file plan.json\n" +
                         kPlan + "\n```\n";
    reply.usage = {.input = 1000, .cached = 500, .output = 100};
    reply.cost_usd = 0.01;
    return reply;
  }
  const std::string& name() const override { return name_; }
  bool has_tools() const override { return false; }
  std::optional<double> most_usd(const llm::ChatRequest&) const override { return 0.02; }

 private:
  std::string name_ = "relay:script";
  int answers_ = 0;
};

class SeenCells final : public CompareObserver {
 public:
  void on_cell(const CompareCell& cell, size_t ended, size_t total) override {
    keys.push_back(cell.key() + " " + to_string(cell.status));
    EXPECT_LE(ended, total);
  }
  void on_progress(const CompareCell&, const std::string&) override {}
  std::vector<std::string> keys;
};

class CompareTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = scratch_path("compare");
    fs::create_directories(dir_);
    store_ = std::move(*store::Store::open(dir_ / "runs"));
    settings_.out = dir_ / "out";
    settings_.strategies = {"cutegen", "climb"};
    OptimizeSettings& o = settings_.optimize;
    o.model = "relay:script";
    o.search.budget.evaluations = 3;
    o.search.agents =
        search::AgentSettings{.dialect = Dialect::cuda, .chains = 1, .planner = false};
    files_ = {put("relu"), put("gelu")};
  }
  void TearDown() override {
    store_.reset();
    fs::remove_all(dir_);
  }
  fs::path put(const std::string& name, const std::string& text = "import torch\n") {
    const fs::path file = dir_ / (name + ".py");
    EXPECT_TRUE(write_file(file, text + "# " + name + "\n"));
    return file;
  }
  Parts parts() {
    Parts p = world_.parts();
    p.open_model = [](const OptimizeSettings&,
                      store::Store&) -> Result<std::unique_ptr<llm::ChatModel>> {
      return std::make_unique<CountingModel>();
    };
    return p;
  }
  Result<Comparison> run(const Context& ctx = {}) {
    seen_.keys.clear();
    return run_compare(parts(), ctx, *store_, settings_, files_, seen_);
  }
  std::string refused() {
    auto result = run();
    EXPECT_FALSE(result);
    return result ? "" : result.error().text();
  }

  fs::path dir_;
  std::unique_ptr<store::Store> store_;
  ToyWorld world_;
  CompareSettings settings_;
  std::vector<fs::path> files_;
  SeenCells seen_;
};

TEST_F(CompareTest, EveryCellIsARunWithTheSameBudget) {
  settings_.strategies = {"cutegen", "cudaforge", "best-of-n", "climb"};
  auto result = run();
  ASSERT_TRUE(result) << result.error().text();
  ASSERT_EQ(result->cells.size(), 8U);
  EXPECT_EQ(store_->list()->size(), 8U);
  EXPECT_EQ(result->exit_code(), kExitOk);
  for (const CompareCell& c : result->cells) {
    SCOPED_TRACE(c.key());
    EXPECT_EQ(c.status, RowStatus::correct);
    EXPECT_EQ(c.evaluations, 3);
    EXPECT_EQ(c.curve.size(), 3U);
    EXPECT_EQ(c.curve.back(), c.best_ns);
    EXPECT_EQ(c.models.calls > 0, c.strategy != "climb");
    EXPECT_NEAR(c.models.usd, 0.01 * double(c.models.calls), 1e-9);
    EXPECT_TRUE(load_program(settings_.out / "programs" / c.task / (c.strategy + "-1")));
  }
  EXPECT_EQ(result->cells[1].strategy, "cudaforge");
  EXPECT_EQ(result->cells[1].models.calls, 5) << "three programs, two judgements";
  const std::string table = compare_table(*result);
  EXPECT_THAT(table, HasSubstr("climb"));
  EXPECT_THAT(table, HasSubstr("the 2 tasks that every strategy solved"));
  EXPECT_THAT(table, HasSubstr("A simulator modelled the times"));
}

TEST_F(CompareTest, AnInterruptedComparisonGoesOn) {
  std::stop_source stop;
  int evaluations = 0;
  world_.during_evaluation = [&](int) {
    if (++evaluations == 5) stop.request_stop();
  };
  auto first = run(Context(stop.get_token()));
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_TRUE(first->interrupted);
  EXPECT_EQ(first->exit_code(), kExitInterrupted);
  auto status = [](const Comparison& c, RowStatus wanted) {
    return std::count_if(c.cells.begin(), c.cells.end(),
                         [&](auto& cell) { return cell.status == wanted; });
  };
  EXPECT_EQ(status(*first, RowStatus::correct), 1);
  EXPECT_EQ(status(*first, RowStatus::interrupted), 1);
  EXPECT_EQ(status(*first, RowStatus::pending), 2);
  auto second = run();
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_EQ(status(*second, RowStatus::correct), 4);
  EXPECT_EQ(store_->list()->size(), 4U) << "the interrupted run went on";
  EXPECT_EQ(seen_.keys.size(), 3U);
  EXPECT_EQ(second->began, first->began);
  ASSERT_TRUE(run());
  EXPECT_TRUE(seen_.keys.empty()) << "nothing is left to do";
}

TEST_F(CompareTest, ARunWhoseRowWasLostIsNotPaidForAgain) {
  auto first = run();
  ASSERT_TRUE(first);
  const fs::path file = settings_.out / "compare.json";
  Json document = *parse_json(*read_file(file), "x");
  for (Json& cell : document["cells"]) cell["status"] = "pending";
  ASSERT_TRUE(write_file(file, dump_json(document)));
  auto second = run();
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_EQ(store_->list()->size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(second->cells[i].run, first->cells[i].run);
    EXPECT_EQ(second->cells[i].best_ns, first->cells[i].best_ns);
    EXPECT_EQ(second->cells[i].curve, first->cells[i].curve);
    EXPECT_EQ(second->cells[i].models.calls, first->cells[i].models.calls);
  }
}

TEST_F(CompareTest, WhatTheWorldMadeFailIsDoneAgain) {
  Parts broken = parts();
  broken.open_model = [](const OptimizeSettings&,
                         store::Store&) -> Result<std::unique_ptr<llm::ChatModel>> {
    return world_error("no network");
  };
  auto first = run_compare(broken, {}, *store_, settings_, files_, seen_);
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ(first->cells[0].status, RowStatus::error);
  EXPECT_EQ(first->cells[0].error_code, kExitEnvironment);
  EXPECT_EQ(first->cells[1].status, RowStatus::correct);
  auto second = run();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->cells[0].status, RowStatus::correct);
  EXPECT_EQ(seen_.keys.size(), 2U);
}

TEST_F(CompareTest, RepeatsAreRoundsInAnOrderOfTheSeed) {
  settings_.repeats = 3;
  settings_.optimize.search.budget.evaluations = 1;
  ASSERT_TRUE(run());
  const auto one = seen_.keys;
  ASSERT_EQ(one.size(), 12U);
  for (size_t i = 0; i < one.size(); ++i)
    EXPECT_THAT(one[i], HasSubstr("-" + std::to_string(i / 4 + 1) + " ")) << i;
  EXPECT_FALSE(std::equal(one.begin(), one.begin() + 4, one.begin() + 4,
                          [](const std::string& a, const std::string& b) {
                            return a.substr(0, a.find('-')) == b.substr(0, b.find('-'));
                          }));
  settings_.out = dir_ / "again";
  ASSERT_TRUE(run());
  EXPECT_EQ(seen_.keys, one);
  settings_.out = dir_ / "other";
  settings_.seed = 2;
  ASSERT_TRUE(run());
  EXPECT_NE(seen_.keys, one);
}

TEST_F(CompareTest, MoreMayBeAddedAndNothingElseChanged) {
  ASSERT_TRUE(run());
  settings_.repeats = 2;
  settings_.strategies.push_back("best-of-n");
  files_.push_back(put("tanh"));
  auto more = run();
  ASSERT_TRUE(more) << more.error().text();
  EXPECT_EQ(seen_.keys.size(), 3U * 3 * 2 - 4);
  settings_.repeats = 1;
  EXPECT_THAT(refused(), HasSubstr("also has"));
  settings_.repeats = 2;
  put("gelu", "import torch  # another\n");
  ASSERT_TRUE(run());
  EXPECT_EQ(seen_.keys.size(), 6U) << "the changed task is done again";
  settings_.optimize.search.budget.evaluations = 4;
  EXPECT_THAT(refused(), HasSubstr("different settings"));
  ASSERT_TRUE(write_file(settings_.out / "compare.json", R"({"schema": "cutegen.compare.v0"})"));
  EXPECT_THAT(refused(), HasSubstr("another version"));
}

TEST_F(CompareTest, MistakesAreToldBeforeAnythingRuns) {
  EXPECT_THAT(parse_strategies("cutegen, magic").error().text(), HasSubstr("'magic'"));
  EXPECT_THAT(parse_strategies("climb,climb").error().text(), HasSubstr("twice"));
  EXPECT_EQ(parse_strategies("climb, best-of-n")->size(), 2U);
  EXPECT_THAT(parse_strategies("cutegen:c").error().text(), HasSubstr("'c'"));
  EXPECT_THAT(parse_strategies("climb:cuda").error().text(), HasSubstr("asks no model"));
  settings_.optimize.model = "builtin";
  settings_.optimize.search.agents.reset();
  EXPECT_THAT(refused(), HasSubstr("'cutegen' needs a model"));
  settings_.strategies = {"climb"};
  files_ = {};
  EXPECT_THAT(refused(), HasSubstr("no task file given"));
  files_ = {dir_ / "relu.py", dir_ / "." / "relu.py"};
  EXPECT_THAT(refused(), HasSubstr("given twice"));
  files_ = {dir_ / "none.py"};
  EXPECT_THAT(refused(), HasSubstr("none.py"));
  EXPECT_EQ(world_.started, 0);
  fs::create_directories(dir_ / "b");
  fs::copy_file(dir_ / "relu.py", dir_ / "b" / "relu.py");
  files_ = {dir_ / "relu.py", dir_ / "b" / "relu.py"};
  EXPECT_EQ(run()->cells[1].task, "relu_2");
}

TEST_F(CompareTest, SeveralDialectsAreComparedSideBySide) {
  EXPECT_THAT(*with_dialects({"cutegen", "climb"}, {"cute", "cuda"}),
              ElementsAre("cutegen:cute", "cutegen:cuda", "climb"));
  EXPECT_THAT(*with_dialects({"cutegen"}, {"cuda"}), ElementsAre("cutegen"));
  EXPECT_THAT(with_dialects({"cutegen:cuda"}, {"cute", "cuda"}).error().text(),
              HasSubstr("given twice"));
  settings_.strategies = {"best-of-n:cuda", "best-of-n:cute"};
  files_.resize(1);
  auto result = run();
  ASSERT_TRUE(result) << result.error().text();
  ASSERT_EQ(result->cells.size(), 2U);
  // The model writes plain CUDA, which a run in CuTe does not accept.
  EXPECT_EQ(result->cells[0].strategy, "best-of-n:cuda");
  EXPECT_EQ(result->cells[0].status, RowStatus::correct);
  EXPECT_NE(result->cells[1].status, RowStatus::correct);
  EXPECT_THAT(compare_table(*result), HasSubstr("\nbest-of-n:cuda "));
  EXPECT_THAT(compare_table(*result), HasSubstr("\nbest-of-n:cute "));
}

CompareCell cell(const std::string& task, const std::string& strategy, int repeat,
                 std::vector<std::optional<double>> curve) {
  CompareCell c;
  c.task = task;
  c.strategy = strategy;
  c.repeat = repeat;
  c.floor_ns = 10;
  c.curve = std::move(curve);
  c.best_ns = c.curve.empty() ? std::nullopt : c.curve.back();
  c.status = c.best_ns ? RowStatus::correct : RowStatus::failed;
  c.evaluations = int64_t(c.curve.size());
  c.time_origin = c.best_ns ? "modelled" : "";
  c.models = {.calls = 2,
              .input = 100,
              .cached = 50,
              .output = 10,
              .usd = 0.5,
              .unpriced = false,
              .elapsed_ms = 1000};
  c.seconds = 60;
  return c;
}

// Both strategies solve task a; only x solves task b.
std::vector<CompareCell> cells() {
  return {cell("a", "x", 1, {{}, 40, 20}), cell("a", "x", 2, {80, 80, 80}),
          cell("b", "x", 1, {30}),         cell("b", "x", 2, {{}, {}}),
          cell("a", "y", 1, {90, 90}),     cell("a", "y", 2, {{}, {}, {}}),
          cell("b", "y", 1, {{}, {}}),     cell("b", "y", 2, {})};
}

TEST(CompareTable, MeansAreOverTheTasksThatAllSolved) {
  EXPECT_THAT(common_tasks(cells()), ElementsAre("a"));
  auto s = summaries(cells());
  ASSERT_EQ(s.size(), 2U);
  EXPECT_EQ(s[0].strategy, "x");
  EXPECT_EQ(s[0].cells, 4);
  EXPECT_EQ(s[0].correct, 3);
  EXPECT_EQ(s[0].tasks, 2);
  EXPECT_EQ(s[0].solved, 2);
  EXPECT_DOUBLE_EQ(s[0].floor_ratio.value(), 4) << "the mean of 2 and 8";
  ASSERT_TRUE(s[0].floor_ratio_interval);
  EXPECT_LT(s[0].floor_ratio_interval->low, 2);
  EXPECT_GT(s[0].floor_ratio_interval->high, 8);
  EXPECT_FALSE(s[1].floor_ratio_interval) << "one repeat has no spread";
  EXPECT_EQ(s[0].models.calls, 8);
  EXPECT_DOUBLE_EQ(s[0].models.usd, 2);
  EXPECT_EQ(s[1].solved, 1);
  EXPECT_DOUBLE_EQ(s[1].floor_ratio.value(), 9);
}

TEST(CompareTable, CurvesSayWhatWasThereAfterSoManyEvaluations) {
  auto x = curve_of(cells(), "x");
  ASSERT_EQ(x.size(), 3U);
  EXPECT_EQ(x[0].correct, 2);
  EXPECT_DOUBLE_EQ(x[0].floor_ratio.value(), 8);
  EXPECT_EQ(x[1].correct, 3);
  EXPECT_NEAR(x[1].floor_ratio.value(), std::sqrt(4 * 8), 1e-9);
  EXPECT_DOUBLE_EQ(x[2].floor_ratio.value(), 4);
  auto y = curve_of(cells(), "y");
  EXPECT_DOUBLE_EQ(y[2].floor_ratio.value(), 9) << "what ended earlier keeps its last value";
  EXPECT_EQ(y[2].correct, 1);
  auto late = cells();
  late[4].curve = {{}, 90};
  EXPECT_FALSE(curve_of(late, "y")[0].floor_ratio);
}

TEST(CompareTable, TheDocumentIsReadBack) {
  Comparison c;
  c.began = "2026-11-22T00:00:00Z";
  c.cells = cells();
  c.cells[0].reason = "2 of 4\n\x1b[31m\"values\"";
  CompareSettings settings;
  const Json document = compare_json(settings, c);
  EXPECT_EQ(document["schema"], "cutegen.compare.v1");
  EXPECT_EQ(document["summary"][0]["floor_ratio_geomean"], 4.0);
  EXPECT_EQ(document["curves"]["x"][0]["correct"], 2);
  EXPECT_EQ(document["summary"][0]["floor_ratio_interval"].size(), 2U);
  EXPECT_TRUE(document["summary"][1]["floor_ratio_interval"].is_null());
  auto read = comparison_from(document);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(dump_json(compare_json(settings, *read)), dump_json(document));
  const std::string table = compare_table(c), csv = compare_csv(c.cells);
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
  EXPECT_THAT(csv, HasSubstr("\"2 of 4 \"\"values\"\"\""));
  EXPECT_EQ(split(csv, '\n').size(), 10U);
  EXPECT_THAT(curves_csv(c.cells), HasSubstr("\"a\",x,1,1,,\n\"a\",x,1,2,40,4\n"));
  for (const char* field : {"task", "curve_ns", "models", "status"}) {
    Json broken = document;
    broken["cells"][0].erase(field);
    EXPECT_FALSE(comparison_from(broken)) << field;
  }
}

}  // namespace
}  // namespace cutegen::engine
