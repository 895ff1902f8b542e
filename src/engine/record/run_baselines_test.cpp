// SPDX-License-Identifier: Apache-2.0
// Baselines of a run: cached and scaled ones, eager alone, or none; and their data in the journal.
#include "engine/record/run_baselines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/record/view.h"
#include "engine/report/run_text.h"
#include "engine/run/replay_run.h"
#include "engine/testing/toy_world.h"

namespace cutegen::engine {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using toy::numbered_program;
using toy::Recorder;
using toy::scratch_path;
using toy::timed;
using toy::ToyWorld;

BaselineTime took(const std::string& kind, double ns, Origin origin = Origin::measured) {
  return {.kind = kind,
          .time_ns = ns,
          .low_ns = ns,
          .high_ns = ns,
          .samples = 8,
          .origin = origin,
          .far = 0,
          .build_s = 1,
          .why = ""};
}

class RunBaselines : public testing::Test {
 protected:
  void SetUp() override {
    store_ = std::move(*store::Store::open(dir_));
    settings_.file = "/tasks/relu.py";
    settings_.evaluator.device = "cuda:0";
    world_.programs = 3;
    world_.baselines = [this]() -> Result<std::vector<BaselineTime>> {
      ++timed_;
      return std::vector<BaselineTime>{took("eager", 200)};
    };
    record_.measured = "2026-11-22T07:00:00Z";
    record_.controls = {{.name = "stream", .program_id = "p", .time_ns = 100}};
    record_.times = {took("eager", 300), took("eager-tf32", 50), took("compile", 194)};
  }
  void TearDown() override {
    store_.reset();
    fs::remove_all(dir_);
  }
  Parts parts() {
    Parts p = world_.parts();
    p.find_baselines = [this](const eval::OpenedTask&) { return kept_; };
    p.controls = [this](const Context&, eval::EvaluatorClient&,
                        const eval::OpenedTask&) -> Result<std::vector<ControlTime>> {
      if (now_ns_ == 0)
        return world_error("the control kernel 'stream' cannot be timed on this machine");
      return std::vector<ControlTime>{{.name = "stream", .program_id = "p", .time_ns = now_ns_}};
    };
    return p;
  }
  RunView run() {
    Recorder recorder;
    auto done = optimize_with(parts(), {}, *store_, settings_, recorder);
    EXPECT_TRUE(done) << done.error().text();
    events_ = *store_->read("last");
    auto view = view_run(events_);
    EXPECT_TRUE(view) << view.error().text();
    return std::move(*view);
  }
  int count(EventType type) const {
    return int(std::count_if(events_.begin(), events_.end(),
                             [&](const Event& e) { return e.type == type; }));
  }

  fs::path dir_ = scratch_path("baselines");
  std::unique_ptr<store::Store> store_;
  ToyWorld world_;
  OptimizeSettings settings_;
  BaselineRecord record_;
  std::optional<BaselineRecord> kept_;
  double now_ns_ = 102;
  int timed_ = 0;
  std::vector<Event> events_;
};

TEST_F(RunBaselines, KeptOnesAreCarriedOverAndGainedOn) {
  kept_ = record_;
  RunView view = run();
  ASSERT_TRUE(view.baselines);
  EXPECT_EQ(timed_, 0);
  EXPECT_NEAR(view.baselines->times[0].time_ns, 306, 1e-9);
  EXPECT_EQ(view.baselines->times[0].origin, Origin::cached);
  EXPECT_THAT(view.baselines->note, HasSubstr("scaled by 1.020"));
  auto gain = view.gain();
  ASSERT_TRUE(gain);
  EXPECT_EQ(gain->kind, "compile");  // eager-tf32 is faster, but in another math mode
  EXPECT_NEAR(gain->speedup, 194 * 1.02 / 97, 1e-9);
  ASSERT_EQ(count(EventType::compared), 1);
  const Event& compared = events_[events_.size() - 2];
  EXPECT_EQ(compared.type, EventType::compared);
  EXPECT_EQ(compared.data["against"].size(), 3U);
  EXPECT_EQ(compared.data["best"]["kind"], "compile");
}

TEST_F(RunBaselines, TheSourceKernelOfACudaTaskIsOneOfThem) {
  kept_ = record_;
  world_.opened.start = numbered_program(1);
  RunView view = run();
  EXPECT_EQ(view.steps.at(0).candidate.edit.origin, "source");
  EXPECT_EQ(view.steps.at(0).decision, Decision::accepted);
  EXPECT_EQ(view.baselines->times.back().kind, "source");
  EXPECT_STREQ(first_name(view), "the source kernel");
  ASSERT_TRUE(view.gain());
  EXPECT_EQ(view.gain()->kind, "source");  // 99 ns; compile takes 198
  EXPECT_NEAR(view.gain()->speedup, 99.0 / 97, 1e-9);
  EXPECT_EQ(events_[events_.size() - 2].data["against"].size(), 4U);
  Recorder recorder;
  EXPECT_TRUE(replay_with(parts(), {}, *store_, "last", recorder));
}

TEST_F(RunBaselines, EagerIsTimedWhereNoneAreKept) {
  RunView view = run();
  EXPECT_EQ(timed_, 1);
  EXPECT_EQ(view.baselines->times.size(), 1U);
  EXPECT_THAT(view.baselines->note, HasSubstr("there are no cached baselines"));
  EXPECT_NEAR(view.gain()->speedup, 200.0 / 97, 1e-9);
}

TEST_F(RunBaselines, ATaskHeldToFp32InItsConvolutionsHasTheStrictRowToo) {
  run();
  EXPECT_EQ(world_.baselines_asked.size(), 1U);
  Node conv;
  conv.id = "c", conv.op = "aten.convolution.default",
  conv.outputs = {{.name = "c", .dtype = DType::f32, .shape = {4}}};
  Task& task = world_.opened.task;
  task.graph.nodes.push_back(conv);
  world_.baselines = [&task]() -> Result<std::vector<BaselineTime>> {
    std::vector<BaselineTime> out{took("eager", 100), took("eager-fp32", 200)};
    for (BaselineTime& t : out) t.accuracy = class_of(baseline_kind(t.kind), task);
    out[0].accuracy.passes = false, out[0].accuracy.why = "every element";
    return out;
  };
  RunView view = run();
  ASSERT_EQ(world_.baselines_asked.size(), 2U);
  EXPECT_EQ(world_.baselines_asked[1].kind, BaselineKind::eager_fp32);
  ASSERT_TRUE(view.gain());
  EXPECT_EQ(view.gain()->kind, "eager-fp32") << "eager is faster, and fails the programs' gate";
  EXPECT_THAT(baselines_text(view),
              HasSubstr("eager 100 ns (measured, not compared: tf32 convolutions: fails this"));
  task.tf32_convolutions = true;
  run();
  EXPECT_EQ(world_.baselines_asked.size(), 1U) << "TF32 convolutions are in the mode";
}

TEST_F(RunBaselines, KeptOnesThatDoNotHoldAnyMoreAreNotUsed) {
  kept_ = record_;
  now_ns_ = 120;
  RunView view = run();
  EXPECT_EQ(timed_, 1);
  EXPECT_THAT(view.baselines->note, HasSubstr("takes 20.0% longer than then"));
  EXPECT_EQ(view.baselines->times[0].time_ns, 200);
  now_ns_ = 0;
  EXPECT_THAT(run().baselines->note, HasSubstr("cannot be timed on this machine"));
}

TEST_F(RunBaselines, WithoutAnyTheSearchGoesOn) {
  world_.baselines = [] { return world_error("no memory"); };
  RunView view = run();
  ASSERT_TRUE(view.baselines);
  EXPECT_TRUE(view.baselines->times.empty());
  EXPECT_THAT(view.baselines->note, HasSubstr("eager could not be timed: no memory"));
  EXPECT_FALSE(view.gain());
  EXPECT_EQ(view.best, "c3");
  EXPECT_EQ(count(EventType::compared), 0);
}

TEST_F(RunBaselines, NobodyAsksForThemOnASimulatorOrWhenTold) {
  settings_.evaluator.device = "sim:h200";
  EXPECT_FALSE(run().baselines);
  settings_.evaluator.device = "cuda:0";
  settings_.baselines = false;
  EXPECT_FALSE(run().baselines);
  EXPECT_EQ(timed_, 0);
  EXPECT_FALSE(view_run(events_)->settings.baselines);
}

TEST_F(RunBaselines, AResumedRunKeepsThemAndAReplayAgrees) {
  std::stop_source stop;
  world_.during_evaluation = [&](int n) {
    if (n == 2) stop.request_stop();
  };
  Recorder recorder;
  ASSERT_TRUE(optimize_with(parts(), Context(stop.get_token()), *store_, settings_, recorder));
  world_.during_evaluation = [](int) {};
  ASSERT_TRUE(resume_with(parts(), {}, *store_, "last", recorder));
  events_ = *store_->read("last");
  EXPECT_EQ(count(EventType::baselines), 1);
  EXPECT_EQ(timed_, 1);
  EXPECT_EQ(count(EventType::compared), 1);
  auto replayed = replay_with(parts(), {}, *store_, "last", recorder);
  EXPECT_TRUE(replayed) << replayed.error().text();
}

}  // namespace
}  // namespace cutegen::engine
