// SPDX-License-Identifier: Apache-2.0
// Cuts: where a region with different reductions is divided.
//
// Contract: the last reduction's kind (shape and axes) stays. find_cut names a value to be kept by
// an earlier stage: where the last kind works on results of other kinds, its input, or the small
// values that this input is made of; else a result of another kind. Empty: no value can be kept.
//
// Example: mean(norm(a - b, axis 1) + m) -> keep the value that mean reads, one number a row
#pragma once

#include "recipes/graph/reductions.h"
#include "recipes/nest/fused.h"

namespace cutegen::recipes {

struct Reducing {
  const Node* node;
  Reduction r;
};

bool alike(const Reduction& a, const Reduction& b);
std::vector<std::string> inputs_of(const Node& node);
std::string find_cut(const Region& region, const std::vector<Reducing>& found);

}  // namespace cutegen::recipes
