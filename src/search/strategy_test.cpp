// SPDX-License-Identifier: Apache-2.0
// Tests the strategy in toy worlds: a landscape of times, failures, and a flaky evaluator.
#include "search/strategy.h"
#include "search/testing/test_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace cutegen::search {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Verdict bad(Status status, const std::string& headline) {
  Verdict v;
  v.status = status;
  v.feedback.headline = headline;
  return v;
}

// Answers with c1, c2, ... `judge` gives the verdict of the n-th evaluation attempt of a candidate.
struct World {
  int candidates = 1000;  // then "nothing left to try"
  std::function<Verdict(int number, int attempt)> judge;
  double floor_ns = 0;
  Json bounds = Json::object();  // additional fields of the `task` event
  int64_t ms_per_event = 10;

  std::vector<Event> events = {};
  std::vector<EventType> actions = {};
  int64_t clock = 0;

  void feed(Strategy& s, EventType type, Json data) {
    data["clock_ms"] = clock += ms_per_event;
    Event event{.seq = int64_t(events.size()) + 1, .type = type, .version = 1, .data = data};
    events.push_back(event);
    s.apply(event);
  }

  // Runs to the end and returns the Finish.
  Finish run(const StrategySettings& settings) {
    auto s = std::move(*make_strategy(StrategyKind::cutegen, settings));
    int proposed = 0, attempt = 0;
    feed(*s, EventType::opened, Json::object());
    Json task = bounds;
    task["floor_ns"] = floor_ns;
    feed(*s, EventType::task, task);
    for (int guard = 0; guard < 10000; ++guard) {
      auto todo = s->next();
      if (todo.size() != 1) break;
      EXPECT_TRUE(s->next().empty()) << "an action was given twice";
      const Action& action = todo.front();
      actions.push_back(event_type(action));
      feed(*s, event_type(action), event_data(action));
      if (std::holds_alternative<Ask>(action)) {
        attempt = 0;
        if (proposed == candidates)
          feed(*s, EventType::answered,
               {{"outcome", "exhausted"}, {"reason", "nothing left to try"}});
        else
          feed(
              *s, EventType::answered,
              {{"outcome", "proposed"}, {"candidate", {{"id", "c" + std::to_string(++proposed)}}}});
      } else if (auto* e = std::get_if<Evaluate>(&action)) {
        Verdict v = judge(proposed, attempt++);
        feed(*s, EventType::evaluated, {{"candidate", e->candidate}, {"verdict", to_json(v)}});
      } else if (auto* f = std::get_if<Finish>(&action)) {
        EXPECT_TRUE(s->next().empty());
        return *f;
      }
    }
    ADD_FAILURE() << "the strategy did not finish";
    return {};
  }
  int64_t count(EventType type) const { return std::count(actions.begin(), actions.end(), type); }
  std::vector<std::string> reasons(EventType type) const {
    std::vector<std::string> out;
    for (const Event& e : events)
      if (e.type == type) out.push_back(e.data["reason"].get<std::string>());
    return out;
  }
};

TEST(Cutegen, ClimbsToTheBestAndStopsOnAPlateau) {
  // The times of c1, c2, ...: one gain below 1%, one failure, then nothing better.
  std::vector<double> times{100, 80, 79.9, 95, 60};
  World world{.judge = [&](int n, int) {
    if (n == 4) return bad(Status::failed, "7 of 64 values are wrong");
    return timed(n <= 5 ? times[size_t(n) - 1] : 61);
  }};
  Finish end = world.run({.plateau = 3});
  EXPECT_EQ(end.reason, "plateau");
  EXPECT_EQ(end.best, "c5");
  EXPECT_EQ(world.count(EventType::accepted), 3);
  EXPECT_EQ(world.count(EventType::asked), 8);
  EXPECT_THAT(world.reasons(EventType::rejected)[0], StartsWith("only 0.1"));
  EXPECT_EQ(world.reasons(EventType::rejected)[1], "failed: 7 of 64 values are wrong");
  EXPECT_THAT(world.reasons(EventType::rejected)[2], HasSubstr("slower"));
}

// The ratio of alternating runs decides, even against separately measured times.
TEST(Cutegen, APairedRatioDecidesOverTimesOfDifferentMoments) {
  World w;
  w.candidates = 3;
  w.judge = [](int number, int) {
    Verdict v = timed(number == 1 ? 100 : number == 2 ? 90 : 104);
    if (number == 2)
      v.timing->paired = {{.against = "incumbent",
                           .program_id = "p",
                           .speedup = 0.99,
                           .low = 0.98,
                           .high = 1.0,
                           .other_ns = 89,
                           .pairs = 32,
                           .stopped = "slower"}};
    if (number == 3)
      v.timing->paired = {{.against = "incumbent",
                           .program_id = "p",
                           .speedup = 1.05,
                           .low = 1.04,
                           .high = 1.06,
                           .other_ns = 109,
                           .pairs = 32,
                           .stopped = "precise"}};
    return v;
  };
  EXPECT_EQ(w.run({}).best, "c3");
  EXPECT_EQ(w.reasons(EventType::rejected)[0], "1.0% slower than the best");
  EXPECT_EQ(w.reasons(EventType::accepted)[1], "4.8% faster (109 ns -> 104 ns)");
}

Json bounds(const char* bound_by, double reachable_ns, double roofline_ns) {
  return {
      {"floor_bound_by", bound_by}, {"reachable_ns", reachable_ns}, {"roofline_ns", roofline_ns}};
}

TEST(Cutegen, StopsAtTheFloor) {
  World world{.judge = [](int n, int) { return timed(n == 1 ? 50 : 10); }, .floor_ns = 10};
  Finish end = world.run({});
  EXPECT_EQ(end.reason, "at the floor");
  EXPECT_EQ(end.best, "c2");
  World above{.judge = [](int n, int) { return timed(n == 1 ? 50 : 10.4); }, .floor_ns = 10};
  EXPECT_EQ(above.run({.plateau = 2}).reason, "plateau");
}

TEST(Cutegen, StopsNearTheReachableBoundIfMemoryBinds) {
  auto near = [](int n, int) { return timed(n == 1 ? 50 : 12.3); };
  World world{.judge = near, .floor_ns = 10, .bounds = bounds("memory", 12, 10)};
  Finish end = world.run({});
  EXPECT_EQ(end.reason, "within 3% of the reachable bound");
  EXPECT_EQ(end.best, "c2");
  EXPECT_EQ(world.count(EventType::evaluation_started), 2);
  World far{.judge = [](int n, int) { return timed(n == 1 ? 50 : 12.4); },
            .floor_ns = 10,
            .bounds = bounds("memory", 12, 10)};
  EXPECT_EQ(far.run({.plateau = 2}).reason, "plateau");
  World compute{.judge = near, .floor_ns = 10, .bounds = bounds("compute", 12, 12)};
  EXPECT_EQ(compute.run({.plateau = 2}).reason, "plateau");
}

// The floor of a launch-bound task is the shortest launch, which no measured program reaches.
TEST(Cutegen, StopsNearTheTimeOfALaunchIfTheLaunchBinds) {
  auto search = [](double best_ns, const StrategySettings& settings) {
    World world{.judge = [&](int n, int) { return timed(n == 1 ? 5000 : best_ns); },
                .floor_ns = 1000,
                .bounds = bounds("launch", 2100, 1000)};
    return world.run(settings);
  };
  const Finish end = search(2150, {.plateau = 2});
  EXPECT_EQ(end.reason, "within 3% of the usual time of a launch and a copy");
  EXPECT_EQ(end.best, "c2");
  EXPECT_EQ(search(2200, {.plateau = 2}).reason, "plateau");
  EXPECT_EQ(search(1000, {.plateau = 2}).reason, "at the floor");
  EXPECT_EQ(search(2150, {.plateau = 2, .end_rules = 1}).reason, "plateau") << "an old journal";
}

TEST(Cutegen, TheRooflineEndsNoSearch) {
  World world{.judge = [](int n, int) { return timed(n < 4 ? 50 / n : 15); },
              .floor_ns = 1,
              .bounds = bounds("compute", 2, 40)};
  Finish end = world.run({.plateau = 3});
  EXPECT_EQ(end.reason, "plateau");
  EXPECT_EQ(end.best, "c4") << "found far below the roofline of 40 ns";
}

TEST(Cutegen, SettingsOfOldJournalsKeepTheirRule) {
  Json old = to_json(StrategySettings{});
  old.erase("reach_ratio");
  old.erase("end_rules");
  old["floor_ratio"] = 1.05;
  auto settings = read_json<search::StrategySettings>(old);
  ASSERT_TRUE(settings) << settings.error().text();
  EXPECT_EQ(settings->reach_ratio, 0);
  EXPECT_EQ(settings->end_rules, 1);
  World world{.judge = [](int n, int) { return timed(n == 1 ? 50 : 10.4); },
              .floor_ns = 10,
              .bounds = {{"floor_bound_by", "compute"}}};
  EXPECT_EQ(world.run(*settings).reason, "at the floor");
  auto now = read_json<search::StrategySettings>(to_json(StrategySettings{}));
  ASSERT_TRUE(now);
  EXPECT_EQ(now->reach_ratio, 1.03);
  EXPECT_EQ(now->floor_ratio, 1);
  EXPECT_EQ(now->end_rules, 2);
}

TEST(Cutegen, QuestionsHoldTheBounds) {
  World world{.judge = [](int, int) { return timed(50); },
              .floor_ns = 10,
              .bounds = bounds("compute", 12, 40)};
  world.run({.plateau = 1});
  for (const Event& e : world.events) {
    if (e.type != EventType::asked) continue;
    EXPECT_EQ(e.data["context"]["floor_ns"], 10);
    EXPECT_EQ(e.data["context"]["reachable_ns"], 12);
    EXPECT_EQ(e.data["context"]["roofline_ns"], 40);
  }
}

TEST(Cutegen, RepairsTheFirstAnswerUpToALimit) {
  World lucky{.judge = [](int n, int) { return n < 4 ? bad(Status::failed, "wrong") : timed(10); }};
  EXPECT_EQ(lucky.run({.plateau = 1}).best, "c4");

  World hopeless{.judge = [](int, int) { return bad(Status::failed, "wrong"); }};
  Finish end = hopeless.run({.repairs = 2});
  EXPECT_THAT(end.reason, StartsWith("nothing correct after 3 candidates"));
  EXPECT_EQ(end.best, "");
  EXPECT_EQ(hopeless.count(EventType::accepted), 0);
}

TEST(Cutegen, TellsTheProposerWhatIsWanted) {
  World world{
      .judge = [](int n, int) { return n == 1 ? bad(Status::failed, "wrong tail") : timed(10); }};
  world.run({.plateau = 1});
  std::vector<Json> contexts;
  for (const Event& e : world.events)
    if (e.type == EventType::asked) contexts.push_back(e.data["context"]);
  ASSERT_EQ(contexts.size(), 3u);
  EXPECT_EQ(contexts[0], Json({{"purpose", "first"}}));
  EXPECT_EQ(contexts[1], Json({{"purpose", "repair"}, {"headline", "wrong tail"}}));
  EXPECT_EQ(contexts[2]["purpose"], "improve");
  EXPECT_EQ(contexts[2]["parent"], "c2");
}

TEST(Cutegen, AnAbortedVerdictIsRetriedAndNotHeldAgainstTheCandidate) {
  World world{.judge = [](int n, int attempt) {
    if (n == 2 && attempt < 2) return bad(Status::aborted, "runner died");
    return timed(n == 1 ? 100 : n == 2 ? 50 : 60);
  }};
  Finish end = world.run({.plateau = 2});
  EXPECT_EQ(end.best, "c2");
  EXPECT_EQ(world.count(EventType::evaluation_started), 4 + 2);

  // A candidate that stays aborted is set aside and does not count towards the plateau.
  World stuck{.judge = [](int n, int) {
    if (n == 2) return bad(Status::aborted, "runner died");
    return timed(n == 1 ? 100 : 120);
  }};
  EXPECT_EQ(stuck.run({.plateau = 2}).reason, "plateau");
  EXPECT_EQ(stuck.count(EventType::asked), 4);  // c1; c2 is set aside; c3 and c4 form the plateau
  EXPECT_THAT(stuck.reasons(EventType::rejected)[0], StartsWith("set aside: aborted 3 times"));
}

TEST(Cutegen, StopsWhenTheMachineryKeepsFailing) {
  World world{.judge = [](int, int) { return bad(Status::aborted, "no memory"); }};
  Finish end = world.run({.retries = 1});
  EXPECT_EQ(end.reason, "the evaluator keeps failing: no memory");
  EXPECT_EQ(world.count(EventType::evaluation_started), 4);
}

TEST(Cutegen, UnsupportedAndRejectedCandidatesAreReplaced) {
  World world{.judge = [](int n, int) {
    if (n == 1) return bad(Status::unsupported, "opcode");
    if (n == 2) return bad(Status::rejected, "writes outside");
    return timed(10);
  }};
  EXPECT_EQ(world.run({.plateau = 1}).best, "c3");
  EXPECT_THAT(world.reasons(EventType::rejected),
              ElementsAre("unsupported: opcode", "rejected: writes outside", testing::_));
}

TEST(Cutegen, KeepsToItsBudgets) {
  auto faster = [](int n, int) { return timed(1000.0 / n); };
  World few{.judge = faster};
  EXPECT_EQ(few.run({.budget = {.evaluations = 3}}).reason, "budget: evaluations");
  EXPECT_EQ(few.count(EventType::evaluation_started), 3);
  World slow{.judge = faster, .ms_per_event = 10000};
  EXPECT_EQ(slow.run({.budget = {.minutes = 2}}).reason, "budget: minutes");
  EXPECT_LT(slow.count(EventType::evaluation_started), 4);
}

TEST(Cutegen, EndsWhenTheProposerHasNothingLeft) {
  World world{.candidates = 2, .judge = [](int n, int) { return timed(100 - n * 10); }};
  Finish end = world.run({});
  EXPECT_EQ(end.reason, "nothing left to try");
  EXPECT_EQ(end.best, "c2");
  World none{.candidates = 0};
  EXPECT_EQ(none.run({}).best, "");
}

TEST(Cutegen, ACorrectCandidateWithoutATimeIsKeptUntilOneHasATime) {
  World world{.judge = [](int n, int) {
    Verdict v = timed(10);
    if (n == 1 || n == 3) v.timing.reset();
    return v;
  }};
  Finish end = world.run({.plateau = 1});
  EXPECT_EQ(end.best, "c2");
  EXPECT_EQ(world.reasons(EventType::rejected)[0], "correct, but no time is known");
}

// A fresh strategy that gets the first k events of a run takes the next recorded action.
TEST(Cutegen, EveryPrefixOfARunLeadsToTheSameNextAction) {
  World world{.candidates = 9, .judge = [](int n, int attempt) {
                if (n == 3 && attempt == 0) return bad(Status::aborted, "lost");
                if (n == 2) return bad(Status::failed, "wrong");
                return timed(100 - 5.0 * n);
              }};
  world.run({.budget = {.evaluations = 7}});
  for (size_t k = 2; k < world.events.size(); ++k) {
    auto s = std::move(*make_strategy(StrategyKind::cutegen, {.budget = {.evaluations = 7}}));
    for (size_t i = 0; i < k; ++i) {
      (void)s->next();
      s->apply(world.events[i]);
    }
    s->apply({.seq = 0, .type = EventType::resumed, .version = 1, .data = Json::object()});
    // The open action is the last recorded one that no event completed, or else the next recorded
    // one.
    const Event& last = world.events[k - 1];
    bool unfinished = last.type == EventType::asked || last.type == EventType::evaluation_started;
    const Event& expected = unfinished ? last : world.events[k];
    if (last.type == EventType::finished) continue;
    auto actions = s->next();
    ASSERT_EQ(actions.size(), 1u) << k;
    EXPECT_EQ(event_type(actions[0]), expected.type) << k;
    Json data = expected.data;
    data.erase("clock_ms");
    EXPECT_EQ(event_data(actions[0]), data) << k;
  }
}

TEST(Cutegen, EventsThatDoNotFitAreIgnored) {
  auto s = std::move(*make_strategy(StrategyKind::cutegen, {}));
  EXPECT_TRUE(s->next().empty());
  s->apply({.seq = 1, .type = EventType::evaluated, .version = 1, .data = {{"candidate", "c9"}}});
  s->apply({.seq = 2, .type = EventType::task, .version = 1, .data = Json::array()});
  EXPECT_TRUE(s->next().empty());
  s->apply({.seq = 3, .type = EventType::task, .version = 1, .data = Json::object()});
  s->apply({.seq = 4, .type = EventType::accepted, .version = 1, .data = {{"candidate", "c9"}}});
  ASSERT_EQ(s->next().size(), 1u);
}

TEST(Actions, SurviveTheRoundTripThroughJson) {
  for (const Action& action :
       {Action(Ask{.role = Role::coder, .context = {{"purpose", "first"}}}),
        Action(Evaluate{.candidate = "c1", .up_to = Rung::profile, .profile = true}),
        Action(Accept{.candidate = "c1", .reason = "first"}),
        Action(Reject{.candidate = "c2", .reason = "slower"}),
        Action(Finish{.reason = "plateau", .best = "c1"})}) {
    auto back = read_json<Action>(to_json(action));
    ASSERT_TRUE(back) << back.error().text();
    EXPECT_EQ(back->index(), action.index());
    EXPECT_EQ(to_json(*back), to_json(action));
    EXPECT_THAT(describe(action), StartsWith(to_string(event_type(action))));
  }
}

TEST(Actions, BadJsonIsRefusedWithItsPlace) {
  EXPECT_THAT(read_json<search::Action>({{"action", "dream"}}).error().text(),
              HasSubstr("'dream'"));
  EXPECT_THAT(read_json<search::Action>({{"action", "accept"}, {"candidate", 3}}).error().text(),
              HasSubstr("action/candidate"));
  EXPECT_FALSE(read_json<search::Action>(
      {{"action", "evaluate"}, {"candidate", "c1"}, {"up_to", "moon"}, {"profile", false}}));
  EXPECT_FALSE(read_json<search::Action>(
      {{"action", "finish"}, {"reason", "x"}, {"best", ""}, {"surprise", 1}}));
}

TEST(Settings, RoundTripAndErrors) {
  StrategySettings s{.budget = {.evaluations = 7, .minutes = 1.5}, .plateau = 3};
  auto back = read_json<search::StrategySettings>(to_json(s));
  ASSERT_TRUE(back);
  EXPECT_EQ(to_json(*back), to_json(s));
  Json broken = to_json(s);
  broken["retries"] = -1;
  EXPECT_FALSE(read_json<search::StrategySettings>(broken));
  EXPECT_THAT(strategy_from("magic").error().text(),
              HasSubstr("choose cutegen, cudaforge, stark, astra, astra-single or best-of-n"));
  EXPECT_FALSE(make_strategy(StrategyKind::cutegen, {.budget = {.evaluations = 0}}));
  EXPECT_FALSE(make_strategy(StrategyKind::cutegen, {.budget = {.minutes = -1}}));
}

}  // namespace
}  // namespace cutegen::search
