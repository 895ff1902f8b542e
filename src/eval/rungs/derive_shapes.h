// SPDX-License-Identifier: Apache-2.0
// DerivedShapes: test shapes that depend on a program's tiles, loops and limits.
//
// Contract: find() returns at most kMost shapes in addition to the task's own. At these shapes the
// launches have three tiles and a tail along each axis that the plan divides, persistent grids loop
// more than once, and each size is three times the longest step that the sources name - as far as
// the module, the plan's `requires` and the work limit permit. The shapes are kept for later
// programs of the task. A program that the task's own shapes already exercise gets no derived
// shapes.
//
// Example: DerivedShapes d(task, describe); CG_TRY(auto more, d.find(ctx, program, device));
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "core/plan_reach.h"
#include "eval/sets/test_shapes.h"
#include "torch/worker.h"

namespace cutegen::eval {

using ShapeCasePtr = std::shared_ptr<const ShapeCase>;
using DescribeShapes = std::function<Result<torch::DescribedShapes>(
    const Context&, const std::vector<torch::ShapeConstants>&)>;

// One thing that a program does along an axis and that some test shape has to reach.
struct ShapeWish {
  enum class Kind {
    tiles,       // every division in the grid of launch `at`, at the same shape
    division,    // division `at`: `least` tiles and a tail
    passes,      // bound `at`: the smaller side of the official shape is less than the other
    blocks,      // axis `axis` of the grid of launch `at`
    once_round,  // a grid that no size changes, launch `at`: more elements than it has threads
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

// What a program that is at `official` there wants to see; `longest_step` of its loops.
std::vector<ShapeWish> shape_wishes(const ReachedShape& official, const ReachedShape& other,
                                    const torch::ShapeConstants& sizes, int64_t longest_step);
// strictly: with a tail too.
bool meets(const ShapeWish& wish, const ReachedShape& at, const ReachedShape& official,
           const torch::ShapeConstants& sizes, bool strictly);

class DerivedShapes {
 public:
  static constexpr size_t kMost = 3;
  DerivedShapes(const Task& task, DescribeShapes describe)
      : task_(task), describe_(std::move(describe)) {}
  Result<std::vector<ShapeCasePtr>> find(const Context& ctx, const KernelProgram& program,
                                         const DeviceFacts& device);

 private:
  class Search;
  // From the worker, once for each set of constants; null where the module refuses them.
  Result<ShapeCasePtr> described(const Context& ctx, const torch::ShapeConstants& constants);
  Result<void> learn_sizes(const Context& ctx);

  const Task& task_;
  DescribeShapes describe_;
  std::optional<torch::ShapeConstants> sizes_;  // official values of those that vary
  std::map<torch::ShapeConstants, ShapeCasePtr> described_;
  std::vector<ShapeCasePtr> given_;  // to programs before
};

}  // namespace cutegen::eval
