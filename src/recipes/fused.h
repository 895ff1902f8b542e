// SPDX-License-Identifier: Apache-2.0
// Fused: a task's graph as one loop nest: pointwise work around reductions over the same axes.
//
// Contract: fuse() resolves views into broadcast and strided operands, expands composite operators
// (softmax, mean, norms) into primitive ones, and says which operator it cannot express. Axes are
// those of the reductions' input, or of the outputs when nothing is reduced. Instructions are in
// evaluation order; `row` ones have one value for all positions of the reduced axes.
//
// Example: softmax(x, 1) -> axes {4096, 1024 reduced}, x, max(x), expf(x - max), sum, exp / sum
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/task.h"

namespace cutegen::recipes {

enum class Level { row, element };
enum class InstKind { leaf, constant, pointwise, reduction };
enum class ReduceKind { sum, product, max, min };

struct Inst {
  InstKind kind = InstKind::leaf;
  Level level = Level::row;
  int depth = 0;            // reductions in a chain beneath it
  std::string name;         // what to call it in a kernel (not unique)
  std::string code;         // pointwise: "{0} + {1}"; constant: its text
  std::vector<int> inputs;  // instructions
  ReduceKind reduce = ReduceKind::sum;
  bool boolean = false;
  int operand = -1;  // leaf: index into Fused::inputs
};

// A tensor and where its axes lie in the loop nest.
struct Operand {
  std::string tensor;
  DType dtype = DType::f32;
  Shape shape;            // official; after a reshape, the reshaped one
  std::vector<int> axes;  // axis of the nest for each of its axes, -1: broadcast
  bool reshaped = false;  // `shape` is a view of the whole contiguous tensor
};

struct Axis {
  int64_t size = 0;  // official
  bool reduced = false;
  std::string extent;  // plan expression: "dim(x,1)"
};

struct FusedOutput {
  Operand operand;
  int inst = -1;
};

struct Fused {
  std::map<std::string, std::string> names;  // tensor -> identifier, in plans and kernels
  std::vector<Axis> axes;
  std::vector<Inst> insts;
  std::vector<Operand> inputs;
  std::vector<FusedOutput> outputs;
  [[nodiscard]] bool reduces() const;
  [[nodiscard]] int max_depth() const;
};

[[nodiscard]] Result<Fused> fuse(const Task& task);
// The same in steps: the task's graph without in-place operators, and that graph fused.
// Placeholders that are no tensors of the task become leaves without a name in `names`.
[[nodiscard]] Result<Graph> prepare(const Task& task);
[[nodiscard]] Result<Fused> fuse_graph(const Task& task, const Graph& graph);
// Nodes that the outputs depend on.
[[nodiscard]] std::vector<const Node*> reachable(const Graph& graph);
// Fills in the extents of the axes from tensors that have them.
[[nodiscard]] Result<void> find_extents(Fused& fused);

}  // namespace cutegen::recipes
