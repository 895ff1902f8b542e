// SPDX-License-Identifier: Apache-2.0
// Draws: the random numbers of a search, derived from a seed.
//
// Contract: the same seed gives the same sequence on every machine (SplitMix64). A strategy records
// each draw in the context of the question that follows from it.
//
// Example: Draws draws(7); if (draws.uniform() < 0.35) node = leaves[draws.below(leaves.size())];
#pragma once

#include <cstddef>
#include <cstdint>

namespace cutegen::search {

class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}

  // From 0 (included) to 1 (excluded).
  double uniform() { return double(bits() >> 11) * 0x1p-53; }
  // From 0 to n - 1. `n` is at least 1.
  size_t below(size_t n) { return size_t(uniform() * double(n)); }

 private:
  uint64_t bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

}  // namespace cutegen::search
