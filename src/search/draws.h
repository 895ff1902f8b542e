// SPDX-License-Identifier: Apache-2.0
// Draws: a generator of the random numbers that a search needs.
//
// Contract: the same seed gives the same sequence on every machine (SplitMix64). If a strategy
// draws a number to decide its next question, it records the number in the context of this
// question.
//
// Example: Draws draws(7); if (draws.uniform() < 0.35) node = leaves[draws.below(leaves.size())];
#pragma once

#include <cstddef>
#include <cstdint>

namespace cutegen::search {

class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}

  // Returns a random number of at least 0 and less than 1.
  double uniform() { return double(bits() >> 11) * 0x1p-53; }
  // Returns a random integer from 0 to n - 1. `n` must be at least 1.
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
