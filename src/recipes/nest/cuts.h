// SPDX-License-Identifier: Apache-2.0
// Cuts: decides where to divide a region with different reductions.
//
// Contract: the last reduction's kind (shape and axes) stays. find_cut names a value for an earlier
// stage to keep. If the last kind reads results of other kinds, this is its input, or the small
// values from which the input is computed; otherwise it is a result of another kind. Empty: no
// value can be kept.
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
