// SPDX-License-Identifier: Apache-2.0
#include "engine/run/replay_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing/toy_world.h"

namespace cutegen::engine {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using toy::Recorder;
using toy::scratch_path;
using toy::timed;
using toy::ToyWorld;
using toy::untimed;

using Alter = std::function<void(Event&)>;

// A store whose recorded runs have been altered.
class AlteredStore final : public store::Store {
 public:
  AlteredStore(store::Store& real, Alter alter) : real_(real), alter_(std::move(alter)) {}
  Result<std::vector<Event>> read(const std::string& run) override {
    CG_TRY(auto events, real_.read(run));
    for (Event& event : events) alter_(event);
    return events;
  }
  Result<std::unique_ptr<store::RunJournal>> create(const store::RunInfo&) override {
    return user_error("a replay creates no run");
  }
  Result<std::unique_ptr<store::RunJournal>> resume(const std::string&) override {
    return user_error("a replay writes to no run");
  }
  Result<std::string> resolve(const std::string& run) override { return real_.resolve(run); }
  Result<std::vector<store::RunInfo>> list() override { return real_.list(); }
  Result<std::string> put_blob(std::string_view b) override { return real_.put_blob(b); }
  Result<std::string> get_blob(const std::string& h) override { return real_.get_blob(h); }

 private:
  store::Store& real_;
  Alter alter_;
};

// Changes the data at a JSON pointer in the first event of a type (of candidate `id`, if given).
// Null removes the value.
Alter at(EventType type, const std::string& id, const std::string& pointer, Json value) {
  return [=, done = false](Event& event) mutable {
    if (done || event.type != type) return;
    if (!id.empty() && event.data.value("candidate", "") != id) return;
    const Json::json_pointer place(pointer);
    if (value.is_null())
      event.data[place.parent_pointer()].erase(place.back());
    else
      event.data[place] = value;
    done = true;
  };
}

Verdict program_verdict(int n, int) {
  if (n == 1) return untimed(Status::failed, "out: 3 of 64 values are wrong");
  return timed(100.0 - n);
}

class ReEvaluate : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = scratch_path("replay");
    fs::create_directories(dir_);
    store_ = std::move(*store::Store::open(dir_ / "runs"));
    OptimizeSettings s;
    s.file = dir_ / "relu.py";
    ASSERT_TRUE(optimize_with(world_.parts(), {}, *store_, s, recorder_));
    recorded_ = *store_->read("last");
  }
  void TearDown() override {
    store_.reset();
    fs::remove_all(dir_);
  }
  Result<ReEvaluation> again(const Alter& alter = [](Event&) {}) {
    AlteredStore altered(*store_, alter);
    return re_evaluate_with(world_.parts(), {}, altered, "last", settings_, recorder_);
  }
  Divergence divergence(const Alter& alter) {
    auto r = again(alter);
    EXPECT_TRUE(r) << r.error().text();
    EXPECT_TRUE(r && r->divergence) << "no divergence was found";
    return r && r->divergence ? *r->divergence : Divergence{};
  }

  fs::path dir_;
  std::unique_ptr<store::Store> store_;
  ToyWorld world_{.judge = program_verdict, .programs = 4};
  Recorder recorder_;
  std::vector<Event> recorded_;
  ReEvaluateSettings settings_;
};

TEST_F(ReEvaluate, ASoundRunIsFoundAgain) {
  const int started = world_.started;
  auto r = again();
  ASSERT_TRUE(r) << r.error().text();
  EXPECT_FALSE(r->divergence) << to_text(*r->divergence);
  EXPECT_EQ(r->events, int64_t(recorded_.size()));
  EXPECT_EQ(r->evaluations, 4);
  EXPECT_EQ(r->largest_change, 0);
  EXPECT_EQ(r->recorded.best->id, "c4");
  EXPECT_EQ(world_.started, started + 1);
  EXPECT_EQ(world_.evaluations[3], 2);
  EXPECT_EQ(store_->read("last")->size(), recorded_.size()) << "nothing is recorded";
  EXPECT_EQ(to_json(*r)["identical"], true);
}

TEST_F(ReEvaluate, TheFloorOfAnOlderRuleIsARemark) {
  auto r = again([](Event& event) {
    if (event.type == EventType::task) {
      event.data["floor_ns"] = 11.0;
      event.data.erase("reachable_ns");
      event.data.erase("roofline_ns");
    }
    if (event.type == EventType::asked) {
      event.data["context"].erase("reachable_ns");
      event.data["context"].erase("roofline_ns");
      if (event.data["context"].contains("floor_ns")) event.data["context"]["floor_ns"] = 11.0;
    }
    if (event.type != EventType::opened) return;
    event.data["search"].erase("reach_ratio");
    event.data["search"]["floor_ratio"] = 1.05;
  });
  ASSERT_TRUE(r) << r.error().text();
  EXPECT_FALSE(r->divergence) << to_text(*r->divergence);
  EXPECT_THAT(r->remarks, testing::Contains(HasSubstr("by an older rule")));
}

// Gives the verdicts of `id`, or all verdicts, an older policy version.
Alter older_rules(const std::string& id = "") {
  return [=](Event& event) {
    if (event.type == EventType::evaluated && (id.empty() || event.data["candidate"] == id))
      event.data["verdict"]["policy_version"] = Verdict().policy_version - 1;
  };
}

TEST_F(ReEvaluate, VerdictsOfOtherRulesAreNotCompared) {
  world_.judge = [](int, int) { return untimed(Status::rejected, "a new rule"); };
  auto r = again([](Event& event) {
    older_rules()(event);
    if (event.type == EventType::task) event.data["floor_ns"] = 11.0;
    if (event.type == EventType::asked && event.data["context"].contains("floor_ns"))
      event.data["context"]["floor_ns"] = 11.0;
  });
  ASSERT_TRUE(r) << r.error().text();
  EXPECT_FALSE(r->divergence) << to_text(*r->divergence);
  EXPECT_EQ(r->evaluations, 0);
  EXPECT_EQ(r->other_policy, 4);
  EXPECT_EQ(to_json(*r)["other_policy"], 4);
  const int now = Verdict().policy_version;
  EXPECT_THAT(r->remarks,
              testing::ElementsAre(
                  "policy: 4 verdicts are not compared, because the judging rules changed from "
                  "version " +
                      std::to_string(now - 1) + " to " + std::to_string(now),
                  HasSubstr("by an older rule")));
  world_.judge = [](int n, int k) {
    return n == 2 || n == 3 ? untimed(Status::rejected, "a new rule") : program_verdict(n, k);
  };
  r = again(older_rules("c2"));
  ASSERT_TRUE(r) << r.error().text();
  EXPECT_EQ(r->other_policy, 1);
  ASSERT_TRUE(r->divergence) << "c3 was judged by today's rules";
  EXPECT_EQ(r->divergence->step, "c3");
}

TEST_F(ReEvaluate, EveryAlterationIsNamed) {
  struct Case {
    Alter alter;
    std::string step, field, recorded, now;
  };
  const std::vector<Case> cases{
      {at(EventType::evaluated, "c1", "/verdict/status", "correct"), "c1", "verdict/status",
       "correct", "failed: out: 3 of 64 values are wrong"},
      {at(EventType::evaluated, "c3", "/verdict/timing/time_ns", 80.0), "c3", "verdict/time_ns",
       "80 ns modelled", "97 ns modelled"},
      {at(EventType::evaluated, "c3", "/verdict/timing/time_ns", 0.0), "c3", "verdict/time_ns", "0",
       "97 ns"},
      {at(EventType::evaluated, "c2", "/verdict/timing", nullptr), "c2", "verdict/timing",
       "no time", "98"},
      {at(EventType::evaluated, "c2", "/verdict/program_id", "other"), "c2", "verdict/program_id",
       "other", ""},
      {at(EventType::task, "", "/task/id", sha256("another")), "", "task/id", sha256("another"),
       sha256("relu")},
      {at(EventType::task, "", "/device", "sim:b200"), "", "task/device", "sim:b200", "sim:h200"},
      {at(EventType::task, "", "/floor_ns", 11.0), "", "task/floor_ns", "11", "10"},
      {at(EventType::answered, "", "/candidate/edit/summary", "number one"), "coder",
       "answer/candidate/edit/summary", "number one", "number 1"},
      {at(EventType::accepted, "c2", "/reason", "because"), "c2", "action", "because",
       "first correct"},
      {at(EventType::evaluation_started, "c2", "/up_to", "compile"), "c2", "action", "compile",
       "timing"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.field + " of " + c.step);
    Divergence d = divergence(c.alter);
    EXPECT_EQ(d.step, c.step);
    EXPECT_THAT(d.field, HasSubstr(c.field));
    EXPECT_THAT(d.recorded, HasSubstr(c.recorded));
    EXPECT_THAT(d.now, HasSubstr(c.now));
    EXPECT_GT(d.event, 0);
    EXPECT_THAT(to_text(d), HasSubstr(c.field));
  }
}

TEST_F(ReEvaluate, ATimeWithinTheToleranceIsNoDivergence) {
  auto slower =
      // The decision does not change.
      at(EventType::evaluated, "c4", "/verdict/timing/time_ns", 95.5);
  auto r = again(slower);
  ASSERT_TRUE(r) << r.error().text();
  ASSERT_TRUE(r->divergence) << "the reason contains the gain";
  EXPECT_EQ(r->divergence->field, "action");
  EXPECT_EQ(r->evaluations, 4);
  EXPECT_NEAR(r->largest_change, 0.005, 0.001);
  settings_.tolerance = 0.001;
  EXPECT_EQ(divergence(slower).field, "verdict/time_ns");
}

TEST_F(ReEvaluate, AnotherEvaluatorIsTold) {
  world_.judge = [](int n, int attempt) {
    return n == 3 ? untimed(Status::rejected, "writes outside") : program_verdict(n, attempt);
  };
  world_.opened.toolchain = "NVRTC 99";
  auto r = again();
  ASSERT_TRUE(r) << r.error().text();
  ASSERT_TRUE(r->divergence);
  EXPECT_EQ(r->divergence->field, "verdict/status");
  EXPECT_THAT(r->divergence->now, HasSubstr("rejected: writes outside"));
  EXPECT_EQ(r->evaluations, 3);
  EXPECT_THAT(r->remarks, testing::ElementsAre("toolchain: recorded NVRTC 13.0, now NVRTC 99"));
  Json json = to_json(*r);
  EXPECT_EQ(json["identical"], false);
  EXPECT_EQ(json["divergence"]["step"], "c3");
}

TEST_F(ReEvaluate, TheRungAtWhichAProgramFailsMustBeTheSame) {
  auto failed_at = [](Rung rung) {
    Verdict v = untimed(Status::failed, "no");
    v.rungs = {{.rung = rung, .result = RungResult::failed, .detail = ""}};
    return v;
  };
  world_.judge = [&](int n, int k) {
    return n == 1 ? failed_at(Rung::compile) : program_verdict(n, k);
  };
  OptimizeSettings s;
  s.file = dir_ / "relu.py";
  ASSERT_TRUE(optimize_with(world_.parts(), {}, *store_, s, recorder_));
  EXPECT_FALSE(again()->divergence);
  world_.judge = [&](int n, int k) {
    return n == 1 ? failed_at(Rung::correctness) : program_verdict(n, k);
  };
  Divergence d = divergence([](Event&) {});
  EXPECT_EQ(d.field, "verdict/rung");
  EXPECT_EQ(d.recorded, "compile");
  EXPECT_EQ(d.now, "correctness");
}

TEST_F(ReEvaluate, AbortedEvaluationsAreLeftOutAndNewOnesAreAnError) {
  world_.judge = [](int n, int attempt) {
    return n == 2 && attempt == 1 ? untimed(Status::aborted, "the runner died")
                                  : program_verdict(n, attempt);
  };
  OptimizeSettings s;
  s.file = dir_ / "relu.py";
  ASSERT_TRUE(optimize_with(world_.parts(), {}, *store_, s, recorder_));
  auto r = again();
  ASSERT_TRUE(r) << r.error().text();
  EXPECT_FALSE(r->divergence);
  EXPECT_EQ(r->left_out, 1);
  EXPECT_EQ(r->evaluations, 4);
  world_.judge = [](int, int) { return untimed(Status::aborted, "the runner died"); };
  auto failed = again();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::world);
  EXPECT_THAT(failed.error().message, HasSubstr("c1"));
}

TEST_F(ReEvaluate, AJournalThatCannotBeReadIsAnError) {
  EXPECT_FALSE(again(at(EventType::evaluated, "c1", "/verdict/status", "splendid")));
  EXPECT_FALSE(again(at(EventType::opened, "", "/strategy", "none")));
  std::stop_source stop;
  stop.request_stop();
  auto r = re_evaluate_with(world_.parts(), Context(stop.get_token()), *store_, "last", settings_,
                            recorder_);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().kind, ErrorKind::cancelled);
}

}  // namespace
}  // namespace cutegen::engine
