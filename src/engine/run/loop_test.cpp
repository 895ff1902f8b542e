// SPDX-License-Identifier: Apache-2.0
#include "engine/run/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file.h"
#include "engine/record/event_data.h"
#include "engine/run/out_folder.h"
#include "engine/run/replay_run.h"
#include "engine/testing/toy_world.h"
#include "eval/api/expect_children.h"

namespace cutegen::engine {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using toy::number_of;
using toy::numbered_program;
using toy::Recorder;
using toy::relu_task;
using toy::scratch_path;
using toy::timed;
using toy::ToyEvaluator;
using toy::ToyWorld;
using toy::untimed;

class LoopTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = scratch_path("loop");
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }
  std::unique_ptr<store::Store> store(const std::string& name = "runs") {
    return std::move(*store::Store::open(dir_ / name));
  }
  OptimizeSettings settings() {
    OptimizeSettings s;
    s.file = dir_ / "relu.py";
    s.out = dir_ / "out";
    return s;
  }
  // Candidates in the order of their finished evaluations; aborted ones do not count.
  static std::vector<std::string> judged(const std::vector<Event>& events) {
    std::vector<std::string> out;
    for (const Event& e : events)
      if (e.type == EventType::evaluated && e.data["verdict"]["status"] != "aborted")
        out.push_back(e.data["candidate"].get<std::string>());
    return out;
  }
  fs::path dir_;
  Recorder recorder_;
};

TEST_F(LoopTest, ARunIsJournalledAndItsBestProgramIsSaved) {
  ToyWorld world;
  auto s = store();
  auto outcome = optimize_with(world.parts(), {}, *s, settings(), recorder_);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(outcome->reason, "nothing left to try");
  EXPECT_EQ(outcome->best->id, "c6");
  EXPECT_EQ(outcome->first_ns, 99);
  EXPECT_EQ(outcome->floor_ns, 10);
  EXPECT_EQ(outcome->evaluations, 6);
  auto events = s->read(outcome->run_id);
  ASSERT_TRUE(events);
  ASSERT_EQ(recorder_.events.size(), events->size());
  for (size_t i = 0; i < events->size(); ++i)
    EXPECT_EQ(to_json((*events)[i]), to_json(recorder_.events[i]));
  EXPECT_THAT(recorder_.progress, testing::Contains("c2 number 2: correctness 1/9"));
  auto saved = load_program(dir_ / "out");
  ASSERT_TRUE(saved) << saved.error().text();
  EXPECT_EQ(program_id(*saved), program_id(numbered_program(6)));
  auto verdict = parse_json(*read_file(dir_ / "out" / "verdict.json"), "verdict.json");
  EXPECT_EQ((*verdict)["timing"]["time_ns"], 94);
}

// An evaluator that records the expected children.
class ToldEvaluator final : public eval::EvaluatorClient, public eval::TakesChildrenToCome {
 public:
  ToldEvaluator(ToyWorld& world, std::vector<std::pair<int, int>>& told)
      : toy_(world), told_(told) {}
  Result<eval::OpenedTask> open_task(const Context& ctx, const fs::path& file) override {
    return toy_.open_task(ctx, file);
  }
  Result<Verdict> evaluate(const Context& ctx, const eval::EvaluateRequest& request,
                           const std::function<void(const std::string&)>& progress) override {
    return toy_.evaluate(ctx, request, progress);
  }
  void expect_children(const Context&, const eval::ChildrenToCome& children) override {
    EXPECT_EQ(children.task, relu_task().task.id);
    told_.emplace_back(number_of(children.parent), children.count);
  }
  int pid() const override { return 0; }

 private:
  ToyEvaluator toy_;
  std::vector<std::pair<int, int>>& told_;
};

TEST_F(LoopTest, TheEvaluatorIsToldOfTheChildrenToCome) {
  ToyWorld world;
  world.judge = [](int n, int) { return timed(n == 2 ? 50 : 100 - n); };
  std::vector<std::pair<int, int>> told;
  Parts parts = world.parts();
  parts.start_evaluator =
      [&](const Context&,
          const eval::EvaluatorOptions&) -> Result<std::unique_ptr<eval::EvaluatorClient>> {
    return std::make_unique<ToldEvaluator>(world, told);
  };
  auto s = store();
  OptimizeSettings given = settings();
  given.search.budget.evaluations = 6;
  given.search.plateau = 5;
  ASSERT_TRUE(optimize_with(parts, {}, *s, given, recorder_));
  EXPECT_TRUE(told.empty()) << "a recipe's children begin otherwise";
  given.model = "command:toy";
  ASSERT_TRUE(optimize_with(parts, {}, *s, given, recorder_));
  // The incumbent of that time, and how many programs the budget or the plateau leaves.
  EXPECT_EQ(told, (std::vector<std::pair<int, int>>{{1, 5}, {2, 4}}));
}

TEST_F(LoopTest, EventsAreCommittedBeforeTheActionRuns) {
  ToyWorld world;
  auto s = store();
  std::vector<std::string> last;
  world.during_evaluation = [&](int) {
    auto events = store()->read("last");  // another connection sees only committed data
    last.push_back(to_string(events->back().type));
  };
  ASSERT_TRUE(optimize_with(world.parts(), {}, *s, settings(), recorder_));
  EXPECT_THAT(last, testing::Each("evaluation_started"));
}

TEST_F(LoopTest, CtrlCLeavesAResumableRun) {
  ToyWorld world;
  auto s = store();
  std::stop_source stop;
  world.during_evaluation = [&](int n) {
    if (n == 3) stop.request_stop();
  };
  auto outcome = optimize_with(world.parts(), Context(stop.get_token()), *s, settings(), recorder_);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_TRUE(outcome->interrupted);
  EXPECT_EQ(outcome->best->id, "c2");
  EXPECT_EQ(s->list()->front().state, store::RunState::interrupted);
  world.during_evaluation = [](int) {};
  auto rest = resume_with(world.parts(), {}, *s, "last", recorder_);
  ASSERT_TRUE(rest) << rest.error().text();
  EXPECT_FALSE(rest->interrupted);
  EXPECT_EQ(rest->best->id, "c6");
  for (int n = 1; n <= 6; ++n) EXPECT_EQ(world.evaluations[n], 1) << n;
  EXPECT_EQ(s->list()->front().state, store::RunState::finished);
}

// A journal that ends the process (by an uncaught exception) before or after the k-th commit.
struct StoreCrash {};
class CrashingStore final : public store::Store {
 public:
  CrashingStore(store::Store& real, int appends, bool after)
      : real_(real), left_(appends), after_(after) {}
  Result<std::unique_ptr<store::RunJournal>> create(const store::RunInfo& info) override {
    return wrap(real_.create(info));
  }
  Result<std::unique_ptr<store::RunJournal>> resume(const std::string& run) override {
    return wrap(real_.resume(run));
  }
  Result<std::vector<Event>> read(const std::string& run) override { return real_.read(run); }
  Result<std::string> resolve(const std::string& run) override { return real_.resolve(run); }
  Result<std::vector<store::RunInfo>> list() override { return real_.list(); }
  Result<std::string> put_blob(std::string_view b) override { return real_.put_blob(b); }
  Result<std::string> get_blob(const std::string& h) override { return real_.get_blob(h); }

 private:
  class Journal final : public store::RunJournal {
   public:
    Journal(CrashingStore& owner, std::unique_ptr<store::RunJournal> real)
        : owner_(owner), real_(std::move(real)) {}
    const std::string& id() const override { return real_->id(); }
    Result<std::vector<Event>> events() override { return real_->events(); }
    Result<Event> append(EventType type, const Json& data) override {
      bool crash = owner_.left_-- == 0;
      if (crash && !owner_.after_) throw StoreCrash{};
      auto event = real_->append(type, data);
      if (crash) throw StoreCrash{};
      return event;
    }

   private:
    CrashingStore& owner_;
    std::unique_ptr<store::RunJournal> real_;
  };
  Result<std::unique_ptr<store::RunJournal>> wrap(
      Result<std::unique_ptr<store::RunJournal>> journal) {
    if (!journal) return fail(journal.error());
    return std::make_unique<Journal>(*this, std::move(*journal));
  }
  store::Store& real_;
  int left_;
  bool after_;
};

Verdict crash_world_verdict(int n, int attempt) {
  if (n == 1) return untimed(Status::failed, "wrong");
  if (n == 3 && attempt == 0) return untimed(Status::aborted, "runner died");
  return timed(n == 4 ? 200 : 100.0 - n);
}

TEST_F(LoopTest, ACrashAtEveryEventBoundaryLosesAndRepeatsNothing) {
  ToyWorld calm{.judge = crash_world_verdict, .programs = 4};
  auto undisturbed_store = store("calm");
  auto undisturbed = optimize_with(calm.parts(), {}, *undisturbed_store, settings(), recorder_);
  ASSERT_TRUE(undisturbed) << undisturbed.error().text();
  auto all = undisturbed_store->read("last");
  int total = int(all->size());
  ASSERT_GT(total, 20);
  int calm_runs = 0;
  for (auto [n, times] : calm.evaluations) calm_runs += times;
  auto s = store("crashing");
  for (int k = 0; k < total; ++k)
    for (bool after : {false, true}) {
      SCOPED_TRACE("crash " + std::string(after ? "after" : "before") + " event " +
                   std::to_string(k + 1));
      ToyWorld world{.judge = crash_world_verdict, .programs = 4};
      CrashingStore crashing(*s, k, after);
      EXPECT_THROW((void)optimize_with(world.parts(), {}, crashing, settings(), recorder_),
                   StoreCrash);
      if (k == 0 && !after) continue;  // nothing was committed, so there is no run
      auto outcome = resume_with(world.parts(), {}, *s, "last", recorder_);
      ASSERT_TRUE(outcome) << outcome.error().text();
      EXPECT_EQ(outcome->best->id, undisturbed->best->id);
      EXPECT_EQ(outcome->evaluations, undisturbed->evaluations);
      EXPECT_EQ(outcome->reason, undisturbed->reason);
      EXPECT_EQ(judged(*s->read("last")), judged(*all));
      // Only an evaluation that was not committed may have run again.
      int ran = 0;
      for (auto [n, times] : world.evaluations) ran += times;
      bool in_doubt = !after && (*all)[size_t(k)].type == EventType::evaluated;
      if (!in_doubt) {
        EXPECT_EQ(ran, calm_runs);
      }
      EXPECT_TRUE(replay_with(world.parts(), {}, *s, "last", recorder_));
      EXPECT_EQ(program_id(*load_program(dir_ / "out")), program_id(outcome->best->program));
    }
}

TEST_F(LoopTest, ReplayGivesTheSameActionsAndFindsEveryChange) {
  ToyWorld world;
  auto s = store();
  ASSERT_TRUE(optimize_with(world.parts(), {}, *s, settings(), recorder_));
  int ran = world.started;
  auto replay = replay_with(world.parts(), {}, *s, "last", recorder_);
  ASSERT_TRUE(replay) << replay.error().text();
  EXPECT_EQ(replay->best->id, "c6");
  EXPECT_EQ(world.started, ran) << "replay starts no evaluator";

  // With another proposer the first answer differs, and the error names the place.
  ToyWorld other;
  auto parts = other.parts();
  parts.make_proposer = [&](const OptimizeSettings&,
                            const eval::OpenedTask&) -> Result<std::unique_ptr<Proposer>> {
    struct Silent : Proposer {
      Result<Answer> answer(const Context&, const search::Ask&, const RunView&) override {
        return Answer{.reason = "nothing"};
      }
    };
    return std::make_unique<Silent>();
  };
  auto differs = replay_with(parts, {}, *s, "last", recorder_);
  ASSERT_FALSE(differs);
  EXPECT_THAT(differs.error().message, HasSubstr("diverges at event 4"));
}

TEST_F(LoopTest, AChangedVerdictMakesTheReplayDivergeAtTheNextAction) {
  ToyWorld world;
  auto s = store();
  ASSERT_TRUE(optimize_with(world.parts(), {}, *s, settings(), recorder_));
  auto events = *s->read("last");
  Walk walk;
  Result<void> result;
  for (Event& e : events) {
    if (e.type == EventType::evaluated && e.data["candidate"] == "c2")
      e.data["verdict"]["timing"]["time_ns"] = 5000.0;
    result = walk.step(e);
    if (!result) break;
  }
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("recorded accepted"));
  EXPECT_THAT(result.error().message, HasSubstr("now rejected"));
}

TEST_F(LoopTest, TheAskedAccuracyIsOfTheJournalToo) {
  ToyWorld world;
  auto s = store();
  OptimizeSettings given = settings();
  given.asked.math_mode = MathMode::fp16;
  given.asked.rtol = 1e-3;
  given.asked.sources = {{"math_mode", "flag --math-mode"}, {"rtol", "flag --rtol"}};
  auto outcome = optimize_with(world.parts(), {}, *s, given, recorder_);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(world.asked.math_mode, MathMode::fp16);
  auto events = s->read(outcome->run_id);
  ASSERT_TRUE(events);
  auto kept = read_json<OptimizeSettings>(events->front().data);
  ASSERT_TRUE(kept) << kept.error().text();
  EXPECT_EQ(to_json(kept->asked), to_json(given.asked));
  EXPECT_FALSE(to_json(settings()).contains("asked"));
}

TEST_F(LoopTest, AnEvaluatorThatFailsIsAnAbortedVerdict) {
  ToyWorld world;
  auto parts = world.parts();
  struct Broken final : eval::EvaluatorClient {
    Result<eval::OpenedTask> open_task(const Context&, const fs::path&) override {
      return relu_task();
    }
    Result<Verdict> evaluate(const Context&, const eval::EvaluateRequest&,
                             const std::function<void(const std::string&)>&) override {
      return world_error("the evaluator died twice");
    }
    int pid() const override { return 0; }
  };
  parts.start_evaluator = [](const Context&, const eval::EvaluatorOptions&)
      -> Result<std::unique_ptr<eval::EvaluatorClient>> { return std::make_unique<Broken>(); };
  auto s = store();
  auto outcome = optimize_with(parts, {}, *s, settings(), recorder_);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(outcome->reason, "the evaluator keeps failing: the evaluator died twice");
  EXPECT_FALSE(outcome->best);
  EXPECT_EQ(outcome->all_verdicts, Status::aborted);
  EXPECT_EQ(outcome->evaluations, 0);
  EXPECT_FALSE(fs::exists(dir_ / "out"));
}

TEST_F(LoopTest, AFailingStartIsTriedOnceMoreUnlessTheUserIsAtFault) {
  ToyWorld world;
  auto s = store();
  for (auto [kind, failures, starts] :
       {std::tuple{ErrorKind::world, 1, 2}, std::tuple{ErrorKind::world, 9, 2},
        std::tuple{ErrorKind::user, 9, 1}}) {
    auto parts = world.parts();
    auto real = parts.start_evaluator;
    int started = 0;
    parts.start_evaluator = [&, kind = kind, failures = failures](
                                const Context& ctx, const eval::EvaluatorOptions& options)
        -> Result<std::unique_ptr<eval::EvaluatorClient>> {
      if (started++ < failures) return fail({.kind = kind, .message = "it died"});
      return real(ctx, options);
    };
    auto outcome = optimize_with(parts, {}, *s, settings(), recorder_);
    EXPECT_EQ(outcome.has_value(), failures == 1);
    EXPECT_EQ(started, starts);
  }
}

TEST_F(LoopTest, NothingIsCreatedWhenTheTaskCannotBeOpened) {
  ToyWorld world;
  std::stop_source stop;
  stop.request_stop();
  auto s = store();
  auto outcome = optimize_with(world.parts(), Context(stop.get_token()), *s, settings(), recorder_);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::cancelled);
  EXPECT_TRUE(s->list()->empty());
}

TEST_F(LoopTest, AChangedTaskIsNotResumed) {
  ToyWorld world;
  auto s = store();
  std::stop_source stop;
  world.during_evaluation = [&](int) { stop.request_stop(); };
  ASSERT_TRUE(optimize_with(world.parts(), Context(stop.get_token()), *s, settings(), recorder_));
  world.opened.task.id = sha256("something else");
  auto outcome = resume_with(world.parts(), {}, *s, "last", recorder_);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, HasSubstr("the task has changed"));
}

Verdict under_old_rules(Verdict verdict) {
  verdict.policy_version = Verdict().policy_version - 1;
  return verdict;
}

TEST_F(LoopTest, ARunWithVerdictsOfOtherRulesIsNotResumed) {
  ToyWorld world{.judge = [](int n, int) { return under_old_rules(timed(100.0 - n)); }};
  auto s = store();
  std::stop_source stop;
  world.during_evaluation = [&](int n) {
    if (n == 3) stop.request_stop();
  };
  ASSERT_TRUE(optimize_with(world.parts(), Context(stop.get_token()), *s, settings(), recorder_));
  const size_t recorded = s->read("last")->size();
  const int started = world.started;
  world.during_evaluation = [](int) {};
  auto refused = resume_with(world.parts(), {}, *s, "last", recorder_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::user);
  EXPECT_THAT(refused.error().text(),
              HasSubstr("rules of version " + std::to_string(Verdict().policy_version - 1)));
  EXPECT_THAT(refused.error().text(), HasSubstr("cutegen optimize " + settings().file.string()));
  EXPECT_EQ(s->read("last")->size(), recorded) << "nothing is recorded";
  EXPECT_EQ(world.started, started);
  auto replay = replay_with(world.parts(), {}, *s, "last", recorder_);
  ASSERT_TRUE(replay) << replay.error().text();
  EXPECT_EQ(replay->best->id, "c2");
}

TEST_F(LoopTest, AFinishedRunOfOtherRulesIsShownAndAnAbortedVerdictIsNoVerdict) {
  ToyWorld world{.judge = [](int n, int) { return under_old_rules(timed(100.0 - n)); }};
  auto s = store();
  ASSERT_TRUE(optimize_with(world.parts(), {}, *s, settings(), recorder_));
  auto finished = resume_with(world.parts(), {}, *s, "last", recorder_);
  ASSERT_TRUE(finished) << finished.error().text();
  EXPECT_EQ(finished->best->id, "c6");
  std::stop_source stop;
  int attempts = 0;
  world.judge = [](int, int) { return under_old_rules(untimed(Status::aborted, "it died")); };
  world.during_evaluation = [&](int) {
    if (++attempts == 2) stop.request_stop();
  };
  ASSERT_TRUE(optimize_with(world.parts(), Context(stop.get_token()), *s, settings(), recorder_));
  world.judge = [](int n, int) { return timed(100.0 - n); };
  auto resumed = resume_with(world.parts(), {}, *s, "last", recorder_);
  ASSERT_TRUE(resumed) << resumed.error().text();
  EXPECT_EQ(resumed->best->id, "c6");
}

TEST_F(LoopTest, AllUnsupportedIsToldApart) {
  ToyWorld world{.judge = [](int, int) { return untimed(Status::unsupported, "opcode x"); }};
  auto s = store();
  auto outcome = optimize_with(world.parts(), {}, *s, settings(), recorder_);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->all_verdicts, Status::unsupported);
  world.judge = [](int n, int) {
    return untimed(n == 2 ? Status::failed : Status::unsupported, "x");
  };
  EXPECT_FALSE(optimize_with(world.parts(), {}, *s, settings(), recorder_)->all_verdicts);
}

TEST_F(LoopTest, ResumingAFinishedRunOnlyTells) {
  ToyWorld world;
  auto s = store();
  ASSERT_TRUE(optimize_with(world.parts(), {}, *s, settings(), recorder_));
  int started = world.started;
  auto again = resume_with(world.parts(), {}, *s, "last", recorder_);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->reason, "nothing left to try");
  EXPECT_EQ(world.started, started);
}

TEST_F(LoopTest, AnOutFolderWithOtherThingsIsRefusedBeforeAnyWork) {
  fs::create_directories(dir_ / "out");
  ASSERT_TRUE(write_file(dir_ / "out" / "thesis.tex", "years of work"));
  ToyWorld world;
  auto s = store();
  auto outcome = optimize_with(world.parts(), {}, *s, settings(), recorder_);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, HasSubstr("thesis.tex"));
  EXPECT_EQ(world.started, 0);
  EXPECT_EQ(*read_file(dir_ / "out" / "thesis.tex"), "years of work");
  ASSERT_TRUE(write_file(dir_ / "file", "x"));
  EXPECT_THAT(check_out_folder(dir_ / "file").error().message, HasSubstr("not a folder"));
  fs::create_directory_symlink(dir_, dir_ / "link");
  EXPECT_FALSE(check_out_folder(dir_ / "link"));
}

}  // namespace
}  // namespace cutegen::engine
