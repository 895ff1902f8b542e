// SPDX-License-Identifier: Apache-2.0
// Families: chooses which kind of change (memory, tiling, and so on) a planner has to suggest next.
// The algorithm is a bandit, which learns from the gains of earlier changes.
//
// Contract: choose() returns each kind of change once, and then the kind with the largest upper
// confidence bound (UCB1). The reward of a change (0 to 1) is the share of the time that it saved.
// With `credit`, a failed program counts as less than one try, because it says less about its kind
// of change than a slow program. With `credit`, old rewards also lose weight, because a search uses
// up the possible gains of a kind of change. The same rewards always lead to the same choices.
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
// Returns the description of a kind of change for the question to the planner.
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
