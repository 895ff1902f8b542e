// SPDX-License-Identifier: Apache-2.0
// Golden files hold the JSON of every event type, because old journals must stay readable.
// After a deliberate change: CUTEGEN_UPDATE_GOLDEN=1 engine_test, and raise the type's version.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/file.h"
#include "engine/exchange/import_verdicts.h"
#include "engine/report/run_text.h"
#include "engine/testing/toy_world.h"
#include "store/events.h"

namespace cutegen::engine {
namespace {

namespace fs = std::filesystem;
using toy::numbered_program;
using toy::Recorder;
using toy::scratch_path;
using toy::timed;
using toy::ToyWorld;
using toy::untimed;

// A run that has every type of event, with a failure, an abort and an interruption.
std::vector<Event> eventful_run() {
  fs::path dir = scratch_path("golden");
  std::vector<Event> events;
  {
    auto store = std::move(*store::Store::open(dir));
    ToyWorld world{.judge =
                       [](int n, int) {
                         return n == 1 ? untimed(Status::failed, "2 of 64 values are wrong")
                                       : timed(100.0 - n);
                       },
                   .programs = 3};
    std::stop_source stop;
    world.during_evaluation = [&](int n) {
      if (n == 2) stop.request_stop();
    };
    OptimizeSettings settings;
    settings.file = "/tasks/relu.py";
    settings.resolved_config = Json{{"device", {{"value", "sim:h200"}, {"source", "default"}}}};
    Recorder recorder;
    auto first =
        optimize_with(world.parts(), Context(stop.get_token()), *store, settings, recorder);
    EXPECT_TRUE(first) << first.error().text();
    world.during_evaluation = [](int) {};
    EXPECT_TRUE(resume_with(world.parts(), {}, *store, "last", recorder));
    events = *store->read("last");
  }
  fs::remove_all(dir);
  for (Event& e : events)
    if (e.type == EventType::opened) {
      e.data["run"]["id"] = "20260101-abcdef";
      e.data["run"]["created"] = "2026-01-01T00:00:00Z";
    }
  return events;
}

fs::path golden_file() {
  return fs::path(CUTEGEN_SOURCE_DIR) / "tests" / "golden" / "engine" / "journal.v1.json";
}

TEST(EventGolden, EveryTypeKeepsItsForm) {
  std::set<std::string> types;
  Json journal = Json::array();
  for (const Event& event : eventful_run()) {
    types.insert(to_string(event.type));
    journal.push_back(to_json(event));
  }
  std::string now = dump_json(journal, 1) + "\n";
  if (std::getenv("CUTEGEN_UPDATE_GOLDEN")) {
    ASSERT_TRUE(write_file(golden_file(), now));
  }
  auto golden = read_file(golden_file());
  ASSERT_TRUE(golden) << golden.error().text();
  EXPECT_EQ(now, *golden);
  EXPECT_EQ(types, (std::set<std::string>{"opened", "task", "asked", "answered",
                                          "evaluation_started", "evaluated", "accepted", "rejected",
                                          "interrupted", "resumed", "finished"}));
}

// The end of a run on a GPU and the imports after it.
std::vector<Event> ended_run(const fs::path& dir) {
  fs::create_directories(dir);
  auto store = std::move(*store::Store::open(dir / "runs"));
  ToyWorld world{.judge =
                     [](int, int attempt) {
                       Verdict v = timed(97);
                       v.build_ids = {"build"};
                       if (attempt == 1)
                         v.profile = Profile{.shape = "official",
                                             .source = CounterSource::from("simulator"),
                                             .note = "no ncu"};
                       return v;
                     },
                 .programs = 1};
  world.opened.gpu = "h200", world.opened.driver = "580.1";
  OptimizeSettings settings;
  settings.file = "/tasks/relu.py";
  settings.evaluator.device = "cuda:0";
  settings.profile_best = true, settings.certify_minutes = 3;
  Recorder recorder;
  EXPECT_TRUE(optimize_with(world.parts(), {}, *store, settings, recorder));
  Verdict there = timed(50);
  there.program_id = program_id(numbered_program(1)), there.task_id = sha256("relu");
  there.build_ids = {"build"}, there.gpu = "NVIDIA H200", there.driver = "580.1";
  EXPECT_TRUE(save_program(numbered_program(1), dir / "in" / "c1"));
  fs::create_directories(dir / "out");
  EXPECT_TRUE(write_file(
      dir / "out" / "c1.json",
      dump_json({{"schema", "cutegen.entry.v1"}, {"name", "c1"}, {"verdict", to_json(there)}})));
  EXPECT_TRUE(
      import_verdicts(world.parts(), {}, *store, "last", {dir / "in", dir / "out"}, recorder));
  return *store->read("last");
}

TEST(EventGolden, TheEndOfARunKeepsItsForm) {
  const fs::path dir = scratch_path("golden-end");
  Json events = Json::array();
  for (const Event& event : ended_run(dir))
    if (event.type == EventType::profiled || event.type == EventType::certifying ||
        event.type == EventType::certified || event.type == EventType::imported)
      events.push_back(to_json(event));
  fs::remove_all(dir);
  EXPECT_EQ(events.size(), 4U);
  const fs::path file = golden_file().parent_path() / "journal_end.v1.json";
  const std::string now = dump_json(events, 1) + "\n";
  if (std::getenv("CUTEGEN_UPDATE_GOLDEN")) {
    ASSERT_TRUE(write_file(file, now));
  }
  EXPECT_EQ(read_file(file).value_or("no file"), now);
}

// A journal from before reachable bounds: no bound, no roofline, another rule for the end.
std::vector<Event> old_events() {
  auto journal = parse_json(*read_file(golden_file().parent_path() / "journal_policy2.v1.json"),
                            "journal_policy2");
  std::vector<Event> events;
  for (const Json& json : journal.value_or(Json::array())) {
    auto event = read_json<Event>(json);
    EXPECT_TRUE(event) << event.error().text();
    auto current = store::upcast(*event, store::journal_upcasts());
    EXPECT_TRUE(current) << current.error().text();
    if (current) events.push_back(*current);
  }
  return events;
}

// A later version's strategy may decide differently; the record must still be readable.
TEST(EventGolden, AnOldJournalIsStillRead) {
  auto view = view_run(old_events());
  ASSERT_TRUE(view) << view.error().text();
  EXPECT_EQ(view->task->task.name, "relu");
  EXPECT_EQ(view->task->floor_ns, 10);
  EXPECT_EQ(view->task->reachable_ns, 0);
  EXPECT_EQ(view->settings.search.floor_ratio, 1.05);
  EXPECT_EQ(view->settings.search.reach_ratio, 0);
  EXPECT_EQ(view->steps.size(), 3u);
  EXPECT_EQ(view->best, "c3");
  EXPECT_EQ(view->resumes, 1);
  EXPECT_EQ(view->finished, "nothing left to try");
  EXPECT_EQ(task_text(*view).find("no kernel is faster"), std::string::npos);
}

// Resumes the old journal without its end.
Result<RunResult> resumed(std::vector<Event> events) {
  const fs::path dir = scratch_path("golden-old");
  auto store = std::move(*store::Store::open(dir));
  {
    store::RunInfo info;
    info.id = "20260101-abcdef", info.strategy = "cutegen", info.model = "builtin";
    info.device = "sim:h200";
    auto run = store->create(info);
    EXPECT_TRUE(run) << run.error().text();
    for (const Event& event : events) {
      if (event.type == EventType::finished) break;
      EXPECT_TRUE((*run)->append(event.type, event.data));
    }
  }
  ToyWorld world{.judge = [](int n, int) { return timed(100.0 - n); }, .programs = 3};
  Recorder recorder;
  auto end = resume_with(world.parts(), {}, *store, "last", recorder);
  store.reset();
  fs::remove_all(dir);
  return end;
}

TEST(EventGolden, AnOldJournalIsResumedOnlyWithVerdictsOfTheseRules) {
  std::vector<Event> events = old_events();
  auto refused = resumed(events);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("judged by rules of version 2"), std::string::npos);
  for (Event& event : events)
    if (event.type == EventType::evaluated)
      event.data["verdict"]["policy_version"] = Verdict().policy_version;
  auto end = resumed(events);
  ASSERT_TRUE(end) << end.error().text();
  EXPECT_EQ(end->reason, "nothing left to try");
  EXPECT_EQ(end->best->id, "c3");
}

}  // namespace
}  // namespace cutegen::engine
