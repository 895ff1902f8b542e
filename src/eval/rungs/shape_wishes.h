// SPDX-License-Identifier: Apache-2.0
// Lists what a program does along the axes of its task (tiles, tails, loops), and finds the sizes
// of a test shape at which the program does the same.
//
// Contract: shape_wishes() lists what the program does at the official shape (the sizes in the task
// file). meets() checks whether the program does the same at another shape. If no test shape meets
// a wish, goals_of() returns the quantities that must grow.
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

// One property of the program's run at the official shape that a run at a test shape should have,
// too.
struct ShapeWish {
  enum class Kind {
    tiles,     // all divisions in the grid of launch `at` have enough tiles at one shape
    division,  // division `at` has `least` tiles and a tail
    // bound `at` is min(a, b): the smaller operand is the same as at the official shape
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

// Returns the properties that test shapes should have. longest_step: the longest step of the
// program's loops.
std::vector<ShapeWish> shape_wishes(const ReachedShape& official, const ReachedShape& other,
                                    const torch::ShapeConstants& sizes, int64_t longest_step);
// strictly: a tail (an incomplete tile) is also necessary.
bool meets(const ShapeWish& wish, const ReachedShape& at, const ReachedShape& official,
           const torch::ShapeConstants& sizes, bool strictly);

// Describes the wish as a noun phrase: "3 tiles of 128 along 4096".
std::string text_of(const ShapeWish& wish, const ReachedShape& official);

// A quantity that must grow up to `target` to meet a wish.
struct ShapeGoal {
  static constexpr int64_t kTail = 8;  // tail of a size, a multiple of vector widths
  std::function<int64_t(const ReachedShape&)> measure;
  int64_t target = 0, step = kTail;
};
std::vector<ShapeGoal> goals_of(const ShapeWish& wish, const ReachedShape& official,
                                const torch::ShapeConstants& sizes);

// Returns the constant's value in `constants`, or `other` if it is not there.
int64_t value_of(const torch::ShapeConstants& constants, const std::string& name, int64_t other);
int64_t blocks_of(const PlanReach::Launch& launch);

}  // namespace cutegen::eval
