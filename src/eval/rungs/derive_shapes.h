// SPDX-License-Identifier: Apache-2.0
// DerivedShapes: test shapes that depend on a program's tiles, loops and limits.
//
// Contract: find() returns at most kMost shapes in addition to the task's own. At these shapes,
// launches have three tiles and a tail along each axis that the plan divides, persistent grids loop
// more than once, and each size is three times the longest loop step in the sources. The module,
// the plan's `requires` and the work limit may prevent some of this. Later programs of the task
// reuse the shapes. If the task's own shapes already meet these requirements, find() returns none.
// Found::left_out names the requirements that no test shape meets. proposed() turns a tester's
// proposal into a shape, within the same limits.
//
// Example: DerivedShapes d(task, describe); CG_TRY(auto found, d.find(ctx, program, device));
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "eval/rungs/shape_wishes.h"
#include "eval/sets/test_shapes.h"

namespace cutegen::eval {

using ShapeCasePtr = std::shared_ptr<const ShapeCase>;
using DescribeShapes = std::function<Result<torch::DescribedShapes>(
    const Context&, const std::vector<torch::ShapeConstants>&)>;

class DerivedShapes {
 public:
  static constexpr size_t kMost = 3;
  DerivedShapes(const Task& task, DescribeShapes describe)
      : task_(task), describe_(std::move(describe)) {}
  struct Found {
    std::vector<ShapeCasePtr> shapes;
    std::vector<std::string> left_out;  // requirements that no test shape meets, and why
  };
  Result<Found> find(const Context& ctx, const KernelProgram& program, const DeviceFacts& device);
  // A proposed test as a shape. A size that the test omits has its official value or, if that is
  // too much work, its value in the smallest shape. A user error says why the test cannot run.
  Result<ShapeCasePtr> proposed(const Context& ctx, const TestCase& test);

 private:
  class Search;
  // Asks the worker once for each set of constants. Null if the module rejects them.
  Result<ShapeCasePtr> described(const Context& ctx, const torch::ShapeConstants& constants);
  Result<void> learn_sizes(const Context& ctx);

  const Task& task_;
  DescribeShapes describe_;
  std::optional<torch::ShapeConstants> sizes_;  // the sizes that vary, with their official values
  std::map<torch::ShapeConstants, ShapeCasePtr> described_;
  std::vector<ShapeCasePtr> given_;  // shapes that earlier programs got
};

}  // namespace cutegen::eval
