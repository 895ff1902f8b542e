// SPDX-License-Identifier: Apache-2.0
// Families: chooses the kind of change to ask a planner for, by the gains of each kind so far.
//
// Contract: choose() returns each kind once, then the kind with the largest upper confidence bound
// (UCB1). A reward is the share of the time that a change saved, from 0 to 1. A failed program says
// less about its kind than a slow one, so with `credit` it counts as a part of a try. With
// `credit`, a kind also forgets old rewards, because its gains run out. Equal rewards give equal
// choices.
//
// Example: Families f(true); auto kind = f.choose(); f.reward(kind, 0.2);
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "base/names.h"

namespace cutegen::search {

enum class Family { memory, tiling, parallelism, instructions, launches, algebra };
Names<Family> enum_names(Family);
// Describes the family's changes in a question.
std::string describe(Family family);

class Families {
 public:
  explicit Families(bool credit) : credit_(credit) {}
  Family choose() const;
  void reward(Family family, double gain) { count(family, gain, 1); }
  void fail(Family family);

 private:
  struct Arm {
    double tries = 0, gained = 0;
  };
  void count(Family family, double gain, double tries);

  bool credit_;
  std::array<Arm, 6> arms_{};
};

}  // namespace cutegen::search
