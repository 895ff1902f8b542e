// SPDX-License-Identifier: Apache-2.0
// The end of a run: profile and certificate of the best program, what stops them, and what the
// journal keeps.
#include "engine/run/complete_best.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "engine/record/end_data.h"
#include "engine/run/replay_run.h"
#include "engine/testing/toy_world.h"

namespace cutegen::engine {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using toy::number_of;
using toy::numbered_program;
using toy::Recorder;
using toy::scratch_path;
using toy::timed;
using toy::toy_certificate;
using toy::ToyWorld;
using toy::untimed;

class EndOfRun : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(dir_);
    store_ = std::move(*store::Store::open(dir_ / "runs"));
    settings_.file = dir_ / "relu.py";
    settings_.out = dir_ / "out";
    settings_.evaluator.device = "cuda:0";
    settings_.baselines = false;
    settings_.certify_minutes = 1;
    world_.programs = 3;
    world_.judge = [](int n, int) {
      Verdict v = timed(100.0 - n);
      v.timing->origin = Origin::measured;
      return v;
    };
  }
  void TearDown() override {
    store_.reset();
    fs::remove_all(dir_);
  }
  RunView run(const Context& ctx = {}) {
    auto done = optimize_with(world_.parts(), ctx, *store_, settings_, recorder_);
    EXPECT_TRUE(done) << done.error().text();
    return seen();
  }
  RunView resumed() {
    auto done = resume_with(world_.parts(), {}, *store_, "last", recorder_);
    EXPECT_TRUE(done) << done.error().text();
    return seen();
  }
  RunView seen() {
    events_ = *store_->read("last");
    auto view = view_run(events_);
    EXPECT_TRUE(view) << view.error().text();
    return std::move(*view);
  }
  int count(EventType type) const {
    return int(std::count_if(events_.begin(), events_.end(),
                             [&](const Event& e) { return e.type == type; }));
  }

  fs::path dir_ = scratch_path("end");
  std::unique_ptr<store::Store> store_;
  ToyWorld world_;
  OptimizeSettings settings_;
  Recorder recorder_;
  std::vector<Event> events_;
};

TEST_F(EndOfRun, TheBestProgramIsCertifiedBeforeTheRunFinishes) {
  std::vector<torch::BaselineWanted> wanted;
  world_.certify = [&](const Context&, const eval::CertifyRequest& request) -> Result<Certificate> {
    wanted = request.baselines;
    EXPECT_EQ(number_of(request.program), 3);
    EXPECT_EQ(request.processes, 2);
    return toy_certificate(request.program);
  };
  world_.opened.task.baseline = "fast:run";
  RunView view = run();
  ASSERT_EQ(wanted.size(), 6U);
  EXPECT_EQ(wanted.back().target, "fast:run");
  ASSERT_TRUE(view.best_certificate());
  EXPECT_EQ(view.best_certificate()->modes.size(), 4U);
  EXPECT_EQ(events_.back().type, EventType::finished);
  EXPECT_EQ(events_[events_.size() - 2].type, EventType::certified);
  EXPECT_EQ(events_[events_.size() - 3].data["limit_ms"], 60000);
  EXPECT_THAT(recorder_.progress, Contains("certifying c3: process 1 of 2: cold"));
  auto kept = parse_json(*read_file(settings_.out / "certificate.json"), "certificate.json");
  ASSERT_TRUE(kept);
  EXPECT_EQ((*kept)["program_id"], program_id(numbered_program(3)));
  Recorder replayed;
  EXPECT_TRUE(replay_with(world_.parts(), {}, *store_, "last", replayed));
}

TEST_F(EndOfRun, CtrlCKeepsWhatWasFoundAndResumeFinishesTheCertificate) {
  std::stop_source stop;
  world_.certify = [&](const Context& ctx, const eval::CertifyRequest&) -> Result<Certificate> {
    stop.request_stop();
    CG_CHECK(ctx.check("certifying"));
    return world_error("not reached");
  };
  RunView view = run(Context(stop.get_token()));
  EXPECT_TRUE(view.interrupted);
  EXPECT_EQ(view.certifying, "c3");
  EXPECT_EQ(view.best, "c3");
  EXPECT_TRUE(fs::exists(settings_.out / "plan.json"));
  EXPECT_FALSE(fs::exists(settings_.out / "certificate.json"));
  EXPECT_EQ(count(EventType::certified) + count(EventType::finished), 0);
  world_.certify = ToyWorld().certify;
  view = resumed();
  EXPECT_FALSE(view.interrupted);
  EXPECT_TRUE(view.best_certificate());
  EXPECT_EQ(view.certifying, "");
  EXPECT_EQ(world_.certified, 2);
  EXPECT_EQ(world_.evaluations[3], 1) << "nothing was judged again";
  EXPECT_TRUE(fs::exists(settings_.out / "certificate.json"));
  resumed();
  EXPECT_EQ(world_.certified, 2) << "a finished run stays as it is";
}

TEST_F(EndOfRun, TroubleIsTheReasonInPlaceOfTheFigures) {
  world_.certify = [](const Context&, const eval::CertifyRequest&) -> Result<Certificate> {
    return world_error("torch has no CUDA", "install another torch");
  };
  RunView view = run();
  EXPECT_FALSE(view.best_certificate());
  ASSERT_TRUE(view.certified);
  EXPECT_THAT(view.certified->why, HasSubstr("torch has no CUDA"));
  EXPECT_EQ(view.finished, "nothing left to try");
}

TEST_F(EndOfRun, ALimitEndsTheCertificateAndNotTheRun) {
  settings_.certify_minutes = 0.001 / 60;
  world_.certify = [](const Context& ctx, const eval::CertifyRequest&) -> Result<Certificate> {
    while (!ctx.done()) {
    }
    return fail(ctx.check("certifying").error());
  };
  RunView view = run();
  EXPECT_EQ(view.finished, "nothing left to try");
  EXPECT_THAT(view.certified->why,
              HasSubstr("not finished within 0 s (give it more time with --certify-minutes"));
}

TEST_F(EndOfRun, WhatTheSearchLeftOfItsMinutesIsTheCertificates) {
  RunView view = run();
  EXPECT_EQ(certify_limit(view, 0), std::chrono::seconds(60));
  view.settings.search.budget.minutes = 2;
  EXPECT_EQ(certify_limit(view, 60'000), std::chrono::seconds(120));
  EXPECT_EQ(certify_limit(view, 180'000), std::chrono::seconds(60));
}

TEST_F(EndOfRun, NothingIsCertifiedOnASimulatorOrWhenTold) {
  settings_.certify_minutes = 0;
  EXPECT_FALSE(run().certified);
  EXPECT_THAT(no_certificate(settings_), HasSubstr("--certify-minutes 0"));
  settings_.certify_minutes = 1;
  settings_.evaluator.device = "sim:h200";
  EXPECT_FALSE(run().certified);
  EXPECT_THAT(no_certificate(settings_), HasSubstr("sim:h200 is a simulator"));
  EXPECT_EQ(world_.certified, 0);
  world_.judge = [](int, int) { return untimed(Status::failed, "wrong"); };
  settings_.evaluator.device = "cuda:0";
  EXPECT_FALSE(run().certified);
  EXPECT_EQ(world_.certified, 0) << "nothing was correct";
}

TEST_F(EndOfRun, TheBestProgramGetsAProfileOnce) {
  settings_.profile_best = true;
  settings_.certify_minutes = 0;
  auto plain = world_.judge;
  world_.judge = [&](int n, int attempt) {
    Verdict v = plain(n, attempt);
    if (attempt == 1)
      v.profile = Profile{.shape = "official", .source = CounterSource::from("ncu"), .note = ""};
    return v;
  };
  RunView view = run();
  EXPECT_EQ(world_.evaluations[3], 2);
  EXPECT_EQ(world_.evaluations[2], 1);
  ASSERT_TRUE(view.best_profile());
  EXPECT_EQ(view.best_profile()->source.text(), "ncu");
  EXPECT_EQ(view.evaluations, 3) << "it is no step of the search";
  EXPECT_FALSE(wants_profile(view));
  world_.judge = [&](int n, int attempt) {
    return attempt == 0 ? plain(n, 0) : untimed(Status::failed, "2 of 64 values are wrong");
  };
  world_.evaluations.clear();
  view = run();
  EXPECT_FALSE(view.best_profile());
  EXPECT_THAT(view.profiled->why, HasSubstr("a second evaluation gave failed: 2 of 64"));
}

TEST_F(EndOfRun, OnlyAProgramThatIsSlowerMayGetOne) {
  RunView view = run();
  ASSERT_TRUE(view.incumbent());
  view.settings.profile_slower = true;
  EXPECT_FALSE(wants_profile(view)) << "there is no baseline";
  const double own = *view.incumbent()->time_ns();
  auto eager = [](double ns) {
    return BaselineTime{.kind = "eager",
                        .time_ns = ns,
                        .low_ns = ns,
                        .high_ns = ns,
                        .samples = 8,
                        .origin = Origin::cached,
                        .build_s = 1};
  };
  view.baselines = TaskBaselines{.times = {eager(own * 1.5)}, .note = "kept"};
  EXPECT_FALSE(wants_profile(view));
  view.baselines = TaskBaselines{.times = {eager(own * 0.5)}, .note = "kept"};
  EXPECT_TRUE(wants_profile(view));
  view.settings.profile_slower = false;
  EXPECT_FALSE(wants_profile(view));
}

}  // namespace
}  // namespace cutegen::engine
