// SPDX-License-Identifier: Apache-2.0
// Fused: a task's graph as one loop nest: pointwise work around reductions over the same axes.
//
// Scans (cumulative sums) take the place of reductions: their axis counts as reduced, and their
// results vary along it. A Fused has reductions or scans, not both.
//
// Contract: fuse() resolves views into broadcast and strided operands, expands composite operators
// (softmax, mean, norms) into primitive ones, and names an operator that it cannot express. The
// axes are those of the reductions' input, or of the outputs if nothing is reduced. Instructions
// are in evaluation order; a `row` instruction has one value for all positions of the reduced axes.
// A Region is the part of a graph that becomes one Fused. If it does not fit into one loop nest,
// `cut` names the value that an earlier Fused should keep (stages.h does so).
//
// Example: softmax(x, 1) -> axes {4096, 1024 reduced}, x, max(x), expf(x - max), sum, exp / sum
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "recipes/composites/recurrences.h"
#include "recipes/graph/choices.h"
#include "recipes/graph/decompose.h"
#include "recipes/graph/scans.h"
#include "recipes/graph/writes.h"
#include "recipes/spatial/windows.h"

namespace cutegen::recipes {

inline constexpr const char* kCount = "count";  // code of the constant "elements of a row"
inline constexpr const char* kPlaces =
    "cutegen.places";  // the tensor name of operands without a tensor

enum class Level { row, element };
enum class InstKind { leaf, constant, position, pointwise, reduction, scan };
// total, largest, smallest: of integers
enum class ReduceKind { sum, product, max, min, argmax, argmin, total, largest, smallest };

struct Inst {
  InstKind kind = InstKind::leaf;
  Level level = Level::row;
  int depth = 0;            // number of reductions in the longest chain up to this instruction
  std::string name;         // a name for its value in a kernel (not unique)
  std::string code;         // pointwise: "{0} + {1}"; constant: its text
  std::vector<int> inputs;  // instructions
  ReduceKind reduce = ReduceKind::sum;
  bool boolean = false, integer = false;  // else a float
  int operand = -1;                       // leaf: index into Fused::inputs
  Scan scan = {};                         // InstKind::scan
};

struct Axis {
  int64_t size = 0;  // official
  bool reduced = false;
  std::string extent;      // plan expression: "dim(x,1)"
  std::string shown = {};  // its size in a list of sizes in the graph
};

// Where a slice begins along an axis of a tensor.
struct Start {
  int64_t at = 0;          // official
  int64_t multiple = 0;    // if above 0, `at` is this multiple of the slice's length
  int64_t from_end = 0;    // if above 0, it begins this many elements before the end
  bool to_end = false;     // the slice reaches to the tensor's end
  bool by_number = false;  // `at` is a constant of the module, which may not follow the sizes
  int64_t step = 1;        // between elements of the slice, in elements of the tensor
  int index = -1;          // the operand that holds the position along this axis, or -1
  bool wraps = false;      // a negative index counts from the end
  bool modulo = false;     // every index is taken modulo the size of the axis
  bool nearest = false;    // an index outside the axis reads the nearest element
  bool reflects = false;   // the axis is reflected at its ends
  bool cyclic = false;     // an index below twice the size is taken modulo the size
  bool reversed = false;   // index i means element shift - i, else shift + i
  std::string shift = {};  // a plan expression, empty: 0; "@" is the size along which indices count
  std::string from = {};   // `at` as a plan expression, if it follows sizes
  // As an argument of cutegen::place.
  const char* rule() const {
    return nearest ? "3" : reflects ? "4" : cyclic ? "5" : modulo ? "2" : wraps ? "true" : "false";
  }
};

// A tensor and where its axes lie in the loop nest.
struct Operand {
  std::string tensor;
  DType dtype = DType::f32;
  Shape shape;            // official; after a reshape, the reshaped one
  std::vector<int> axes;  // axis of the nest for each of its axes, -1: broadcast
  bool reshaped = false;  // `shape` is a view of the whole contiguous tensor
  Shape original;         // the tensor's own shape
  bool kept = false;      // a value in scratch: `extents` has its sizes, not dim()
  std::vector<std::string> extents;
  std::vector<Axis> parts;         // axes merged into the first axis of a kept value, if known
  std::vector<Start> starts = {};  // of a slice, for each of its axes; empty: the whole tensor
  // No tensor: the positions along its axes, times these steps (empty: one axis, step 1).
  bool counts = false;
  bool fixed_count = false;  // the module fixes the number of positions: torch.arange(20)
  std::vector<int64_t> steps = {};
  WriteMode mode = WriteMode::store;  // of an output
  bool sliced() const { return !starts.empty(); }
  bool gathered() const {
    return std::any_of(starts.begin(), starts.end(), [](const Start& s) { return s.index >= 0; });
  }
};

struct FusedOutput {
  Operand operand;
  int inst = -1;
};

// A size that a kernel computes with: its parameter's name, and what the plan passes.
using SizeParameter = std::pair<std::string, std::string>;

// A leaf that the kernel computes itself: a convolution or pooling over the axes of the nest.
struct WindowLeaf {
  Window window;
  int inst = -1;
  Operand input, weight;
  int wgmma = 0;  // how many wgmma products replace one product; 0: do not use wgmma
};

struct Fused {
  std::map<std::string, std::string> names;  // tensor -> identifier, in plans and kernels
  std::vector<SizeParameter> sizes;
  std::vector<Axis> axes;
  std::vector<Inst> insts;
  std::vector<Operand> inputs;
  std::vector<FusedOutput> outputs;
  std::optional<WindowLeaf> window;
  // If set: the outputs are the values and positions that this operator chooses.
  std::optional<Choice> choice = {};
  // If set: the outputs are the results of this recurrence, over the axes steps, batch and states.
  std::optional<Recurrence> recurrence = {};
  std::vector<std::string> demands = {};  // requirements of the plan that follow from slices
  // Whether an operator has this stage's kernel, not a loop nest.
  bool special() const { return choice || recurrence; }
  bool reduces() const;
  bool scans() const;
  int max_depth() const;
};

// Values that earlier stages keep in scratch, with the sizes of their axes as plan expressions.
using Kept = std::map<std::string, std::vector<std::string>>;

struct Region {
  // The elements of an output that a Fused computes, along one axis.
  struct Part {
    size_t axis = 0;
    int64_t length = 0;
    Start start;
    std::string whole = {};  // of scratch: the size of the whole axis as a plan expression
  };
  struct Output {
    std::string tensor, value;
    DType dtype = DType::f32;
    bool kept = false;                // the tensor is scratch, named as the value
    std::optional<Part> part = {};    // if not set: the whole output
    std::optional<Write> write = {};  // the tensor is mutated, and the value replaces a part of it
  };
  const Decomposed& source;
  std::map<std::string, std::string> names;  // identifiers of the task's tensors and of kept values
  Kept kept;
  std::vector<Output> outputs;
  // The axes that were merged into the first axis of each kept value.
  std::map<std::string, std::vector<Axis>> parts = {};
  // Whether operands may be slices of tensors; if not, an earlier stage copies slices.
  bool slices = false;
  // Whether products may read packed weights (weights.h) instead of the matrix computed from them.
  bool packed = false;
};
struct Attempt {
  Result<Fused> fused;
  // After an error: the value that an earlier stage should keep; empty if that does not help.
  std::string cut;
};

Attempt fuse(const Region& region);
// The whole task as one Fused, or why that is not possible.
Result<Fused> fuse(const Task& task);
// The same in steps: the task's graph without in-place operators, and that graph fused.
// Placeholders that are not tensors of the task become leaves without a name in `names`.
Result<Graph> prepare(const Task& task);
Result<Fused> fuse_graph(const Task& task, const Graph& graph);
std::vector<Region::Output> outputs_of(const Task& task, const Graph& graph);
// Whether the operator has its own kernel, which may also do the pointwise work after it.
bool has_own_stage(const Node& node);
// Whether an index that differs along the reduced axes chooses the operand's elements.
bool gathers_along(const Fused& fused, const Operand& operand);
// Nodes that the values depend on, in the graph's order. Stops at kept values.
std::vector<const Node*> nodes_above(const Graph& graph, std::vector<std::string> values,
                                     const Kept& kept);

}  // namespace cutegen::recipes
