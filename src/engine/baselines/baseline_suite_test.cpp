// SPDX-License-Identifier: Apache-2.0
// A suite of baselines with scripted workers: rows, reasons, the cache, interruptions, the output.
#include "engine/baselines/baseline_suite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/text.h"
#include "engine/baselines/baseline_table.h"
#include "engine/testing/toy_world.h"
#include "eval/api/protocol.h"
#include "eval/baselines/suite.h"
#include "eval/testing/toy_worker.h"

namespace cutegen::engine {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<ControlTime> controls() {
  return {{.name = "stream", .program_id = "p1", .time_ns = 110000},
          {.name = "multiply", .program_id = "p2", .time_ns = 1300000}};
}

class SeenBaselines final : public BaselineObserver {
 public:
  void on_row(const BaselineRow& row, size_t ended, size_t total) override {
    rows.push_back(row.task.name + " " + to_string(row.status));
    EXPECT_LE(ended, total);
    if (after) after();
  }
  void on_progress(const std::string&) override {}
  std::vector<std::string> rows;
  std::function<void()> after;
};

// Measures in this process, and sends what the evaluator would send.
class SuiteEvaluator final : public eval::EvaluatorClient {
 public:
  explicit SuiteEvaluator(eval::SuiteParts parts) : parts_(std::move(parts)) {}
  Result<eval::OpenedTask> open_task(const Context&, const fs::path&) override {
    return user_error("it measures only suites");
  }
  Result<Verdict> evaluate(const Context&, const eval::EvaluateRequest&,
                           const std::function<void(const std::string&)>&) override {
    return user_error("it measures only suites");
  }
  Result<void> measure_suite(const Context& ctx, const eval::SuiteRequest& request,
                             const eval::OnSuiteNews& news,
                             const std::function<void(const std::string&)>& progress) override {
    auto sent = read_json<eval::SuiteRequest>(to_json(request));
    EXPECT_TRUE(sent) << sent.error().text();
    return eval::measure_suite(
        parts_, ctx, *sent,
        [&](const eval::SuiteNews& n) {
          auto told = read_json<eval::SuiteNews>(to_json(n));
          ASSERT_TRUE(told) << told.error().text();
          news(*told);
        },
        progress);
  }
  int pid() const override { return 0; }

 private:
  eval::SuiteParts parts_;
};

class BaselineSuiteTest : public testing::Test {
 protected:
  void SetUp() override {
    settings_.baselines = *eval::baselines_named({"eager", "compile"});
    settings_.jobs = 2;
  }
  void TearDown() override { fs::remove_all(dir_); }

  // The file's name decides: "bad..." is not a task, "wide..." and "large..." need much memory.
  static Result<Task> described(const fs::path& file) {
    const std::string name = file.stem();
    if (name.starts_with("bad")) return user_error("no class Model", file.string());
    eval::OpenedTask toy = toy::relu_task();
    toy.task.id = name, toy.task.name = name;
    if (name.starts_with("wide"))  // its truth needs more memory than the GPU has
      for (auto& [tensor, shape] : toy.task.shapes[0].tensors) shape = {1 << 17, 1 << 16};
    if (name.starts_with("large")) toy.task.shapes[0].least_bytes = Bytes{int64_t{60} << 30};
    return toy.task;
  }

  StartEvaluator start() {
    return [this](const Context&, const eval::EvaluatorOptions& options)
               -> Result<std::unique_ptr<eval::EvaluatorClient>> {
      EXPECT_TRUE(options.suites);
      return std::make_unique<SuiteEvaluator>(parts());
    };
  }

  eval::SuiteParts parts() {
    eval::SuiteParts p;
    p.gpu = [this](const Context&) -> Result<eval::SuiteGpu> {
      if (no_gpu_) return world_error("there is no GPU driver here", "use another machine");
      CG_TRY(GpuSpec spec, find_gpu("h200"));
      return eval::SuiteGpu{.spec = std::move(spec),
                            .uuid = "GPU-1",
                            .driver = "580",
                            .memory_bytes = int64_t{140} << 30};
    };
    p.worker = [this](const eval::SuiteGpu&) -> Result<std::unique_ptr<torch::TorchWorker>> {
      if (no_cuda_) return world_error("torch is built without CUDA");
      ++workers_;
      auto worker = std::make_unique<eval::ToyWorker>();
      worker->task = described;
      worker->ways = ways_;
      worker->module_why = module_why_;
      worker->close_fails = close_fails_;
      return worker;
    };
    p.controls_limit = std::chrono::milliseconds(200);
    p.controls = [this](const Context& ctx) -> Result<std::vector<ControlTime>> {
      while (controls_hang_ && !ctx.done())
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      if (!controls_why_.empty()) return world_error(controls_why_);
      return controls();
    };
    p.truth = [this](const Context&, const eval::SuiteGpu&, const Task& task) -> Result<TruthMade> {
      truths_.push_back(task.name);
      if (task.name == "huge") return TruthMade{.why = "inputs and truth take 300 GB"};
      return TruthMade{.seconds = 0.5, .bytes = 4096, .accuracy = accuracy_};
    };
    return p;
  }

  BaselineReport run(const std::vector<std::string>& names, const Context& ctx = {}) {
    std::vector<SuiteTask> tasks;
    for (const std::string& n : names)
      tasks.push_back({.level = 1, .number = int(tasks.size()) + 1, .name = n, .file = n + ".py"});
    seen_.rows.clear(), truths_.clear();
    auto report = measure_baselines(start(), ctx, cache_, settings_, tasks, seen_);
    EXPECT_TRUE(report) << report.error().text();
    return report ? std::move(*report) : BaselineReport{};
  }

  fs::path dir_ = toy::scratch_path("suite");
  BaselineCache cache_{dir_};
  BaselineSuiteSettings settings_;
  SeenBaselines seen_;
  std::map<std::string, eval::ToyWay> ways_;
  std::map<BaselineKind, BaselineAccuracy> accuracy_;
  std::vector<std::string> truths_;
  std::string module_why_, controls_why_;
  bool no_gpu_ = false, no_cuda_ = false, close_fails_ = false, controls_hang_ = false;
  std::atomic<int> workers_ = 0;
};

TEST_F(BaselineSuiteTest, MeasuresEveryTaskAndKeepsIt) {
  ways_["eager"].samples = {20000}, ways_["compile"].samples = {15000};
  BaselineReport r = run({"a", "b", "large"});
  ASSERT_EQ(r.rows.size(), 3U);
  for (const BaselineRow& row : r.rows) {
    EXPECT_EQ(row.status, BaselineStatus::measured) << row.reason;
    EXPECT_EQ(row.record.times.size(), 2U);
    EXPECT_EQ(row.record.controls.size(), 2U);
    EXPECT_EQ(row.record.truth.bytes, 4096);
  }
  EXPECT_EQ(truths_.size(), 3U);
  EXPECT_EQ(r.exit_code(), kExitOk);
  auto kept = cache_.find("b", "h200", "580", "torch toy");
  ASSERT_TRUE(kept);
  EXPECT_EQ(best_baseline(kept->times, kept->math_mode)->kind, "compile");
  EXPECT_TRUE(cache_.controls("h200", "580"));
}

TEST_F(BaselineSuiteTest, WhatWasJudgedOnTheTruthIsKeptWithTheTimes) {
  accuracy_[BaselineKind::eager] = {.precision = "fp32", .share = 0.25, .passes = true};
  BaselineReport r = run({"a"});
  const auto& times = r.rows[0].record.times;
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].accuracy.passes, true);
  EXPECT_EQ(times[0].accuracy.share, 0.25);
  EXPECT_FALSE(times[1].accuracy.passes) << "torch.compile built it elsewhere";
  EXPECT_THAT(times[1].accuracy.why, HasSubstr("certify judges it"));
  EXPECT_EQ(times[1].accuracy.precision, "fp32");
  auto kept = cache_.find("a", "h200", "580", "torch toy");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->times[0].accuracy.share, 0.25);
  settings_.again = true;
  accuracy_[BaselineKind::eager] = {.precision = "tf32 convolutions",
                                    .coarser = true,
                                    .share = 30,
                                    .passes = false,
                                    .why = "every element"};
  r = run({"a"});
  EXPECT_EQ(best_baseline(r.rows[0].record.times, MathMode::fp32)->kind, "compile");
  EXPECT_THAT(baseline_table(r, {"eager", "compile"}),
              HasSubstr("eager is not compared with programs: tf32 convolutions: fails this task's "
                        "tolerance (a)\n"));
}

TEST_F(BaselineSuiteTest, TruthsOfAllSizesAndBuildsOfAllSizesComeToAnEnd) {
  settings_.jobs = 4;
  BaselineReport r = run({"wide1", "large1", "a", "wide2", "large2", "b", "c", "large3"});
  for (const BaselineRow& row : r.rows)
    EXPECT_EQ(row.status, BaselineStatus::measured) << row.task.name;
  EXPECT_EQ(truths_.size(), 8U);
}

TEST_F(BaselineSuiteTest, WhatIsKnownIsNotMeasuredAgainUnlessAsked) {
  run({"a"});
  BaselineReport r = run({"a", "b"});
  EXPECT_EQ(r.rows[0].status, BaselineStatus::cached);
  EXPECT_EQ(r.rows[0].record.times.size(), 2U);
  EXPECT_EQ(r.rows[1].status, BaselineStatus::measured);
  EXPECT_THAT(truths_, ElementsAre("b"));
  settings_.again = true;
  EXPECT_EQ(run({"a"}).rows[0].status, BaselineStatus::measured);
  settings_.again = false;
  settings_.baselines = *eval::baselines_named({"eager", "compile-max"});
  EXPECT_EQ(run({"a"}).rows[0].status, BaselineStatus::measured);
}

TEST_F(BaselineSuiteTest, WhatWasCutShortIsMeasuredAgain) {
  ways_["compile"].hangs = true;
  BaselineReport r = run({"a"}, Context().with_timeout(std::chrono::milliseconds(600)));
  ASSERT_EQ(r.rows[0].status, BaselineStatus::measured);
  EXPECT_TRUE(r.rows[0].record.cut);
  EXPECT_TRUE(cache_.find("a", "h200", "580", r.torch)) << "it is of use meanwhile";
  ways_["compile"].hangs = false;
  r = run({"a"});
  EXPECT_EQ(r.rows[0].status, BaselineStatus::measured);
  EXPECT_FALSE(r.rows[0].record.cut);
  EXPECT_EQ(run({"a"}).rows[0].status, BaselineStatus::cached);
}

TEST_F(BaselineSuiteTest, TroubleIsARowNotTheEnd) {
  ways_["compile"].why = "it raises";
  BaselineReport r = run({"bad", "a", "huge"});
  EXPECT_EQ(r.rows[0].status, BaselineStatus::error);
  EXPECT_THAT(r.rows[0].reason, HasSubstr("no class Model"));
  EXPECT_EQ(r.rows[1].status, BaselineStatus::measured);
  EXPECT_EQ(r.rows[1].record.times[1].why, "it raises");
  EXPECT_EQ(r.rows[2].record.truth.why, "inputs and truth take 300 GB");
  EXPECT_THAT(baseline_table(r, {"eager", "compile"}), HasSubstr("compile: it raises (a, huge)"));
}

TEST_F(BaselineSuiteTest, WhatRunsOutOfMemoryIsTriedAloneOnce) {
  module_why_ = "the module on the GPU: out of memory";
  BaselineReport r = run({"a"});
  EXPECT_EQ(r.rows[0].status, BaselineStatus::measured);
  EXPECT_THAT(r.rows[0].record.times[0].why, HasSubstr("out of memory"));
  EXPECT_EQ(r.exit_code(), kExitFailed);
}

TEST_F(BaselineSuiteTest, ABrokenWorkerIsReplaced) {
  settings_.jobs = 1;
  close_fails_ = true;
  BaselineReport r = run({"a", "b"});
  EXPECT_EQ(r.rows[1].status, BaselineStatus::measured);
  EXPECT_EQ(workers_, 2);
}

TEST_F(BaselineSuiteTest, AnInterruptedOneGoesOn) {
  settings_.jobs = 1;
  std::stop_source stop;
  seen_.after = [&] { stop.request_stop(); };
  BaselineReport r = run({"a", "b", "c"}, Context(stop.get_token()));
  EXPECT_TRUE(r.interrupted);
  EXPECT_EQ(r.exit_code(), kExitInterrupted);
  std::vector<std::string> reasons;
  for (const BaselineRow& row : r.rows)
    reasons.push_back(to_string(row.status) + (" " + row.reason));
  EXPECT_THAT(reasons, Contains("unfinished interrupted"));
  seen_.after = {};
  r = run({"a", "b", "c"});
  EXPECT_THAT(seen_.rows, Contains(HasSubstr("cached")));
  EXPECT_EQ(r.exit_code(), kExitOk);
}

TEST_F(BaselineSuiteTest, TimeThatIsUpLeavesRowsUnfinished) {
  ways_["eager"].never_ends = true;
  settings_.minutes = 0.001;
  BaselineReport r = run({"a"});
  EXPECT_EQ(r.rows[0].status, BaselineStatus::unfinished);
  EXPECT_EQ(r.rows[0].reason, "the time was up");
  EXPECT_FALSE(r.interrupted);
  EXPECT_FALSE(cache_.find("a", "h200", "580", "torch toy"));
}

TEST_F(BaselineSuiteTest, NoGpuAndNoCudaAreErrorsOfTheWorld) {
  const std::vector<SuiteTask> one{{.level = 1, .number = 1, .name = "a", .file = "a.py"}};
  no_gpu_ = true;
  auto none = measure_baselines(start(), {}, cache_, settings_, one, seen_);
  ASSERT_FALSE(none);
  EXPECT_EQ(exit_code(none.error()), kExitEnvironment);
  no_gpu_ = false, no_cuda_ = true;
  none = measure_baselines(start(), {}, cache_, settings_, one, seen_);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("without CUDA"));
}

TEST_F(BaselineSuiteTest, ControlsThatCannotBeTimedAreTold) {
  controls_why_ = "the control kernel 'stream' cannot be timed on this machine";
  BaselineReport r = run({"a"});
  EXPECT_EQ(r.rows[0].status, BaselineStatus::measured);
  EXPECT_TRUE(r.rows[0].record.controls.empty());
  EXPECT_THAT(baseline_table(r, {"eager"}), HasSubstr("controls: the control kernel 'stream'"));
}

TEST_F(BaselineSuiteTest, ControlsThatHangDoNotHoldUpTheTasks) {
  controls_hang_ = true;
  controls_why_ = "timed out while waiting for a message";
  settings_.minutes = 1;
  BaselineReport r = run({"a"});
  EXPECT_EQ(r.rows[0].status, BaselineStatus::measured);
  EXPECT_EQ(r.rows[0].record.truth.seconds, 0.5);
}

// The table and the JSON document of a fixed report.
TEST(BaselineTable, HasItsForms) {
  BaselineReport r;
  r.gpu = "h200", r.uuid = "GPU-1", r.driver = "580", r.torch = "torch 2.11", r.seconds = 42.5;
  r.controls = controls();
  BaselineRow a{.task = {.level = 1, .number = 19, .name = "19_ReLU", .file = "19_ReLU.py"},
                .status = BaselineStatus::measured,
                .describe_s = 1.5};
  a.record.task_id = "t", a.record.name = "19_ReLU", a.record.workload = "elementwise";
  a.record.gpu = "h200", a.record.floor_ns = 2.7e6, a.record.bound_by = "memory";
  a.record.admitted = true, a.record.truth = {.seconds = 1.04, .bytes = 38 << 20};
  a.record.controls = r.controls;
  a.record.times = {{.kind = "eager",
                     .time_ns = 3.02e6,
                     .low_ns = 3.01e6,
                     .high_ns = 3.03e6,
                     .samples = 40,
                     .build_s = 0.4},
                    {.kind = "compile", .build_s = 9, .why = "it raises\nmore"}};
  BaselineRow b{.task = {.level = 1, .number = 20, .name = "20_Bad", .file = "20_Bad.py"},
                .status = BaselineStatus::error,
                .reason = "no class Model",
                .describe_s = 0.1};
  r.rows = {a, b};
  const fs::path golden = fs::path(CUTEGEN_SOURCE_DIR) / "tests/golden/engine";
  auto check = [&](const std::string& file, const std::string& text) {
    if (std::getenv("CUTEGEN_UPDATE_GOLDEN")) {
      ASSERT_TRUE(write_file(golden / file, text));
    }
    EXPECT_EQ(read_file(golden / file).value_or("no file"), text) << file;
  };
  check("baselines.txt", baseline_table(r, {"eager", "compile"}));
  check("baselines.json", dump_json(baseline_json(r), 1) + "\n");
}

}  // namespace
}  // namespace cutegen::engine
