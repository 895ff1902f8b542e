// SPDX-License-Identifier: Apache-2.0
#include "search/strategy.h"

#include <algorithm>

#include "base/text.h"
#include "search/astra.h"
#include "search/best_of_n.h"
#include "search/climb.h"
#include "search/cudaforge.h"
#include "search/cutegen.h"
#include "search/stark.h"

namespace cutegen::search {
namespace {

template <class E>
Result<E> one_of(const std::string& value, const std::string& where) {
  std::vector<std::string> known;
  for (const auto& [e, name] : enum_names(E{})) {
    if (value == name) return e;
    known.emplace_back(name);
  }
  return user_error(where + " '" + value + "' is unknown", where, "one of " + join(known, ", "));
}

constexpr const char *kCutegen = "cutegen", *kCudaforge = "cudaforge", *kStark = "stark";
using Maker = std::unique_ptr<Strategy> (*)(const StrategySettings&);
template <class S>
std::unique_ptr<Strategy> made(const StrategySettings& settings) {
  return std::make_unique<S>(settings);
}
constexpr std::array<std::pair<std::string_view, Maker>, 6> kStrategies{
    {{kCutegen, made<CutegenStrategy>},
     {kCudaforge, made<CudaforgeStrategy>},
     {kStark, made<StarkStrategy>},
     {kAstra, made<AstraStrategy>},
     {kAstraSingle, made<AstraSingleStrategy>},
     {"best-of-n", made<BestOfN>}}};

Result<void> check_agents(const AgentSettings& a) {
  if (a.chains < 1 || a.chains > 8) return user_error("--chains is not from 1 to 8", "--chains");
  if (a.start == Start::recipe && a.dialect != Dialect::cute)
    return user_error("recipes are written in CuTe", "--start",
                      "give --dialect cute, or --start scratch");
  if (a.rounds < 1 || a.astra_rounds.value_or(1) < 1)
    return user_error("--rounds must be at least 1", "--rounds");
  if (const double e = a.stark.epsilon.value_or(0); !(e >= 0 && e <= 1))
    return user_error("the probability of exploration is not from 0 to 1", "--epsilon");
  if (a.stark.root_children < 1 || a.stark.node_children < 1)
    return user_error("a node of the tree needs room for a child", "search/agents/stark");
  return {};
}

}  // namespace

Names<Start> enum_names(Start) {
  static constexpr Name<Start> names[] = {{Start::scratch, "scratch"}, {Start::recipe, "recipe"}};
  return names;
}

Names<ProfilingMode> enum_names(ProfilingMode) {
  static constexpr Name<ProfilingMode> names[] = {{ProfilingMode::delayed, "delayed"},
                                                  {ProfilingMode::adaptive, "adaptive"},
                                                  {ProfilingMode::from_start, "from-start"},
                                                  {ProfilingMode::never, "never"}};
  return names;
}

Result<Dialect> parse_dialect(const std::string& name, const std::string& where) {
  return one_of<Dialect>(name, where);
}
Result<Start> parse_start(const std::string& name, const std::string& where) {
  return one_of<Start>(name, where);
}
Result<ProfilingMode> parse_profiling(const std::string& name, const std::string& where) {
  return one_of<ProfilingMode>(name, where);
}

ToolScope tool_scope(const std::string& strategy, const StrategySettings& settings) {
  if (strategy == kCutegen) return ToolScope::all;
  const bool published = settings.agents && settings.agents->published;
  const bool compiles = strategy == kCudaforge || strategy == kAstra || strategy == kAstraSingle;
  return compiles && !published ? ToolScope::compile : ToolScope::none;
}

Result<std::unique_ptr<Strategy>> make_strategy(const std::string& name,
                                                const StrategySettings& settings) {
  if (settings.budget.evaluations < 1)
    return user_error("a run needs at least one evaluation", {}, "raise --evaluations");
  if (settings.budget.minutes < 0)
    return user_error("the budget of minutes is negative", {}, "give --minutes 0 for no limit");
  auto strategy = std::ranges::find(kStrategies, name, [](const auto& s) { return s.first; });
  if (strategy == kStrategies.end())
    return user_error("unknown strategy '" + name + "'", {},
                      "choose cutegen, cudaforge, stark, astra, astra-single or best-of-n");
  if (!settings.agents) {
    if (name == kCutegen) return std::make_unique<ClimbStrategy>(settings);
    return user_error("the strategy '" + name + "' needs a model", "--strategy",
                      "name a model with --model; for 'builtin' use the strategy cutegen");
  }
  CG_CHECK(check_agents(*settings.agents));
  return strategy->second(settings);
}

}  // namespace cutegen::search
