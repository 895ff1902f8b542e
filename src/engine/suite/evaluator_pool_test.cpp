// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/evaluator_pool.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "base/file.h"
#include "engine/testing/toy_world.h"
#include "eval/api/expect_children.h"

namespace cutegen::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What a test's evaluators were asked, and what they do.
struct Script {
  std::mutex lock;
  std::vector<std::string> asked;
  std::function<Result<Verdict>(const eval::EvaluateRequest&)> evaluate =
      [](const eval::EvaluateRequest&) { return toy::timed(50); };
  std::atomic<int> started{0}, open_tasks{0}, inside{0}, most_inside{0};
  bool changed = false;  // the task file changed meanwhile

  void note(const std::string& what) {
    std::lock_guard hold(lock);
    asked.push_back(what);
  }
};

class FakeEvaluator final : public eval::EvaluatorClient, public eval::TakesChildrenToCome {
 public:
  explicit FakeEvaluator(Script& script) : script_(script), number_(++script.started) {}
  ~FakeEvaluator() override { script_.open_tasks -= int(open_.size()); }
  Result<eval::OpenedTask> open_task(const Context&, const std::filesystem::path& file) override {
    script_.note(std::to_string(number_) + " open " + file.stem().string());
    eval::OpenedTask opened = toy::relu_task();
    opened.task.id = file.stem().string() + (script_.changed ? " changed" : "");
    if (open_.insert(opened.task.id).second) ++script_.open_tasks;
    return opened;
  }
  Result<eval::OpenedTask> open_task_as(const Context& ctx, const std::filesystem::path& file,
                                        const AskedAccuracy& asked) override {
    if (asked.rtol) script_.note(fmt::format("rtol {}", *asked.rtol));
    return open_task(ctx, file);
  }
  Result<Verdict> evaluate(const Context&, const eval::EvaluateRequest& request,
                           const std::function<void(const std::string&)>& progress) override {
    script_.most_inside = std::max(script_.most_inside.load(), ++script_.inside);
    EXPECT_TRUE(open_.contains(request.task)) << request.task;
    script_.note(std::to_string(number_) + " evaluate " + request.task);
    progress("compile");
    progress("correctness 1/2");
    progress("correctness 2/2");
    auto verdict = script_.evaluate(request);
    --script_.inside;
    return verdict;
  }
  void close_task(const Context&, const std::string& id) override {
    script_.note(std::to_string(number_) + " close " + id);
    if (open_.erase(id) > 0) --script_.open_tasks;
  }
  void expect_children(const Context&, const eval::ChildrenToCome& children) override {
    script_.note(fmt::format("{} expect {} of {}", number_, children.count, children.task));
  }
  int pid() const override { return number_; }

 private:
  Script& script_;
  int number_;
  std::set<std::string> open_;
};

class PoolTest : public testing::Test {
 protected:
  std::unique_ptr<EvaluatorPool> pool(int evaluators, int runs, Trace* trace = nullptr) {
    parts_.start_evaluator =
        [this](const Context&,
               const eval::EvaluatorOptions& o) -> Result<std::unique_ptr<eval::EvaluatorClient>> {
      if (o.device == "sim:none") return user_error("unknown GPU 'none'");
      tasks_ = o.tasks;
      return std::make_unique<FakeEvaluator>(script_);
    };
    return std::make_unique<EvaluatorPool>(
        parts_, PoolSettings{.evaluators = evaluators, .runs = runs, .trace = trace});
  }
  static std::unique_ptr<eval::EvaluatorClient> take(EvaluatorPool& from,
                                                     const std::string& task = "") {
    auto lease = from.lease({}, {});
    EXPECT_TRUE(lease) << lease.error().text();
    if (!task.empty()) {
      EXPECT_TRUE((*lease)->open_task({}, task + ".py"));
    }
    return std::move(*lease);
  }
  Parts parts_;
  Script script_;
  int tasks_ = 0;
};

TEST_F(PoolTest, RunsShareAnEvaluatorAndEachHasItsTask) {
  auto p = pool(1, 2);
  auto a = take(*p, "a"), b = take(*p, "b");
  EXPECT_TRUE(a->evaluate({}, {}));
  EXPECT_TRUE(b->evaluate({}, {}));
  EXPECT_TRUE(a->evaluate({}, {}));
  EXPECT_THAT(script_.asked,
              ElementsAre("1 open a", "1 open b", "1 evaluate a", "1 evaluate b", "1 evaluate a"));
  EXPECT_EQ(script_.started, 1);
  EXPECT_EQ(tasks_, 2);
}

TEST_F(PoolTest, ChildrenAreExpectedOfTheRunsOwnTaskAtTheLatestBeforeItsNextEvaluation) {
  auto p = pool(1, 2);
  auto a = take(*p, "a"), b = take(*p, "b");
  eval::expect_children(*a, {}, {.count = 3, .task = ""});
  std::latch inside(1), go(1);
  script_.evaluate = [&](const eval::EvaluateRequest&) {
    inside.count_down();
    go.wait();
    return toy::timed(50);
  };
  std::thread other([&] { EXPECT_TRUE(a->evaluate({}, {})); });
  inside.wait();
  eval::expect_children(*b, {},
                        {.count = 4, .task = ""});  // does not wait for the other's evaluation
  go.count_down();
  other.join();
  script_.evaluate = [](const eval::EvaluateRequest&) { return toy::timed(50); };
  EXPECT_TRUE(b->evaluate({}, {}));
  EXPECT_TRUE(b->evaluate({}, {}));
  EXPECT_THAT(script_.asked, ElementsAre("1 open a", "1 open b", "1 expect 3 of a", "1 evaluate a",
                                         "1 expect 4 of b", "1 evaluate b", "1 evaluate b"));
}

TEST_F(PoolTest, TheAskedAccuracyIsPassedOn) {
  auto p = pool(1, 1);
  auto lease = p->lease({}, {});
  ASSERT_TRUE(lease) << lease.error().text();
  AskedAccuracy asked;
  asked.rtol = 0.25;
  ASSERT_TRUE((*lease)->open_task_as({}, "a.py", asked));
  EXPECT_THAT(script_.asked, ElementsAre("rtol 0.25", "1 open a"));
}

TEST_F(PoolTest, LeasesAreSpreadOverTheEvaluators) {
  auto p = pool(2, 4);
  auto a = take(*p, "a"), b = take(*p, "b"), c = take(*p, "c");
  EXPECT_EQ(script_.started, 2);
  EXPECT_NE(a->pid(), b->pid());
  b.reset();
  auto d = take(*p, "d");
  EXPECT_NE(d->pid(), a->pid()) << "where the fewest are";
  EXPECT_EQ(tasks_, 2);
}

TEST_F(PoolTest, ATaskIsClosedWithItsLastLease) {
  auto p = pool(1, 3);
  auto a = take(*p, "a"), again = take(*p, "a"), b = take(*p, "b");
  EXPECT_EQ(script_.open_tasks, 2);
  a.reset();
  EXPECT_TRUE(b->evaluate({}, {}));
  EXPECT_EQ(script_.open_tasks, 2) << "another run works on it";
  again.reset();
  EXPECT_TRUE(b->evaluate({}, {}));
  EXPECT_EQ(script_.open_tasks, 1);
  EXPECT_EQ(std::count(script_.asked.begin(), script_.asked.end(), "1 close a"), 1);
}

TEST_F(PoolTest, WhoWaitsIsServedInTurnAndNeverTwoAtATime) {
  auto p = pool(1, 8);
  std::vector<std::unique_ptr<eval::EvaluatorClient>> leases;
  for (int i = 0; i < 8; ++i) leases.push_back(take(*p, std::to_string(i)));
  script_.evaluate = [](const eval::EvaluateRequest&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return toy::timed(50);
  };
  std::vector<std::jthread> threads;
  for (auto& lease : leases)
    threads.emplace_back([&lease] {
      for (int k = 0; k < 3; ++k) EXPECT_TRUE(lease->evaluate({}, {}));
    });
  threads.clear();
  EXPECT_EQ(script_.most_inside, 1);
  EXPECT_EQ(script_.asked.size(), 8U + 24U);
  // Turns are fair: nobody gets a third call while somebody waits for a first one.
  std::map<std::string, int> served;
  for (size_t i = 8; i < 8 + 16; ++i) ++served[script_.asked[i]];
  for (const auto& [who, times] : served) EXPECT_LE(times, 3) << who;
}

TEST_F(PoolTest, AWaitEndsWithItsContext) {
  auto p = pool(1, 2);
  auto a = take(*p, "a"), b = take(*p, "b");
  std::latch inside(1), leave(1);
  script_.evaluate = [&](const eval::EvaluateRequest&) {
    inside.count_down();
    leave.wait();
    return toy::timed(50);
  };
  std::jthread busy([&] { EXPECT_TRUE(a->evaluate({}, {})); });
  inside.wait();
  std::stop_source stop;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    stop.request_stop();
  });
  auto verdict = b->evaluate(Context(stop.get_token()), {}, {});
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().kind, ErrorKind::cancelled);
  leave.count_down();
  busy.join();
  script_.evaluate = [](const eval::EvaluateRequest&) { return toy::timed(50); };
  EXPECT_TRUE(b->evaluate({}, {})) << "the turn was given back";
}

TEST_F(PoolTest, AFailedEvaluatorIsStartedAnewForAllItsRuns) {
  auto p = pool(1, 2);
  auto a = take(*p, "a"), b = take(*p, "b");
  script_.evaluate = [](const eval::EvaluateRequest&) -> Result<Verdict> {
    return world_error("the evaluator died");
  };
  EXPECT_FALSE(a->evaluate({}, {}));
  script_.evaluate = [](const eval::EvaluateRequest&) { return toy::timed(50); };
  script_.asked.clear();
  EXPECT_TRUE(b->evaluate({}, {}));
  EXPECT_TRUE(a->evaluate({}, {}));
  EXPECT_EQ(script_.started, 2);
  EXPECT_THAT(script_.asked, ElementsAre("2 open b", "2 evaluate b", "2 open a", "2 evaluate a"));
  script_.evaluate = [](const eval::EvaluateRequest&) -> Result<Verdict> {
    return user_error("the plan is wrong");
  };
  EXPECT_FALSE(a->evaluate({}, {}));
  EXPECT_TRUE(b->open_task({}, "b.py"));
  EXPECT_EQ(script_.started, 2) << "a user's error says nothing about the evaluator";
}

TEST_F(PoolTest, ATaskThatChangedBetweenTwoEvaluatorsIsRefused) {
  auto p = pool(1, 1);
  auto a = take(*p, "a");
  script_.evaluate = [](const eval::EvaluateRequest&) -> Result<Verdict> {
    return world_error("died");
  };
  EXPECT_FALSE(a->evaluate({}, {}));
  script_.changed = true;
  auto verdict = a->evaluate({}, {});
  ASSERT_FALSE(verdict);
  EXPECT_THAT(verdict.error().message, HasSubstr("changed while it was in use"));
}

TEST_F(PoolTest, AnEvaluatorThatCannotStartIsTheLeasesError) {
  auto p = pool(1, 1);
  auto refused = p->lease({}, {.device = "sim:none"});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("unknown GPU"));
  EXPECT_TRUE(p->lease({}, {}));
}

TEST_F(PoolTest, TheTraceSaysWhatEachEvaluatorDid) {
  Trace trace;
  auto p = pool(1, 1, &trace);
  auto a = take(*p, "a\x1b[31m");
  EXPECT_TRUE(a->evaluate({}, {}));
  const auto begin = Clock::now();
  trace.add("run 1", "coder", begin, begin + std::chrono::milliseconds(3));
  std::vector<std::string> spans, tracks;
  const Json json = trace.json();
  for (const Json& e : json["traceEvents"]) {
    if (e["ph"] == "X") spans.push_back(e["name"]);
    if (e["ph"] == "X") {
      EXPECT_GE(e["dur"].get<double>(), 0);
    }
    if (e["name"] == "thread_name") tracks.push_back(e["args"]["name"]);
  }
  EXPECT_THAT(spans,
              ElementsAre("start", "open task", "evaluate", "compile", "correctness", "coder"));
  EXPECT_THAT(tracks, ElementsAre("evaluator 1", "run 1"));
  EXPECT_NEAR(json["traceEvents"].back()["dur"].get<double>(), 3000, 0.01);
  EXPECT_FALSE(trace.write("/nowhere/at/all/trace.json"));
}

}  // namespace
}  // namespace cutegen::engine
