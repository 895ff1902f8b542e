// SPDX-License-Identifier: Apache-2.0
// Compares the launches and the memory traffic of the best program with those of the module's
// operators.
//
// Contract: the figures of the module (before) are modelled from its graph. Each operator that is
// not a view counts as one launch, which reads its inputs once and writes its results once. The
// figures of the best program (after) come from its profile. Without a profile, only its number of
// launches is known (from the plan). `bytes_least` comes from the task. For an imported program
// without a profile, before_after() returns no figures.
//
// Example: if (auto b = before_after(view)) print(to_text(*b));
#pragma once

#include "engine/record/view.h"

namespace cutegen::engine {

struct BeforeAfter {
  int64_t launches_before = 0, launches_after = 0;
  double bytes_before = 0, bytes_least = 0, flops = 0;
  std::optional<double> bytes_after;
  Origin after = Origin::modelled;  // the origin of bytes_after
};
std::optional<BeforeAfter> before_after(const RunView& view);
// The number of launches of a graph's operators, and the bytes that they read and write.
struct OperatorCost {
  int64_t launches = 0;
  double bytes = 0;
};
OperatorCost cost_of(const Graph& graph);
// Returns text such as "launches 5 -> 1; memory traffic 1.20 GB (modelled) -> 403 MB (measured),
// least 403 MB".
std::string to_text(const BeforeAfter& saved);
Json to_json(const BeforeAfter& saved);

std::string bytes_text(double bytes);  // "1.20 GB"

}  // namespace cutegen::engine
