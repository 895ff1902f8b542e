// SPDX-License-Identifier: Apache-2.0
// Families: which kind of change to ask a planner for, by what each kind has gained so far.
//
// Contract: choose() gives each kind once and then the one with the largest upper confidence bound
// (UCB1). A reward is a share of the time, from 0 to 1. Equal events give equal choices.
//
// Example: Families f; auto kind = f.choose(); f.reward(kind, 0.2);
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "base/names.h"

namespace cutegen::search {

enum class Family { memory, tiling, parallelism, instructions, launches, algebra };
Names<Family> enum_names(Family);
// What the family changes, for a question.
std::string describe(Family family);

class Families {
 public:
  Family choose() const;
  void reward(Family family, double gain);

 private:
  struct Arm {
    int tries = 0;
    double gained = 0;
  };
  std::array<Arm, 6> arms_{};
};

}  // namespace cutegen::search
