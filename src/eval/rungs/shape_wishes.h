// SPDX-License-Identifier: Apache-2.0
// Lists properties of a program's run along the axes of its task (tiles, tails, loops), and finds
// sizes of a test shape at which a run has the same properties.
//
// Contract: shape_wishes() lists the properties (wishes) of a run at the official shape (the sizes
// in the task file). meets() checks whether a run at another shape has one of these properties,
// too. If no test shape gives a run with the property, goals_of() returns the quantities that must
// grow.
//
// Example: for (ShapeWish& w : shape_wishes(official, other, sizes, step))
//   if (!meets(w, other, official, sizes, true)) use(goals_of(w, official, sizes));
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/plan_reach.h"
#include "torch/worker.h"

namespace cutegen::eval {

// One property of a program's run at the official shape that a run at a test shape should have,
// too. A division is an expression ceil_div(size, step) or size / step in the plan.
struct ShapeWish {
  enum class Kind {
    tiles,     // all divisions in the grid of launch `at` have enough tiles
    division,  // division number `at` has `least` tiles and a tail (an incomplete tile)
    // the expression min(a, b) number `at` has the same smaller operand as at the official shape
    passes,
    blocks,  // the grid of launch `at` has at least `least` blocks along `axis`
    // launch `at` has a constant grid, and a tensor has more elements than the grid has threads
    once_round,
    length,  // the size `name` is at least `least`
  } kind = Kind::division;
  size_t at = 0, axis = 0;
  int64_t least = 0;
  std::string name = {};
};

struct ReachedShape {
  const ShapeCase* shape = nullptr;
  PlanReach reach;
};

// Returns the properties that runs at test shapes should have. longest_step: the longest step of
// the program's loops.
std::vector<ShapeWish> shape_wishes(const ReachedShape& official, const ReachedShape& other,
                                    const torch::ShapeConstants& sizes, int64_t longest_step);
// strictly: the division must also have a tail (an incomplete tile).
bool meets(const ShapeWish& wish, const ReachedShape& at, const ReachedShape& official,
           const torch::ShapeConstants& sizes, bool strictly);

// Describes the wished property as a noun phrase: "3 tiles of 128 along 4096".
std::string text_of(const ShapeWish& wish, const ReachedShape& official);

// A quantity that must grow up to `target`, so that a test shape has a wished property.
struct ShapeGoal {
  static constexpr int64_t kTail = 8;  // size of a tail, a multiple of vector widths
  std::function<int64_t(const ReachedShape&)> measure;
  int64_t target = 0, step = kTail;
};
std::vector<ShapeGoal> goals_of(const ShapeWish& wish, const ReachedShape& official,
                                const torch::ShapeConstants& sizes);

// Returns the value of `name` in `constants`, or `other` if `constants` has no such name.
int64_t value_of(const torch::ShapeConstants& constants, const std::string& name, int64_t other);
int64_t blocks_of(const PlanReach::Launch& launch);

}  // namespace cutegen::eval
