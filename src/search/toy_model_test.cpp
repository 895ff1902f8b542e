// SPDX-License-Identifier: Apache-2.0
// The toy model, and a comparison of the strategies on it.
#include "search/testing/toy_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "search/stark.h"

namespace cutegen::search {
namespace {

constexpr uint64_t kSeedStride = 1'000'003;

Plan toy_plan() {
  return parse_plan(R"json({
    "cutegen": 1, "sources": ["kernel.cu"], "symbols": {"n": "size(x)"},
    "steps": [{"id": "main", "kernel": "main_kernel", "grid": ["n"], "block": [256],
               "args": [{"tensor": "x"}, {"tensor": "out"}]}]
  })json")
      .value();
}

std::string text_of(const Json& context, const char* key) {
  return context.contains(key) ? context[key].get<std::string>() : std::string();
}

}  // namespace

ToyModel::ToyModel(uint64_t seed) : draws_(seed * kSeedStride) {
  for (size_t kind = 0; kind < kKinds; ++kind) {
    const double weight = -0.35 * std::log(1 - draws_.uniform());
    for (size_t level = 1; level < kLevels; ++level) {
      const double u = draws_.uniform();
      const double step = u < 0.3 ? 0 : u < 0.45 ? -0.5 * weight : weight * draws_.uniform();
      gain_[kind][level] = gain_[kind][level - 1] + step;
      dead_end_[kind][level] = draws_.uniform() < 0.06;
    }
    for (size_t other = 0; other < kind; ++other)
      harm_[kind][other] = draws_.uniform() < 0.2 ? 0.06 * draws_.uniform() : 0;
  }
}

double ToyModel::time_ns(const Levels& levels) const {
  double gain = 0;
  for (size_t kind = 0; kind < kKinds; ++kind) {
    gain += gain_[kind][levels[kind]];
    for (size_t other = 0; other < kind; ++other)
      gain -= harm_[kind][other] * double(levels[kind] * levels[other]);
  }
  return 1e5 * std::exp(-gain);
}

double ToyModel::optimum_ns() const {
  double best = INFINITY;
  size_t all = 1;
  for (size_t kind = 0; kind < kKinds; ++kind) all *= kLevels;
  for (size_t code = 0; code < all; ++code) {
    Levels levels{};
    size_t rest = code;
    for (size_t& level : levels) level = rest % kLevels, rest /= kLevels;
    best = std::min(best, time_ns(levels));
  }
  return best;
}

bool ToyModel::has_dead_end(const Levels& levels) const {
  for (size_t kind = 0; kind < kKinds; ++kind)
    if (dead_end_[kind][levels[kind]]) return true;
  return false;
}

ToyModel::Program ToyModel::maybe_fail(Program program, double probability) {
  program.failed = draws_.uniform() < probability;
  const bool near = draws_.uniform() < 0.6;
  program.nearness = near ? 0.6 + 0.4 * draws_.uniform() : 0.4 * draws_.uniform();
  return program;
}

ToyModel::Program ToyModel::first() {
  Program out;
  for (size_t& level : out.levels) {
    const double u = draws_.uniform();
    level = u < 0.55 ? 0 : u < 0.85 ? 1 : 2;
  }
  return maybe_fail(out, 0.45);
}

ToyModel::Program ToyModel::change(const Program& parent, size_t kind) {
  Program out = parent;
  const double u = draws_.uniform();
  size_t& level = out.levels[kind];
  if (u < 0.2)
    level = level == 0 ? 0 : level - 1;
  else
    level = std::min(level + (u < 0.8 ? 1 : 2), kLevels - 1);
  return maybe_fail(out, has_dead_end(parent.levels) ? 1 : u < 0.8 ? 0.35 : 0.5);
}

ToyModel::Program ToyModel::repair(const Program& failed) {
  return maybe_fail(failed, failed.nearness > 0.5 ? 0.3 : 0.85);
}

// The kind of change that the question asks for, or sometimes another one.
size_t ToyModel::kind_of(const Ask& ask) {
  const size_t own = draws_.below(kKinds);
  const bool obeys = draws_.uniform() < 0.9;
  const std::string wanted = text_of(ask.context, "family");
  for (size_t kind = 0; kind < kKinds && obeys && !wanted.empty(); ++kind)
    if (describe(Family(kind)) == wanted) return kind;
  return own;
}

Json ToyModel::answer(const Ask& ask) {
  if (ask.role == Role::planner || ask.role == Role::judge)
    return {{"outcome", "advised"}, {"advice", {std::to_string(kind_of(ask))}}};
  const auto parent = programs_.find(text_of(ask.context, "parent"));
  const std::string advice = text_of(ask.context, "advice");
  const size_t own = draws_.below(kKinds);
  const size_t kind = advice.empty() ? own : size_t(std::stoi(advice));
  Program made = parent == programs_.end() ? first()
                 : parent->second.failed   ? repair(parent->second)
                                           : change(parent->second, kind);
  Candidate c{.id = fmt::format("c{}", programs_.size() + 1)};
  static const Plan kPlan = toy_plan();
  c.program.plan = kPlan;
  for (size_t level : made.levels) c.program.sources["kernel.cu"] += fmt::format("// {}\n", level);
  // A failed program must differ from the correct one with the same levels.
  if (made.failed) c.program.sources["kernel.cu"] += fmt::format("// {}\n", made.nearness);
  programs_[c.id] = made;
  return {{"outcome", "proposed"}, {"candidate", to_json(c)}};
}

Verdict ToyModel::judge(const std::string& candidate) const {
  const Program& program = programs_.at(candidate);
  Verdict v;
  v.status = program.failed ? Status::failed : Status::correct;
  if (program.failed) {
    v.feedback.headline = "wrong values";
    const auto wrong = int64_t(1000 * (1 - program.nearness));
    v.feedback.mismatches.push_back({.elements = 1000, .wrong = wrong});
    return v;
  }
  v.timing.emplace();
  v.timing->time_ns = time_ns(program.levels);
  return v;
}

double ToyRun::regret(size_t n, double optimum_ns) const {
  if (best.empty() || n == 0) return INFINITY;
  return best[std::min(n, best.size()) - 1] / optimum_ns - 1;
}

ToyRun toy_run(ToyModel toy, const std::string& name, const StrategySettings& settings) {
  ToyRun run;
  auto made = make_strategy(*strategy_from(name), settings);
  if (!made) {
    run.end = made.error().text();
    ADD_FAILURE() << run.end;
    return run;
  }
  const std::unique_ptr<Strategy>& strategy = *made;
  auto feed = [&](EventType type, Json data) {
    data["clock_ms"] = int64_t(run.events.size());
    run.events.push_back(
        {.seq = int64_t(run.events.size()) + 1, .type = type, .version = 1, .data = data});
    strategy->apply(run.events.back());
  };
  feed(EventType::opened, Json::object());
  feed(EventType::task, {{"floor_ns", 0}, {"task", {{"workload", "softmax"}}}});
  double best = INFINITY;
  for (int guard = 0; guard < 3000; ++guard) {
    auto todo = strategy->next();
    if (todo.empty()) break;
    feed(event_type(todo[0]), event_data(todo[0]));
    if (auto* ask = std::get_if<Ask>(&todo[0])) {
      feed(EventType::answered, toy.answer(*ask));
    } else if (auto* e = std::get_if<Evaluate>(&todo[0])) {
      const Verdict verdict = toy.judge(e->candidate);
      if (verdict.timing) best = std::min(best, verdict.timing->time_ns);
      run.best.push_back(best);
      feed(EventType::evaluated, {{"candidate", e->candidate}, {"verdict", to_json(verdict)}});
    } else if (auto* f = std::get_if<Finish>(&todo[0])) {
      run.end = f->reason;
    }
  }
  return run;
}

namespace {

constexpr uint64_t kSeeds = 200, kFresh = 500'001;
constexpr size_t kEvaluations = 30;

StrategySettings toy_settings(AgentSettings agents, uint64_t seed) {
  StrategySettings s;
  s.budget.evaluations = kEvaluations;
  s.plateau = 1000;
  agents.rounds = 1000;
  agents.stark.seed = seed;
  s.agents = agents;
  return s;
}

double median_regret(const std::string& strategy, const AgentSettings& agents, uint64_t first) {
  std::vector<double> all;
  for (uint64_t seed = first; seed < first + kSeeds; ++seed) {
    const ToyModel toy(seed);
    all.push_back(
        toy_run(toy, strategy, toy_settings(agents, seed)).regret(kEvaluations, toy.optimum_ns()));
  }
  std::ranges::sort(all);
  return (all[kSeeds / 2 - 1] + all[kSeeds / 2]) / 2;
}

// The defaults of `stark` were tuned on the seeds from 1,000 to 1,599. This test uses other seeds.
TEST(ToyModel, TheDefaultOfStarkBeatsThePublishedFormAndBestOfN) {
  const AgentSettings improved;
  AgentSettings as_published;
  as_published.published = true;
  const double now = median_regret("stark", improved, kFresh);
  const double published = median_regret("stark", as_published, kFresh);
  const double best_of_n = median_regret("best-of-n", improved, kFresh);
  RecordProperty("stark", fmt::format("{:.3f}", now));
  RecordProperty("published", fmt::format("{:.3f}", published));
  RecordProperty("best_of_n", fmt::format("{:.3f}", best_of_n));
  EXPECT_LE(now, 0.8 * published);
  EXPECT_LE(now, 0.5 * best_of_n);
}

// A run with one part off differs from the default only in that part; the published form turns all
// parts off.
TEST(ToyModel, EachPartOfStarkIsSwitchedOffAlone) {
  struct Part {
    const char* name;
    bool StarkSettings::* on;
  };
  static constexpr Part kParts[] = {{"near misses", &StarkSettings::near_misses},
                                    {"equal programs", &StarkSettings::equal_programs},
                                    {"bounds", &StarkSettings::bounds},
                                    {"families", &StarkSettings::families},
                                    {"credit", &StarkSettings::credit},
                                    {"drift", &StarkSettings::drift}};
  auto journal = [](const AgentSettings& agents) {
    Json out = Json::array();
    for (uint64_t seed = 1; seed <= 5; ++seed)
      for (const Event& e : toy_run(ToyModel(seed), "stark", toy_settings(agents, seed)).events)
        out.push_back(e.data);
    return dump_json(out);
  };
  const AgentSettings all_on;
  const std::string whole = journal(all_on);
  for (const Part& part : kParts) {
    AgentSettings agents;
    agents.stark.*part.on = false;
    StarkSettings expected;
    expected.*part.on = false;
    expected.epsilon = stark_settings(AgentSettings()).epsilon;
    EXPECT_EQ(stark_settings(agents), expected) << part.name;
    EXPECT_NE(journal(agents), whole) << part.name;
  }
  AgentSettings one_start;
  one_start.stark.starts = 1;
  EXPECT_NE(journal(one_start), whole);
}

TEST(ToyModel, GivesTheSameRunForTheSameSeed) {
  auto run = [](uint64_t toy, uint64_t seed) {
    Json out = Json::array();
    for (const Event& e :
         toy_run(ToyModel(toy), "stark", toy_settings(AgentSettings(), seed)).events)
      out.push_back(e.data);
    return dump_json(out);
  };
  EXPECT_EQ(run(5, 1), run(5, 1));
  EXPECT_NE(run(5, 1), run(6, 1));
  EXPECT_NE(run(5, 1), run(5, 2));
}

TEST(ToyModel, HasFailuresNearMissesPlateausAndEqualPrograms) {
  int failures = 0, near = 0, ties = 0, equal = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<double> times;
    for (const Event& e :
         toy_run(ToyModel(seed), "stark", toy_settings(AgentSettings(), seed)).events) {
      if (e.type == EventType::asked && e.data["context"].contains("draw"))
        near += e.data["context"]["draw"].contains("near_miss");
      if (e.type != EventType::rejected) continue;
      const auto reason = e.data["reason"].get<std::string>();
      failures += reason.starts_with("failed");
      ties += reason.starts_with("a tie");
      equal += reason.starts_with("the same program");
    }
  }
  EXPECT_GT(failures, 20);
  EXPECT_GT(near, 20);
  EXPECT_GT(ties, 0);
  EXPECT_GT(equal, 0);
}

}  // namespace
}  // namespace cutegen::search
