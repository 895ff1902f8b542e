// SPDX-License-Identifier: Apache-2.0
#include "engine/exchange/judge_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/file.h"
#include "engine/testing/toy_world.h"
#include "eval/api/foreign_file.h"

namespace cutegen::engine {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using toy::numbered_program;
using toy::scratch_path;
using toy::timed;
using toy::ToyEvaluator;
using toy::ToyWorld;
using toy::untimed;

class SeenFolder final : public FolderObserver {
 public:
  void on_row(const FolderRow& row, size_t ended, size_t total) override {
    names.push_back(row.name + " " + to_string(row.status) + (row.kept ? " kept" : ""));
    EXPECT_EQ(ended, names.size());
    EXPECT_LE(ended, total);
    if (after) after();
  }
  std::vector<std::string> names;
  std::function<void()> after;
};

class JudgeFolder : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = scratch_path("judge_folder");
    settings_ = {.in = dir_ / "in", .out = dir_ / "out", .evaluators = {{}}};
    for (int n = 1; n <= 3; ++n) put("p" + std::to_string(n), n);
    world_.judge = [](int n, int) {
      return n == 2 ? untimed(Status::failed, "wrong") : timed(100.0 - n);
    };
  }
  void TearDown() override { fs::remove_all(dir_); }

  void put(const std::string& name, int number) {
    ASSERT_TRUE(save_program(numbered_program(number), settings_.in / name));
    ASSERT_TRUE(write_file(settings_.in / name / "task.py", "class Model: pass\n"));
  }
  std::vector<std::string> judge() {
    SeenFolder seen;
    auto rows = judge_folder(world_.parts(), ctx_, settings_, seen);
    EXPECT_TRUE(rows) << rows.error().text();
    if (rows) rows_ = *rows;
    return seen.names;
  }
  std::string verdict_text(const std::string& name) {
    return read_file(settings_.out / (name + ".json")).value_or("");
  }

  fs::path dir_;
  ToyWorld world_;
  JudgeFolderSettings settings_;
  std::stop_source stop_;
  Context ctx_{stop_.get_token()};
  std::vector<FolderRow> rows_;
};

TEST_F(JudgeFolder, EveryEntryGetsAVerdictOnce) {
  EXPECT_THAT(judge(), ElementsAre("p1 correct", "p2 failed", "p3 correct"));
  EXPECT_EQ(rows_[0].time_ns, 99);
  EXPECT_THAT(verdict_text("p2"), HasSubstr("\"status\": \"failed\""));
  EXPECT_THAT(judge(), ElementsAre("p1 correct kept", "p2 failed kept", "p3 correct kept"));
  EXPECT_EQ(rows_[2].time_ns, 97);
  EXPECT_EQ(world_.started, 1);
  settings_.again = true;
  EXPECT_THAT(judge(), ElementsAre("p1 correct", "p2 failed", "p3 correct"));
}

TEST_F(JudgeFolder, AChangedProgramOrTaskIsJudgedAnew) {
  judge();
  put("p1", 5);
  ASSERT_TRUE(write_file(settings_.in / "p2" / "task.py", "class Model: other\n"));
  EXPECT_THAT(judge(), ElementsAre("p1 correct", "p3 correct kept", "p2 failed"));  // by task
  EXPECT_EQ(rows_[1].name, "p2");
  settings_.up_to = Rung::correctness;
  EXPECT_THAT(judge(), ElementsAre("p1 correct", "p3 correct", "p2 failed"));
}

TEST_F(JudgeFolder, BrokenEntriesGetTheirErrorAndTheOthersGoOn) {
  ASSERT_TRUE(write_file(settings_.in / "p1" / "plan.json", "{"));
  fs::remove(settings_.in / "p2" / "task.py");
  EXPECT_THAT(judge(), ElementsAre("p1 error", "p3 correct", "p2 error"));
  EXPECT_EQ(rows_[0].code, kExitUser);
  EXPECT_THAT(rows_[1].detail, HasSubstr("has no task"));
  EXPECT_THAT(verdict_text("p2"), HasSubstr("\"error\""));
  put("p1", 1);
  settings_.task = settings_.in / "p3" / "task.py";
  EXPECT_THAT(judge(), ElementsAre("p1 correct", "p2 failed", "p3 correct kept"));
}

TEST_F(JudgeFolder, AnAbortedEntryOrATornFileIsJudgedAgain) {
  world_.judge = [](int n, int attempt) {
    return n == 1 && attempt == 0 ? untimed(Status::aborted, "the runner died") : timed(10);
  };
  EXPECT_THAT(judge(), ElementsAre("p1 aborted", "p2 correct", "p3 correct"));
  ASSERT_TRUE(write_file(settings_.out / "p3.json", verdict_text("p3").substr(0, 50)));
  EXPECT_THAT(judge(), ElementsAre("p1 correct", "p2 correct kept", "p3 correct"));
}

TEST_F(JudgeFolder, AnInterruptedBatchGoesOn) {
  SeenFolder seen;
  seen.after = [&] { stop_.request_stop(); };
  auto rows = judge_folder(world_.parts(), ctx_, settings_, seen);
  ASSERT_TRUE(rows);
  EXPECT_EQ((*rows)[0].status, RowStatus::correct);
  EXPECT_EQ((*rows)[1].status, RowStatus::pending);
  ctx_ = Context();
  EXPECT_THAT(judge(), ElementsAre("p1 correct kept", "p2 failed", "p3 correct"));
}

// Allows one call at a time, because the toy world is not thread-safe.
class LockedEvaluator final : public eval::EvaluatorClient {
 public:
  LockedEvaluator(ToyWorld& world, std::mutex& lock, int& opened, int dies_at = 0)
      : inner_(world), lock_(lock), opened_(opened), dies_at_(dies_at) {}
  Result<eval::OpenedTask> open_task(const Context& ctx, const fs::path& file) override {
    std::lock_guard hold(lock_);
    ++opened_;
    return inner_.open_task(ctx, file);
  }
  Result<Verdict> evaluate(const Context& ctx, const eval::EvaluateRequest& request,
                           const std::function<void(const std::string&)>& progress) override {
    std::lock_guard hold(lock_);
    if (++asked_ == dies_at_) return world_error("the evaluator died");
    return inner_.evaluate(ctx, request, progress);
  }
  int pid() const override { return 0; }

 private:
  ToyEvaluator inner_;
  std::mutex& lock_;
  int& opened_;
  int asked_ = 0, dies_at_;  // the call that fails; 0: none
};

TEST_F(JudgeFolder, SeveralEvaluatorsShareTheEntries) {
  for (int n = 4; n <= 12; ++n) {
    put("q" + std::to_string(n), n);
    ASSERT_TRUE(write_file(settings_.in / ("q" + std::to_string(n)) / "task.py",
                           "number = " + std::to_string(n % 3) + "\n"));
  }
  std::mutex lock;
  int opened = 0;
  Parts parts = world_.parts();
  parts.start_evaluator =
      [&](const Context&,
          const eval::EvaluatorOptions&) -> Result<std::unique_ptr<eval::EvaluatorClient>> {
    std::lock_guard hold(lock);
    return std::make_unique<LockedEvaluator>(world_, lock, opened);
  };
  settings_.evaluators = {{}, {}};
  SeenFolder seen;
  auto rows = judge_folder(parts, ctx_, settings_, seen);
  ASSERT_TRUE(rows);
  EXPECT_THAT(seen.names, testing::SizeIs(12));
  for (const FolderRow& row : *rows) EXPECT_NE(row.status, RowStatus::pending) << row.name;
  EXPECT_GE(opened, 4);  // each task once, and again when the other evaluator helps at the end
  EXPECT_LE(opened, 5);
}

TEST_F(JudgeFolder, AnErrorOfTheEvaluatorIsOfItsEntryAndTheTaskIsOpenedAgain) {
  std::mutex lock;
  int opened = 0;
  Parts parts = world_.parts();
  parts.start_evaluator = [&](const Context&, const eval::EvaluatorOptions&) {
    return Result<std::unique_ptr<eval::EvaluatorClient>>(
        std::make_unique<LockedEvaluator>(world_, lock, opened, 2));
  };
  SeenFolder seen;
  ASSERT_TRUE(judge_folder(parts, ctx_, settings_, seen));
  EXPECT_THAT(seen.names, ElementsAre("p1 correct", "p2 error", "p3 correct"));
  EXPECT_EQ(opened, 2);
}

// Judges third-party solutions by their text.
class ForeignEvaluator final : public eval::EvaluatorClient {
 public:
  explicit ForeignEvaluator(ToyWorld& world) : inner_(world) {}
  Result<eval::OpenedTask> open_task(const Context& ctx, const fs::path& file) override {
    return inner_.open_task(ctx, file);
  }
  Result<Verdict> evaluate(const Context& ctx, const eval::EvaluateRequest& request,
                           const std::function<void(const std::string&)>& progress) override {
    ++running_;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::lock_guard hold(lock);
    auto out = inner_.evaluate(ctx, request, progress);
    --running_;
    return out;
  }
  Result<Verdict> judge_foreign(const Context&, const eval::ForeignRequest& request,
                                const std::function<void(const std::string&)>&) override {
    EXPECT_EQ(request.seconds, 7);
    EXPECT_EQ(running_++, 0) << "something runs beside it";
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(--running_, 0) << "something runs beside it";
    Verdict out = request.answer.source == "good" ? timed(50) : untimed(Status::failed, "wrong");
    out.program_id = eval::foreign_id(request.answer);
    return out;
  }
  int pid() const override { return 0; }
  static inline std::mutex lock;  // guards the toy world

 private:
  static inline std::atomic<int> running_{0};
  ToyEvaluator inner_;
};

TEST_F(JudgeFolder, PeersAnswersAreJudgedBesideProgramsAndLabelled) {
  for (const char* text : {"good", "bad"}) {
    const fs::path folder = settings_.in / text;
    fs::create_directories(folder);
    ASSERT_TRUE(write_file(folder / "answer.py", text));
    ASSERT_TRUE(write_file(folder / "task.py", "class Model: pass\n"));
  }
  ASSERT_TRUE(write_file(settings_.in / "p3" / "answer.py", "beside a plan"));
  Parts parts = world_.parts();
  parts.start_evaluator =
      [&](const Context&,
          const eval::EvaluatorOptions&) -> Result<std::unique_ptr<eval::EvaluatorClient>> {
    std::lock_guard hold(ForeignEvaluator::lock);
    return std::make_unique<ForeignEvaluator>(world_);
  };
  settings_.seconds = 7;
  settings_.evaluators = {{}, {}, {}};
  for (const char* kept : {"", " kept"}) {
    SeenFolder seen;
    auto rows = judge_folder(parts, ctx_, settings_, seen);
    ASSERT_TRUE(rows);
    const std::string k = kept;
    EXPECT_THAT(seen.names,
                testing::UnorderedElementsAre("bad failed" + k, "good correct" + k,
                                              "p1 correct" + k, "p2 failed" + k, "p3 correct" + k));
    EXPECT_TRUE((*rows)[1].foreign);
    EXPECT_FALSE((*rows)[4].foreign);
    EXPECT_EQ((*rows)[1].time_ns, 50);
  }
  EXPECT_THAT(verdict_text("good"), HasSubstr("\"label\": \"foreign\""));
}

TEST_F(JudgeFolder, WhatCannotBeReadOrStartedIsAnError) {
  SeenFolder seen;
  settings_.in = dir_ / "nowhere";
  EXPECT_THAT(judge_folder(world_.parts(), ctx_, settings_, seen).error().message,
              HasSubstr("cannot be read"));
  fs::create_directories(dir_ / "empty");
  settings_.in = dir_ / "empty";
  EXPECT_THAT(judge_folder(world_.parts(), ctx_, settings_, seen).error().message,
              HasSubstr("no entry"));
  settings_.in = dir_ / "in";
  Parts parts = world_.parts();
  parts.start_evaluator =
      [](const Context&,
         const eval::EvaluatorOptions&) -> Result<std::unique_ptr<eval::EvaluatorClient>> {
    return world_error("no GPU", "get one");
  };
  auto rows = judge_folder(parts, ctx_, settings_, seen);
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().message, "no GPU");
}

}  // namespace
}  // namespace cutegen::engine
