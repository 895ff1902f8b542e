// SPDX-License-Identifier: Apache-2.0
// Cuts: decides where to divide a region with different reductions.
//
// Contract: find_cut() returns the value that an earlier stage should keep; empty if keeping a
// value does not help. Reductions with the same shape and axes are of one kind, and the kind of the
// last reduction stays in the region. If that reduction reads results of other kinds, the value is
// its input, or a much smaller value from which pointwise operators compute the input. Otherwise
// the value is a result of another kind.
//
// Example: mean(norm(a - b, axis 1) + m) -> keep the value that mean reads, one number per row
#pragma once

#include "recipes/graph/reductions.h"
#include "recipes/nest/fused.h"

namespace cutegen::recipes {

struct Reducing {
  const Node* node;
  Reduction r;
};

// Whether one loop nest can compute both. Scans share a nest with scans in the same direction only.
bool alike(const Reduction& a, const Reduction& b);
std::vector<std::string> inputs_of(const Node& node);
std::string find_cut(const Region& region, const std::vector<Reducing>& found);

}  // namespace cutegen::recipes
