// SPDX-License-Identifier: Apache-2.0
// Launches and memory traffic that the best program saves compared with the module's operators.
//
// Contract: `before` is modelled from the graph. Each operator that is not a view is one launch; it
// reads its inputs once and writes its results once. `after` comes from the best program's profile;
// without a profile only the launches are known, from the plan. The least bytes come from the task.
// There are no figures for an imported program without a profile.
//
// Example: if (auto b = before_after(view)) print(to_text(*b));
#pragma once

#include "engine/record/view.h"

namespace cutegen::engine {

struct BeforeAfter {
  int64_t launches_before = 0, launches_after = 0;
  double bytes_before = 0, bytes_least = 0, flops = 0;
  std::optional<double> bytes_after;
  Origin after = Origin::modelled;  // of bytes_after
};
std::optional<BeforeAfter> before_after(const RunView& view);
// How many launches a graph's operators take, and the bytes that they move.
struct OperatorCost {
  int64_t launches = 0;
  double bytes = 0;
};
OperatorCost cost_of(const Graph& graph);
// "launches 5 -> 1; memory traffic 1.20 GB (modelled) -> 403 MB (measured), least 403 MB"
std::string to_text(const BeforeAfter& saved);
Json to_json(const BeforeAfter& saved);

std::string bytes_text(double bytes);  // "1.20 GB"

}  // namespace cutegen::engine
