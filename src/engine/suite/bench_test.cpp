// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <list>
#include <mutex>

#include "base/file.h"
#include "base/text.h"
#include "engine/suite/bench_table.h"
#include "engine/testing/toy_world.h"

namespace cutegen::engine {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using toy::scratch_path;
using toy::ToyEvaluator;
using toy::ToyWorld;
using toy::untimed;

// An evaluator in the toy world that opens only some files. Large tasks need the GPU to themselves.
class PickyEvaluator final : public eval::EvaluatorClient {
 public:
  explicit PickyEvaluator(ToyWorld& world) : inner_(world) { ++alive; }
  ~PickyEvaluator() override { --alive; }
  static inline std::atomic<int> alive = 0;
  Result<eval::OpenedTask> open_task(const Context& ctx, const fs::path& file) override {
    const std::string name = file.stem();
    if (name.ends_with("_broken")) return user_error("no class Model", file.string());
    if (name.ends_with("_dies")) return world_error("the torch worker died");
    large_ = name.ends_with("_large");
    return inner_.open_task(ctx, file);
  }
  Result<Verdict> evaluate(const Context& ctx, const eval::EvaluateRequest& request,
                           const std::function<void(const std::string&)>& progress) override {
    if (large_ && alive > 1) {
      Verdict v;
      v.status = Status::aborted;
      v.feedback.headline =
          "error: taking 7 GB of GPU memory: out of memory (CUDA_ERROR_OUT_OF_MEMORY)";
      return v;
    }
    return inner_.evaluate(ctx, request, progress);
  }
  int pid() const override { return 0; }

 private:
  bool large_ = false;
  ToyEvaluator inner_;
};

class NoRecipe final : public Proposer {
 public:
  Result<Answer> answer(const Context&, const search::Ask&, const RunView&) override {
    return Answer{.reason = "no recipe: conv2d"};
  }
};

class Quiet final : public BenchObserver {
 public:
  void on_row(const BenchRow& row, size_t ended, size_t total) override {
    seen.push_back(row.task.name + " " + to_string(row.status));
    EXPECT_LE(ended, total);
  }
  void on_progress(const SuiteTask&, const std::string& line) override {
    if (line.find("alone") == std::string::npos) return;
    held.push_back(line);
    on_hold();
  }
  std::vector<std::string> seen, held;
  std::function<void()> on_hold = [] {};
};

class BenchTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = scratch_path("bench");
    fs::create_directories(dir_ / "suite" / "level1");
    store_ = std::move(*store::Store::open(dir_ / "runs"));
    settings_.out = dir_ / "out";
    world_.programs = 3;
  }
  void TearDown() override {
    store_.reset();
    fs::remove_all(dir_);
  }
  void put(const std::string& name, const std::string& text = "import torch\n") {
    ASSERT_TRUE(write_file(dir_ / "suite" / "level1" / (name + ".py"), text));
  }
  Parts parts() {
    Parts p = world_.parts();
    p.start_evaluator =
        [this](const Context&,
               const eval::EvaluatorOptions& o) -> Result<std::unique_ptr<eval::EvaluatorClient>> {
      if (o.device == "sim:none") return user_error("unknown GPU 'none'");
      return std::make_unique<PickyEvaluator>(world_);
    };
    return p;
  }
  Result<BenchReport> run(const Context& ctx = {}) {
    auto tasks = find_suite(dir_ / "suite", {{1, 1}}, {});
    if (!tasks) return fail(tasks.error());
    observer_.seen.clear();
    return run_bench(parts(), ctx, *store_, settings_, *tasks, observer_);
  }
  static std::vector<std::string> statuses(const BenchReport& report) {
    std::vector<std::string> out;
    for (const BenchRow& r : report.rows) out.push_back(to_string(r.status));
    return out;
  }

  fs::path dir_;
  std::unique_ptr<store::Store> store_;
  ToyWorld world_;
  BenchSettings settings_;
  Quiet observer_;
};

TEST_F(BenchTest, OneEvaluatorServesAllTasks) {
  put("1_a"), put("2_b"), put("10_c");
  auto report = run();
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(world_.started, 1);
  EXPECT_THAT(observer_.seen, ElementsAre("1_a correct", "2_b correct", "10_c correct"));
  EXPECT_EQ(report->exit_code(), kExitOk);
  const BenchRow& row = report->rows[1];
  EXPECT_EQ(row.workload, "elementwise");
  EXPECT_EQ(row.first_ns, 99);
  EXPECT_EQ(row.best_ns, 97);
  EXPECT_DOUBLE_EQ(row.floor_ratio().value(), 9.7);
  EXPECT_EQ(row.evaluations, 3);
  EXPECT_EQ(store_->list()->size(), 3u);
  EXPECT_TRUE(load_program(settings_.out / "programs" / "level1_10_c"));
}

TEST_F(BenchTest, ATaskThatCannotBeOpenedIsARow) {
  put("1_broken"), put("2_dies"), put("3_fine");
  auto report = run();
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_THAT(statuses(*report), ElementsAre("error", "error", "correct"));
  EXPECT_THAT(report->rows[0].reason, HasSubstr("no class Model"));
  // The second start is the loop's retry; the third serves the last task.
  EXPECT_EQ(world_.started, 3);
  EXPECT_EQ(report->exit_code(), kExitOk);
}

TEST_F(BenchTest, TasksThatRanOutOfGpuMemoryBesideOthersRunAgainAlone) {
  put("1_large"), put("2_b"), put("3_c"), put("4_large");
  auto other = std::make_unique<PickyEvaluator>(world_);  // dies on the first held task
  observer_.on_hold = [&] { other.reset(); };
  settings_.jobs = 4;
  auto report = run();
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_THAT(statuses(*report), ElementsAre("correct", "correct", "correct", "correct"));
  EXPECT_EQ(observer_.seen.size(), 4u);
  EXPECT_GE(observer_.held.size(), 1u);
}

TEST_F(BenchTest, ATaskThatIsTooLargeAloneIsAborted) {
  PickyEvaluator other(world_);
  put("1_large"), put("2_b");
  settings_.jobs = 2;
  auto report = run();
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_THAT(statuses(*report), ElementsAre("aborted", "correct"));
  EXPECT_EQ(observer_.seen.size(), 2u);
}

TEST_F(BenchTest, ExitCodesSayWhatAllTasksHaveInCommon) {
  put("1_broken"), put("2_broken");
  EXPECT_EQ(run()->exit_code(), kExitUser);
  put("2_dies");
  EXPECT_EQ(run()->exit_code(), kExitFailed);
  fs::remove_all(dir_ / "suite" / "level1");
  fs::create_directories(dir_ / "suite" / "level1");
  put("1_a");
  world_.judge = [](int, int) { return untimed(Status::unsupported, "wgmma is not simulated"); };
  auto report = run();
  EXPECT_EQ(report->exit_code(), kExitUnsupported);
  EXPECT_THAT(report->rows[0].reason, HasSubstr("wgmma"));
}

TEST_F(BenchTest, NoRecipeIsToldApart) {
  put("1_conv");
  auto tasks = find_suite(dir_ / "suite", {{1, 1}}, {});
  Parts p = parts();
  p.make_proposer = [](const OptimizeSettings&,
                       const eval::OpenedTask&) -> Result<std::unique_ptr<Proposer>> {
    return std::make_unique<NoRecipe>();
  };
  auto report = run_bench(p, {}, *store_, settings_, *tasks, observer_);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->rows[0].status, RowStatus::no_recipe);
  EXPECT_THAT(bench_table(report->rows), HasSubstr("1 tasks: 1 no_recipe"));
  EXPECT_EQ(report->exit_code(), kExitFailed);
}

TEST_F(BenchTest, AnUnknownDeviceEndsTheBench) {
  put("1_a"), put("2_b");
  settings_.optimize.evaluator.device = "sim:none";
  auto report = run();
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().text(), HasSubstr("unknown GPU"));
}

TEST_F(BenchTest, AnInterruptedBenchGoesOn) {
  put("1_a"), put("2_b"), put("3_c");
  std::stop_source stop;
  int evaluations = 0;
  world_.during_evaluation = [&](int) {
    if (++evaluations == 5) stop.request_stop();  // the second program of the second task
  };
  auto first = run(Context(stop.get_token()));
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_THAT(statuses(*first), ElementsAre("correct", "interrupted", "pending"));
  EXPECT_EQ(first->exit_code(), kExitInterrupted);
  settings_.resume = true;
  auto second = run();
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_THAT(statuses(*second), ElementsAre("correct", "correct", "correct"));
  EXPECT_THAT(observer_.seen, ElementsAre("2_b correct", "3_c correct"));
  EXPECT_EQ(second->rows[1].run, first->rows[1].run);
  EXPECT_EQ(second->rows[0].run, first->rows[0].run);
  EXPECT_EQ(store_->list()->size(), 3u);
}

TEST_F(BenchTest, ARunOfOtherRulesIsNotContinued) {
  put("1_a");
  std::stop_source stop;
  world_.judge = [](int n, int) {
    Verdict v = timed(100.0 - n);
    v.policy_version = Verdict().policy_version - 1;
    return v;
  };
  world_.during_evaluation = [&](int n) {
    if (n == 2) stop.request_stop();
  };
  auto first = run(Context(stop.get_token()));
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_THAT(statuses(*first), ElementsAre("interrupted"));
  settings_.resume = true;
  world_.judge = [](int n, int) { return timed(100.0 - n); };
  world_.during_evaluation = [](int) {};
  auto second = run();
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_THAT(statuses(*second), ElementsAre("correct"));
  EXPECT_NE(second->rows[0].run, first->rows[0].run);
}

TEST_F(BenchTest, AChangedTaskIsDoneAgainAndOtherSettingsAreRefused) {
  put("1_a"), put("2_b");
  ASSERT_TRUE(run());
  settings_.resume = true;
  put("2_b", "import torch  # another\n");
  ASSERT_TRUE(run());
  EXPECT_THAT(observer_.seen, ElementsAre("2_b correct"));
  settings_.optimize.search.budget.evaluations = 7;
  auto refused = run();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("different settings"));
  fs::remove(settings_.out / "bench.json");
  EXPECT_FALSE(run());
}

TEST_F(BenchTest, JobsShareTheTasks) {
  for (int i = 1; i <= 8; ++i) put(std::to_string(i) + "_t");
  settings_.jobs = 3;
  std::mutex lock;
  std::list<ToyWorld> worlds;
  std::atomic<int64_t> clock{0};
  Parts p = parts();
  p.start_evaluator =
      [&](const Context&,
          const eval::EvaluatorOptions&) -> Result<std::unique_ptr<eval::EvaluatorClient>> {
    std::lock_guard hold(lock);
    return std::make_unique<PickyEvaluator>(worlds.emplace_back());
  };
  p.now_ms = [&] { return ++clock; };
  auto tasks = find_suite(dir_ / "suite", {{1, 1}}, {});
  auto report = run_bench(p, {}, *store_, settings_, *tasks, observer_);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_THAT(statuses(*report), testing::Each("correct"));
  EXPECT_LE(worlds.size(), 3u);
  EXPECT_EQ(store_->list()->size(), 8u);
}

// The document without the values that differ from run to run.
Json plain(Json document) {
  document["out"] = "bench";
  for (Json& task : document["tasks"]) {
    task["file"] = fs::path(task["file"].get<std::string>()).filename().string();
    if (task["run"] != "") task["run"] = "20260101-abcdef";
    task["seconds"] = 1.5;
  }
  return document;
}

TEST_F(BenchTest, TheDocumentKeepsItsFormAndIsReadBack) {
  put("1_a"), put("2_broken");
  auto report = run();
  ASSERT_TRUE(report);
  report->rows[1].reason = "no class Model";
  const Json document = bench_json(settings_, *report);
  const std::string now = dump_json(plain(document), 1) + "\n";
  const fs::path golden = fs::path(CUTEGEN_SOURCE_DIR) / "tests/golden/engine/bench.json";
  if (std::getenv("CUTEGEN_UPDATE_GOLDEN")) {
    ASSERT_TRUE(write_file(golden, now));
  }
  EXPECT_EQ(now, read_file(golden).value());
  EXPECT_GT(document["tasks"][0]["seconds"], 0);
  auto rows = bench_rows_from(document);
  ASSERT_TRUE(rows) << rows.error().text();
  EXPECT_EQ(bench_csv(*rows), bench_csv(report->rows));
  EXPECT_FALSE(bench_rows_from(Json{{"schema", "cutegen.bench.v0"}}));
  EXPECT_FALSE(bench_rows_from(Json::array()));
}

TEST(BenchTable, MeansAreGeometricAndTextIsHarmless) {
  BenchRow a, b, c;
  a.task.name = "1_\x1b[31mred", a.workload = b.workload = c.workload = "reduction";
  a.status = b.status = RowStatus::correct, c.status = RowStatus::failed;
  a.best_ns = 10, b.best_ns = 40, c.best_ns = 999;
  a.floor_ns = b.floor_ns = c.floor_ns = 10;
  a.time_origin = b.time_origin = "modelled";
  c.reason = "2 of 4 values are wrong\nat \"row\" 1";
  auto classes = bench_classes({a, b, c});
  ASSERT_EQ(classes.size(), 1u);
  EXPECT_EQ(classes[0].tasks, 3);
  EXPECT_EQ(classes[0].correct, 2);
  EXPECT_DOUBLE_EQ(classes[0].floor_ratio.value(), 2);
  const std::string table = bench_table({a, b, c}), csv = bench_csv({a, b, c});
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
  EXPECT_THAT(table, HasSubstr("3 tasks: 2 correct, 1 failed"));
  EXPECT_THAT(table, HasSubstr("A simulator modelled the times"));
  EXPECT_THAT(csv, HasSubstr("\"2 of 4 values are wrong at \"\"row\"\" 1\""));
  EXPECT_EQ(split(csv, '\n').size(), 5u);
}

}  // namespace
}  // namespace cutegen::engine
