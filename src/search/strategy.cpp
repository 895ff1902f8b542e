// SPDX-License-Identifier: Apache-2.0
#include "search/strategy.h"

#include "search/cutegen.h"

namespace cutegen {

Result<std::unique_ptr<Strategy>> make_strategy(const std::string& name,
                                                const StrategySettings& settings) {
  if (settings.budget.evaluations < 1)
    return user_error("a run needs at least one evaluation", {}, "raise --evaluations");
  if (settings.budget.minutes < 0)
    return user_error("the budget of minutes is negative", {}, "give --minutes 0 for no limit");
  if (name == "cutegen") return std::make_unique<CutegenStrategy>(settings);
  return user_error("unknown strategy '" + name + "'", {}, "this version has: cutegen");
}

}  // namespace cutegen
