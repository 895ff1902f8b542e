// SPDX-License-Identifier: Apache-2.0
// Compares the best program with the PyTorch module's operators: the numbers of launches and the
// memory traffic.
//
// Contract: the figures of the module (before) are modelled from the module's graph. Each operator
// that is not a view counts as one launch, which reads its inputs once and writes its results once.
// The figures of the best program (after) come from the program's profile. Without a profile, only
// the program's number of launches is known (from the plan). For an imported program without a
// profile, before_after() returns no figures.
//
// Example: if (auto b = before_after(view)) print(to_text(*b));
#pragma once

#include "engine/record/view.h"

namespace cutegen::engine {

struct BeforeAfter {
  int64_t launches_before = 0, launches_after = 0;
  double bytes_before = 0, bytes_least = 0, flops = 0;
  std::optional<double> bytes_after;
  Origin after = Origin::modelled;  // how bytes_after was determined
};
std::optional<BeforeAfter> before_after(const RunView& view);
// The number of launches of a graph's operators, and the bytes that the operators read and write.
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
