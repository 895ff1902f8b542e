// SPDX-License-Identifier: Apache-2.0
#include "search/families.h"

#include <algorithm>
#include <cmath>

namespace cutegen::search {
namespace {

// Scales UCB1's exploration term, because rewards are small shares.
constexpr double kCuriosity = 0.05;

}  // namespace

Names<Family> enum_names(Family) {
  static constexpr Name<Family> names[] = {
      {Family::memory, "memory"},           {Family::tiling, "tiling"},
      {Family::parallelism, "parallelism"}, {Family::instructions, "instructions"},
      {Family::launches, "launches"},       {Family::algebra, "algebra"}};
  return names;
}

std::string describe(Family family) {
  switch (family) {
    case Family::memory:
      return "how data moves: vector loads, coalescing, reuse, copies in flight";
    case Family::tiling:
      return "tile sizes and what shared memory and registers hold";
    case Family::parallelism:
      return "how blocks, warps and threads divide the work";
    case Family::instructions:
      return "which instructions do the work: tensor cores, shuffles, unrolling, fast intrinsics";
    case Family::launches:
      return "fewer launches or passes: fused steps, a single pass over the data";
    case Family::algebra:
      break;
  }
  return "work that algebra removes or reorders";
}

Family Families::choose() const {
  int tries = 0;
  for (const Arm& arm : arms_) tries += arm.tries;
  auto bound = [&](const Arm& arm) {
    return arm.tries == 0 ? INFINITY
                          : arm.gained / arm.tries +
                                kCuriosity * std::sqrt(2 * std::log(tries + 1.0) / arm.tries);
  };
  const auto best = std::ranges::max_element(arms_, {}, bound);
  return Family(best - arms_.begin());
}

void Families::reward(Family family, double gain) {
  Arm& arm = arms_[size_t(family)];
  ++arm.tries;
  arm.gained += std::clamp(gain, 0.0, 1.0);
}

}  // namespace cutegen::search
