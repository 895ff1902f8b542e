// SPDX-License-Identifier: Apache-2.0
// Fused: the graph of a task or of one stage as a single loop nest, with pointwise operators before
// and after reductions over the same axes.
//
// A Fused may have scans (cumulative sums) instead of reductions, but not both. The scanned axis
// counts as reduced, although the results vary along it.
//
// Contract: fuse() expresses views as broadcast and strided operands and expands composite
// operators (softmax, mean, norms) into primitive ones. If it cannot express an operator, the error
// names it. The axes of the nest are those of the reductions' input, or those of the outputs if
// there is no reduction. Instructions are in evaluation order. An instruction that reads an operand
// is called a leaf. Sizes are those of the official shape, which is the shape of the task as
// written. An instruction of level `row` has one value for all positions along the reduced axes.
//
// A Region is the part of a graph that becomes one Fused. If it does not fit into one loop nest,
// `cut` names the value that an earlier stage should compute and keep in scratch memory (stages.h).
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

inline constexpr const char* kCount = "count";  // code of the constant that is the row's length
inline constexpr const char* kPlaces =
    "cutegen.places";  // tensor name of operands that are positions

enum class Level { row, element };
enum class InstKind { leaf, constant, position, pointwise, reduction, scan };
// total, largest and smallest are the sum, maximum and minimum of integers.
enum class ReduceKind { sum, product, max, min, argmax, argmin, total, largest, smallest };

struct Inst {
  InstKind kind = InstKind::leaf;
  Level level = Level::row;
  int depth = 0;            // the most reductions in a chain of inputs, including this instruction
  std::string name;         // suggested name of the value in a kernel (not unique)
  std::string code;         // C++ text; {0}, {1}, ... stand for `inputs`
  std::vector<int> inputs;  // indices of instructions
  ReduceKind reduce = ReduceKind::sum;
  bool boolean = false, integer = false;  // type of the value; a float if both are false
  int operand = -1;                       // for a leaf, its index in Fused::inputs
  Scan scan = {};                         // only for InstKind::scan
};

struct Axis {
  int64_t size = 0;  // at the official shape
  bool reduced = false;
  std::string extent;      // plan expression: "dim(x,1)"
  std::string shown = {};  // size from a node's list of sizes, or ""
};

// Where a slice begins along an axis of a tensor, or how an index tensor selects elements along it.
struct Start {
  int64_t at = 0;          // at the official shape
  int64_t multiple = 0;    // if above 0, `at` is this multiple of the slice's length
  int64_t from_end = 0;    // if above 0, the slice begins this many elements before the end
  bool to_end = false;     // the slice reaches to the tensor's end
  bool by_number = false;  // `at` is a number in the module; it need not change with the sizes
  int64_t step = 1;        // distance between the slice's elements, in elements of the tensor
  int index = -1;          // the operand with the index tensor for this axis, or -1
  bool wraps = false;      // a negative index counts from the end
  bool modulo = false;     // every index is taken modulo the size of the axis
  bool nearest = false;    // an index outside the axis selects the nearest element
  bool reflects = false;   // an index outside the axis is mirrored at its end
  bool cyclic = false;     // an index below twice the size is taken modulo the size
  bool reversed = false;   // index i selects element shift - i instead of shift + i
  std::string shift = {};  // plan expression, "" for 0; "@" is the index tensor's length
  std::string from = {};   // `at` as a plan expression, if it depends on sizes
  // Returns the template argument of cutegen::place() and cutegen::take() for a kernel.
  const char* rule() const {
    return nearest ? "3" : reflects ? "4" : cyclic ? "5" : modulo ? "2" : wraps ? "true" : "false";
  }
};

// A tensor that the loop nest reads or writes. `axes` maps the tensor's axes to axes of the nest.
struct Operand {
  std::string tensor;
  DType dtype = DType::f32;
  Shape shape;            // official shape; if `reshaped`, after the reshape
  std::vector<int> axes;  // axis of the nest for each axis, or -1 for broadcast
  bool reshaped = false;  // `shape` is a view of the whole contiguous tensor
  Shape original;         // the tensor's own shape
  bool kept = false;      // a value in scratch, whose sizes are `extents`, not dim()
  std::vector<std::string> extents;
  std::vector<Axis> parts;         // axes in the first axis of a kept value, if known
  std::vector<Start> starts = {};  // one for each axis; empty for the whole tensor
  // The operand is not a tensor. Its elements are the sum of position * step over its axes. If
  // `steps` is empty, it has one axis with step 1.
  bool counts = false;
  bool fixed_count = false;  // the module fixes the number of positions, as in torch.arange(20)
  std::vector<int64_t> steps = {};
  WriteMode mode = WriteMode::store;  // only for outputs
  bool sliced() const { return !starts.empty(); }
  bool gathered() const {
    return std::any_of(starts.begin(), starts.end(), [](const Start& s) { return s.index >= 0; });
  }
};

struct FusedOutput {
  Operand operand;
  int inst = -1;
};

// A size that a kernel uses as a number: the name of the parameter and the plan's expression for
// it.
using SizeParameter = std::pair<std::string, std::string>;

// A leaf that the kernel computes itself instead of reading it: a convolution or pooling.
struct WindowLeaf {
  Window window;
  int inst = -1;
  Operand input, weight;
  int wgmma = 0;  // wgmma products that replace one product; 0 if the kernel uses no wgmma
};

struct Fused {
  std::map<std::string, std::string> names;  // tensor -> identifier in plans and kernels
  std::vector<SizeParameter> sizes;
  std::vector<Axis> axes;
  std::vector<Inst> insts;
  std::vector<Operand> inputs;
  std::vector<FusedOutput> outputs;
  std::optional<WindowLeaf> window;
  // If set, the outputs are the values and positions that this topk, sort or argsort returns.
  std::optional<Choice> choice = {};
  // If set, the outputs are the results of this recurrent layer, over the axes steps, batch and
  // states.
  std::optional<Recurrence> recurrence = {};
  std::vector<std::string> demands = {};  // the plan's requirements on sizes
  // Whether the stage needs the kernel of a special operator instead of a loop nest.
  bool special() const { return choice || recurrence; }
  bool reduces() const;
  bool scans() const;
  int max_depth() const;
};

// The values that earlier stages keep in scratch, with the sizes of their axes as plan expressions.
using Kept = std::map<std::string, std::vector<std::string>>;

struct Region {
  // The range of elements along one axis of an output that a Fused computes.
  struct Part {
    size_t axis = 0;
    int64_t length = 0;
    Start start;
    std::string whole = {};  // if in scratch, the whole axis' size as a plan expression
  };
  struct Output {
    std::string tensor, value;
    DType dtype = DType::f32;
    bool kept = false;                // the tensor is in scratch and has the value's name
    std::optional<Part> part = {};    // nullopt for the whole output
    std::optional<Write> write = {};  // set if the value replaces a part of a mutated tensor
  };
  const Decomposed& source;
  std::map<std::string, std::string> names;  // tensor or kept value -> identifier
  Kept kept;
  std::vector<Output> outputs;
  // For each kept value, the axes that a reshape merged into its first axis.
  std::map<std::string, std::vector<Axis>> parts = {};
  // Whether operands may be slices of tensors. If not, an earlier stage copies slices.
  bool slices = false;
  // Whether products may read packed weights (graph/weights.h) instead of the matrix unpacked from
  // them.
  bool packed = false;
};
struct Attempt {
  Result<Fused> fused;
  // After an error, the value that an earlier stage should keep. Empty if that does not help.
  std::string cut;
};

Attempt fuse(const Region& region);
// Returns the whole task as one Fused, or an error that says why that is not possible.
Result<Fused> fuse(const Task& task);
// The two steps of fuse(task). prepare() returns the task's graph without in-place operators, and
// fuse_graph() fuses this graph. A placeholder that is not a tensor of the task becomes a leaf
// whose tensor has no entry in `names`.
Result<Graph> prepare(const Task& task);
Result<Fused> fuse_graph(const Task& task, const Graph& graph);
std::vector<Region::Output> outputs_of(const Task& task, const Graph& graph);
// Whether the operator needs a stage of its own. This stage may also do pointwise work after it.
bool has_own_stage(const Node& node);
// Whether an index tensor that varies along the reduced axes selects the operand's elements.
bool gathers_along(const Fused& fused, const Operand& operand);
// Returns the nodes on which the values depend, in the graph's order. It omits kept values and the
// nodes on which only these depend.
std::vector<const Node*> nodes_above(const Graph& graph, std::vector<std::string> values,
                                     const Kept& kept);

}  // namespace cutegen::recipes
