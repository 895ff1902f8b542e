// SPDX-License-Identifier: Apache-2.0
#include "search/families.h"

#include <algorithm>
#include <cmath>

namespace cutegen::search {
namespace {

// Scales UCB1's exploration term, because rewards are small shares.
constexpr double kCuriosity = 0.05, kCreditCuriosity = 0.07;
constexpr double kFailure = 0.3;  // a failed program counts as this share of a try
constexpr double kKept = 0.85;    // each new reward scales a kind's earlier ones by this

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
  double tries = 0;
  for (const Arm& arm : arms_) tries += arm.tries;
  const double curiosity = credit_ ? kCreditCuriosity : kCuriosity;
  auto bound = [&](const Arm& arm) {
    return arm.tries == 0 ? INFINITY
                          : arm.gained / arm.tries +
                                curiosity * std::sqrt(2 * std::log(tries + 1.0) / arm.tries);
  };
  const auto best = std::ranges::max_element(arms_, {}, bound);
  return Family(best - arms_.begin());
}

void Families::fail(Family family) {
  count(family, 0, credit_ ? kFailure : 1);
}

void Families::count(Family family, double gain, double tries) {
  Arm& arm = arms_[size_t(family)];
  const double kept = credit_ ? kKept : 1;
  arm.tries = arm.tries * kept + tries;
  arm.gained = arm.gained * kept + tries * std::clamp(gain, 0.0, 1.0);
}

}  // namespace cutegen::search
