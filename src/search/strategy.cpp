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

using Maker = std::unique_ptr<Strategy> (*)(const StrategySettings&);
template <class S>
std::unique_ptr<Strategy> made(const StrategySettings& settings) {
  return std::make_unique<S>(settings);
}
Maker maker_of(StrategyKind kind) {
  switch (kind) {
    case StrategyKind::cutegen:
      return made<CutegenStrategy>;
    case StrategyKind::cudaforge:
      return made<CudaforgeStrategy>;
    case StrategyKind::stark:
      return made<StarkStrategy>;
    case StrategyKind::astra:
      return made<AstraStrategy>;
    case StrategyKind::astra_single:
      return made<AstraSingleStrategy>;
    case StrategyKind::best_of_n:
      break;
  }
  return made<BestOfN>;
}

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

Names<StrategyKind> enum_names(StrategyKind) {
  static constexpr Name<StrategyKind> names[] = {{StrategyKind::cutegen, "cutegen"},
                                                 {StrategyKind::cudaforge, "cudaforge"},
                                                 {StrategyKind::stark, "stark"},
                                                 {StrategyKind::astra, "astra"},
                                                 {StrategyKind::astra_single, "astra-single"},
                                                 {StrategyKind::best_of_n, "best-of-n"}};
  return names;
}

Result<StrategyKind> strategy_from(const std::string& name) {
  if (auto kind = from_name<StrategyKind>(name, "strategy")) return *kind;
  return user_error("unknown strategy '" + name + "'", {},
                    "choose cutegen, cudaforge, stark, astra, astra-single or best-of-n");
}

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

ToolScope tool_scope(StrategyKind strategy, const StrategySettings& settings) {
  if (strategy == StrategyKind::cutegen) return ToolScope::all;
  const bool published = settings.agents && settings.agents->published;
  const bool compiles = strategy == StrategyKind::cudaforge || strategy == StrategyKind::astra ||
                        strategy == StrategyKind::astra_single;
  return compiles && !published ? ToolScope::compile : ToolScope::none;
}

Result<std::unique_ptr<Strategy>> make_strategy(StrategyKind kind,
                                                const StrategySettings& settings) {
  if (settings.budget.evaluations < 1)
    return user_error("a run needs at least one evaluation", {}, "raise --evaluations");
  if (settings.budget.minutes < 0)
    return user_error("the budget of minutes is negative", {}, "give --minutes 0 for no limit");
  if (!settings.agents) {
    if (kind == StrategyKind::cutegen) return std::make_unique<ClimbStrategy>(settings);
    return user_error(std::string("the strategy '") + to_string(kind) + "' needs a model",
                      "--strategy",
                      "name a model with --model; for 'builtin' use the strategy cutegen");
  }
  CG_CHECK(check_agents(*settings.agents));
  return maker_of(kind)(settings);
}

}  // namespace cutegen::search
