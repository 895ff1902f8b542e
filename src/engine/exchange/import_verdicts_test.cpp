// SPDX-License-Identifier: Apache-2.0
// Programs that are handed out, judged elsewhere and imported: which are added, which are refused,
// and which becomes the incumbent.
#include "engine/exchange/import_verdicts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "engine/exchange/hand_out.h"
#include "engine/record/view.h"
#include "engine/run/replay_run.h"
#include "engine/testing/toy_world.h"

namespace cutegen::engine {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using toy::numbered_program;
using toy::Recorder;
using toy::scratch_path;
using toy::timed;
using toy::ToyWorld;
using toy::untimed;

class Import : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(dir_);
    ASSERT_TRUE(write_file(dir_ / "relu.py", "import torch\n"));
    store_ = std::move(*store::Store::open(dir_ / "runs"));
    world_.programs = 3;
    world_.judge = [](int n, int) { return here(100.0 - n); };
    world_.compile = [](int) { return here(1); };
    settings_.file = dir_ / "relu.py";
    settings_.out = dir_ / "out";
    auto done = optimize_with(world_.parts(), {}, *store_, settings_, recorder_);
    ASSERT_TRUE(done) << done.error().text();
    world_.started = 0;
  }
  void TearDown() override {
    store_.reset();
    fs::remove_all(dir_);
  }
  static Verdict here(double ns) {
    Verdict v = timed(ns);
    v.build_ids = {"build"};
    return v;
  }
  // A verdict from an H200 for a program of the run.
  static Verdict there(int n, double ns) {
    Verdict v = here(ns);
    v.program_id = program_id(numbered_program(n));
    v.task_id = sha256("relu");
    v.device = "cuda:0", v.gpu = "NVIDIA H200", v.driver = "580.1";
    v.timing->origin = Origin::measured;
    v.timing->low_ns = ns * 0.99, v.timing->high_ns = ns * 1.01;
    v.timing->floor_ns = 20;
    return v;
  }
  void entry(const std::string& name, int n, const Verdict& verdict) {
    ASSERT_TRUE(save_program(numbered_program(n), dir_ / "in" / name));
    raw(name, {{"schema", "cutegen.entry.v1"},
               {"name", name},
               {"key", Json::object()},
               {"verdict", to_json(verdict)}});
  }
  void raw(const std::string& name, const Json& json) {
    fs::create_directories(dir_ / "out_there");
    ASSERT_TRUE(write_file(dir_ / "out_there" / (name + ".json"), dump_json(json)));
  }
  Imported import() {
    auto done =
        import_verdicts(world_.parts(), {}, *store_, "last",
                        {.programs = dir_ / "in", .verdicts = dir_ / "out_there"}, recorder_);
    EXPECT_TRUE(done) << done.error().text();
    return done ? *done : Imported();
  }
  RunView view() { return std::move(*view_run(*store_->read("last"))); }
  static std::string all_of(const Imported& done) {
    std::string out;
    for (const ImportRow& r : done.rows)
      out += r.entry + ":" + r.status() + ":" + r.candidate + (r.best ? "*" : "") + " ";
    return out;
  }

  fs::path dir_ = scratch_path("import");
  std::unique_ptr<store::Store> store_;
  ToyWorld world_;
  OptimizeSettings settings_;
  Recorder recorder_;
};

TEST_F(Import, WhatIsHandedOutComesBackAndTheFastestThereIsTheBest) {
  auto handed = hand_out(view(), dir_ / "in", 2);
  ASSERT_TRUE(handed) << handed.error().text();
  EXPECT_THAT(handed->candidates, ElementsAre("c3", "c2"));
  EXPECT_TRUE(fs::exists(dir_ / "in" / "relu.py"));
  entry("c3", 3, there(3, 60));
  entry("c2", 2, there(2, 50));
  const Imported done = import();
  EXPECT_EQ(all_of(done), "c3:correct:c4* c2:correct:c5* ");
  EXPECT_THAT(done.rows[0].detail, HasSubstr("the best program itself"));
  EXPECT_THAT(done.rows[1].detail, HasSubstr("16.7% faster"));
  EXPECT_EQ(world_.started, 0) << "the run has their build ids";
  RunView now = view();
  EXPECT_EQ(now.best, "c5");
  const RunStep* best = now.incumbent();
  EXPECT_EQ(best->candidate.parent, "c2");
  EXPECT_EQ(best->candidate.edit.origin, "imported");
  EXPECT_EQ(best->verdict->timing->origin, Origin::imported);
  EXPECT_EQ(best->imported->origin, Origin::measured);
  EXPECT_EQ(best->imported->device, "NVIDIA H200 (driver 580.1)");
  EXPECT_FALSE(now.over_first(*best)) << "another device's time";
  EXPECT_EQ(now.over_floor(*best), 2.5) << "the floor of that device";
  EXPECT_EQ(now.evaluations, 3);
  EXPECT_EQ(store_->list()->front().state, store::RunState::finished);
  EXPECT_EQ(store_->list()->front().best_ns, 50);
  auto verdict = parse_json(*read_file(dir_ / "out" / "verdict.json"), "verdict.json");
  EXPECT_EQ((*verdict)["timing"]["origin"], "imported");
  Recorder replayed;
  EXPECT_TRUE(replay_with(world_.parts(), {}, *store_, "last", replayed));
}

TEST_F(Import, TwiceAddsNothing) {
  entry("c3", 3, there(3, 60));
  import();
  const size_t events = store_->read("last")->size();
  const Imported again = import();
  EXPECT_EQ(all_of(again), "c3:known:c4 ");
  EXPECT_EQ(store_->read("last")->size(), events);
}

TEST_F(Import, FiguresOfAnotherDeviceAreNotComparedWithThoseOfHere) {
  entry("c1", 1, there(1, 5));
  const Imported done = import();
  EXPECT_EQ(all_of(done), "c1:correct:c4 ");
  EXPECT_THAT(done.rows[0].detail,
              HasSubstr("c3, the best program, has no figures from NVIDIA H200"));
  EXPECT_EQ(view().best, "c3");
  Verdict other_driver = there(3, 4);
  other_driver.driver = "570.2";
  entry("c3", 3, other_driver);
  EXPECT_EQ(all_of(import()), "c3:correct:c5* c1:known:c4 ");
}

TEST_F(Import, FiguresOfAnotherGpuModelDecideNothing) {
  Verdict v = there(3, 5);
  v.gpu = "NVIDIA H100 80GB HBM3";
  entry("c3", 3, v);
  const Imported done = import();
  EXPECT_EQ(all_of(done), "c3:correct:c4 ");
  EXPECT_THAT(done.rows[0].detail, HasSubstr("NVIDIA H100 80GB HBM3 (driver 580.1), but this run "
                                             "is for h200"));
  EXPECT_EQ(view().best, "c3");
}

TEST_F(Import, PolicyAndBuildHaveToAgree) {
  Verdict old = there(3, 5);
  old.policy_version = Verdict().policy_version + 1;
  entry("policy", 3, old);
  Verdict other = there(3, 5);
  other.build_ids = {"another"};
  entry("build", 3, other);
  entry("failed", 2, [] {
    Verdict v = untimed(Status::failed, "2 values are wrong there");
    v.program_id = program_id(numbered_program(2));
    v.task_id = sha256("relu"), v.gpu = "NVIDIA H200";
    return v;
  }());
  const Imported done = import();
  ASSERT_EQ(done.rows.size(), 3U);
  EXPECT_EQ(done.refused(), 0U);
  EXPECT_THAT(done.rows[0].detail, HasSubstr("the build ids differ"));
  EXPECT_THAT(done.rows[1].detail,
              HasSubstr(fmt::format("rules of version {}", Verdict().policy_version + 1)));
  EXPECT_THAT(done.rows[2].detail, HasSubstr("2 values are wrong there"));
  EXPECT_EQ(view().best, "c3");
  EXPECT_EQ(view().steps.size(), 6U);
}

TEST_F(Import, FiguresOfTheBestProgramByOtherRulesAreNotCompared) {
  world_.judge = [](int n, int) {
    Verdict v = here(100.0 - n);
    v.policy_version = Verdict().policy_version - 1;
    return v;
  };
  settings_.out = dir_ / "old";
  ASSERT_TRUE(optimize_with(world_.parts(), {}, *store_, settings_, recorder_));
  auto again = [](int n, double ns) {
    Verdict v = here(ns);
    v.program_id = program_id(numbered_program(n)), v.task_id = sha256("relu");
    return v;
  };
  entry("c1", 1, again(1, 5));
  Imported done = import();
  EXPECT_EQ(all_of(done), "c1:correct:c4 ");
  EXPECT_THAT(done.rows[0].detail,
              HasSubstr(fmt::format("c3, the best program, was judged by rules of version {}",
                                    Verdict().policy_version - 1)));
  EXPECT_EQ(view().best, "c3");
  entry("c3", 3, again(3, 200));
  done = import();
  EXPECT_THAT(all_of(done), HasSubstr("c3:correct:c5*"));
  EXPECT_EQ(view().best, "c5");
  entry("c2", 2, again(2, 100));
  EXPECT_THAT(all_of(import()), HasSubstr("c2:correct:c6*"));
}

TEST_F(Import, AProgramThatTheRunNeverSawIsBuiltHereFirst) {
  entry("c3", 3, there(3, 60));
  entry("mine", 9, there(9, 30));
  EXPECT_EQ(all_of(import()), "c3:correct:c4* mine:correct:c5* ");
  EXPECT_EQ(world_.started, 1);
  EXPECT_EQ(world_.compiled, 1);
  world_.compile = [](int) { return untimed(Status::failed, "error: no such thing"); };
  entry("worse", 8, there(8, 10));
  const Imported done = import();
  ASSERT_EQ(done.rows[1].entry, "worse");
  EXPECT_THAT(done.rows[1].detail, HasSubstr("cannot be built here: failed: error: no such thing"));
  EXPECT_EQ(view().best, "c5");
}

TEST_F(Import, BrokenEntriesAreNamedAndTheOthersGoIn) {
  entry("c3", 3, there(3, 60));
  entry("other_text", 1, there(2, 5));
  entry("no_text", 2, there(2, 5));
  fs::remove_all(dir_ / "in" / "no_text");
  entry("renamed", 2, there(2, 5));
  fs::rename(dir_ / "out_there" / "renamed.json", dir_ / "out_there" / "stranger.json");
  fs::rename(dir_ / "in" / "renamed", dir_ / "in" / "stranger");
  raw("error", {{"schema", "cutegen.entry.v1"},
                {"name", "error"},
                {"error", {{"message", "plan.json is broken"}}}});
  raw("schema", {{"schema", "other"}});
  ASSERT_TRUE(write_file(dir_ / "out_there" / "text.json", "{"));
  Verdict task = there(2, 5);
  task.task_id = "another";
  entry("task", 2, task);
  Verdict aborted = there(2, 5);
  aborted.status = Status::aborted;
  entry("aborted", 2, aborted);
  Verdict foreign = there(2, 5);
  foreign.program_id = "foreign:" + foreign.program_id;
  entry("foreign", 2, foreign);
  Verdict negative = there(2, -5);
  entry("negative", 2, negative);
  const Imported done = import();
  EXPECT_EQ(done.refused(), 10U);
  std::map<std::string, std::string> why;
  for (const ImportRow& r : done.rows) why[r.entry] = r.detail;
  EXPECT_THAT(why["other_text"], HasSubstr("is not the one that was judged"));
  EXPECT_THAT(why["no_text"], HasSubstr("files are missing"));
  EXPECT_THAT(why["stranger"], HasSubstr("another entry: renamed"));
  EXPECT_THAT(why["error"], HasSubstr("plan.json is broken"));
  EXPECT_THAT(why["schema"], HasSubstr("not a verdict of a batch"));
  EXPECT_THAT(why["task"], HasSubstr("another task"));
  EXPECT_THAT(why["foreign"], HasSubstr("not a kernel program"));
  EXPECT_THAT(why["aborted"], HasSubstr("says nothing about the program"));
  EXPECT_THAT(to_text(done), HasSubstr("1 of 11 entries imported"));
  EXPECT_EQ(view().steps.size(), 4U);
  EXPECT_EQ(to_json(done)["refused"], 10);
}

TEST_F(Import, ARunThatIsNotFinishedTakesNothing) {
  std::stop_source stop;
  world_.during_evaluation = [&](int n) {
    if (n == 2) stop.request_stop();
  };
  ASSERT_TRUE(
      optimize_with(world_.parts(), Context(stop.get_token()), *store_, settings_, recorder_));
  entry("c1", 1, there(1, 5));
  auto done = import_verdicts(world_.parts(), {}, *store_, "last",
                              {.programs = dir_ / "in", .verdicts = dir_ / "out_there"}, recorder_);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().text(), HasSubstr("cutegen resume"));
}

TEST_F(Import, FoldersThatAreNotThereAreNamed) {
  auto done = import_verdicts(world_.parts(), {}, *store_, "last",
                              {.programs = "in", .verdicts = dir_ / "none"}, recorder_);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().text(), HasSubstr("cannot be read"));
}

TEST_F(Import, NothingIsHandedOutOverOtherFilesOrOfAChangedTask) {
  fs::create_directories(dir_ / "full" / "thesis");
  auto handed = hand_out(view(), dir_ / "full", 8);
  ASSERT_FALSE(handed);
  EXPECT_THAT(handed.error().text(), HasSubstr("the folder is not empty"));
  ASSERT_TRUE(write_file(dir_ / "relu.py", "import torch  # changed\n"));
  handed = hand_out(view(), dir_ / "new", 8);
  ASSERT_FALSE(handed);
  EXPECT_THAT(handed.error().text(), HasSubstr("has changed"));
  RunView empty = view();
  empty.steps.clear();
  EXPECT_FALSE(hand_out(empty, dir_ / "newer", 8));
}

}  // namespace
}  // namespace cutegen::engine
