// SPDX-License-Identifier: Apache-2.0
#include "search/strategy.h"

#include <algorithm>

#include "base/text.h"
#include "search/best_of_n.h"
#include "search/climb.h"
#include "search/cudaforge.h"
#include "search/cutegen.h"

namespace cutegen::search {
namespace {

Result<void> one_of(const std::string& value, const std::vector<std::string>& known,
                    const std::string& flag) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return {};
  return user_error(flag + " '" + value + "' is unknown", flag, "one of " + join(known, ", "));
}

Result<void> check_agents(const AgentSettings& a) {
  CG_CHECK(one_of(a.dialect, {"cute", "cuda"}, "--dialect"));
  CG_CHECK(one_of(a.start, {"scratch", "recipe"}, "--start"));
  CG_CHECK(one_of(a.profiling, {"delayed", "adaptive", "from-start", "never"}, "--profiling"));
  if (a.chains < 1 || a.chains > 8) return user_error("--chains is not from 1 to 8", "--chains");
  if (a.start == "recipe" && a.dialect != "cute")
    return user_error("recipes are written in CuTe", "--start",
                      "give --dialect cute, or --start scratch");
  if (a.rounds < 1) return user_error("--rounds must be at least 1", "--rounds");
  return {};
}

}  // namespace

Result<std::unique_ptr<Strategy>> make_strategy(const std::string& name,
                                                const StrategySettings& settings) {
  if (settings.budget.evaluations < 1)
    return user_error("a run needs at least one evaluation", {}, "raise --evaluations");
  if (settings.budget.minutes < 0)
    return user_error("the budget of minutes is negative", {}, "give --minutes 0 for no limit");
  if (name != "cutegen" && name != "cudaforge" && name != "best-of-n")
    return user_error("unknown strategy '" + name + "'", {},
                      "this version has: cutegen, cudaforge, best-of-n");
  if (!settings.agents) {
    if (name == "cutegen") return std::make_unique<ClimbStrategy>(settings);
    return user_error("the strategy '" + name + "' needs a model", "--strategy",
                      "give one with --model; 'builtin' has the strategy cutegen");
  }
  CG_CHECK(check_agents(*settings.agents));
  if (name == "cudaforge") return std::make_unique<CudaforgeStrategy>(settings);
  if (name == "best-of-n") return std::make_unique<BestOfN>(settings);
  return std::make_unique<CutegenStrategy>(settings);
}

}  // namespace cutegen::search
