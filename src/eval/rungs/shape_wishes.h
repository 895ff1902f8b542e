// SPDX-License-Identifier: Apache-2.0
// What a program does along the axes of its task, and what a test shape needs to reach it.
//
// Contract: shape_wishes() lists what the program does at the official shape. meets() says whether
// the program does the same at another shape. If it does not at any shape, goals_of() says which
// quantities must grow.
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

// One thing that a program does along an axis, and that a test shape should reach.
struct ShapeWish {
  enum class Kind {
    tiles,     // all divisions in the grid of launch `at`, at one shape
    division,  // division `at`: `least` tiles and a tail
    // Bound `at` is min(a, b): at the test shape, a < b if and only if a < b at the official shape.
    passes,
    blocks,      // axis `axis` of the grid of launch `at`
    once_round,  // launch `at` has a constant grid: more elements than threads
    length,      // the size `name`
  } kind = Kind::division;
  size_t at = 0, axis = 0;
  int64_t least = 0;
  std::string name = {};
};

struct ReachedShape {
  const ShapeCase* shape = nullptr;
  PlanReach reach;
};

// What a test shape has to meet, given what the program does at the official shape. longest_step:
// the longest step of its loops.
std::vector<ShapeWish> shape_wishes(const ReachedShape& official, const ReachedShape& other,
                                    const torch::ShapeConstants& sizes, int64_t longest_step);
// strictly: there must also be a tail.
bool meets(const ShapeWish& wish, const ReachedShape& at, const ReachedShape& official,
           const torch::ShapeConstants& sizes, bool strictly);

// The wish as a noun: "3 tiles of 128 along 4096".
std::string text_of(const ShapeWish& wish, const ReachedShape& official);

// A measure that has to grow to meet a wish, and its target.
struct ShapeGoal {
  static constexpr int64_t kTail = 8;  // tail of a size, so that vector accesses still fit
  std::function<int64_t(const ReachedShape&)> measure;
  int64_t target = 0, step = kTail;
};
std::vector<ShapeGoal> goals_of(const ShapeWish& wish, const ReachedShape& official,
                                const torch::ShapeConstants& sizes);

// The value of a constant, or `other` if the shape does not change it.
int64_t value_of(const torch::ShapeConstants& constants, const std::string& name, int64_t other);
int64_t blocks_of(const PlanReach::Launch& launch);

}  // namespace cutegen::eval
