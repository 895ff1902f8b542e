// SPDX-License-Identifier: Apache-2.0
// DerivedShapes: chooses additional test shapes that fit a program's tile sizes, loops and size
// limits.
//
// Contract: find() returns at most kMost shapes in addition to the task's shapes. Together, all
// these shapes shall meet three requirements:
// - Along each axis that the plan divides into tiles, a launch has three full tiles and a partial
//   tile.
// - A persistent kernel's loop runs more than once.
// - Each size is at least three times the longest loop step in the sources.
// The module, the plan's `requires` or the limit of work (WorkLimit) may exclude all shapes that
// meet a requirement; Found::left_out names the requirements that no test shape meets. If the
// task's shapes meet all requirements, find() returns no shape. Later programs of the task reuse
// the shapes. proposed() converts a test that a model proposed to a shape, within the same limit of
// work.
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
    std::vector<std::string> left_out;  // requirements that no test shape meets, with reasons
  };
  Result<Found> find(const Context& ctx, const KernelProgram& program, const DeviceFacts& device);
  // Converts a proposed test to a shape. A size that the test omits has its value from the official
  // shape or, if this is too much work, from the smallest shape. For a test that cannot run,
  // returns a user error with the reason.
  Result<ShapeCasePtr> proposed(const Context& ctx, const TestCase& test);

 private:
  class Search;
  // Returns the shape for these constants, or null if the module rejects the constants. Caches the
  // result.
  Result<ShapeCasePtr> described(const Context& ctx, const torch::ShapeConstants& constants);
  Result<void> learn_sizes(const Context& ctx);

  const Task& task_;
  DescribeShapes describe_;
  // the sizes that may vary, with their values in the task file
  std::optional<torch::ShapeConstants> sizes_;
  std::map<torch::ShapeConstants, ShapeCasePtr> described_;
  std::vector<ShapeCasePtr> given_;  // shapes for earlier programs of the task
};

}  // namespace cutegen::eval
