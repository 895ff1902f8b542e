// SPDX-License-Identifier: Apache-2.0
// Fused: the graph of a task, or of one stage of a program, as a single loop nest, with pointwise
// operators before and after reductions over the same axes.
//
// A Fused may have scans (cumulative sums) instead of reductions, but not both. A scanned axis
// counts as reduced, although the results vary along this axis.
//
// Contract: fuse() expresses views as broadcast and strided operands and expands composite
// operators (softmax, mean, norms) into primitive operators. If fuse() cannot express an operator,
// the error names the operator. The axes of the loop nest are the axes of the reductions' input or,
// without reductions, the axes of the outputs. Instructions are in evaluation order. A leaf is an
// instruction that reads an operand. All sizes are sizes at the official shape, which is the shape
// in the task file. A plan expression is an expression of the launch plan, such as "dim(x,1)" for
// the size of axis 1 of x. An instruction of level `row` has one value for all positions along the
// reduced axes.
//
// A Region is the part of a graph that becomes one Fused. If a Region does not fit into one loop
// nest, `cut` names the value that an earlier stage should compute and store in scratch memory
// (stages.h).
//
// Example: softmax(x, 1) -> axes {4096, 1024 reduced}, x, max(x), expf(x - max), sum, exp / sum
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "recipes/composites/recurrences.h"
#include "recipes/graph/choices.h"
#include "recipes/graph/decompose.h"
#include "recipes/graph/scans.h"
#include "recipes/graph/writes.h"
#include "recipes/spatial/windows.h"

namespace cutegen::recipes {

// Code of the value that a logsumexp subtracts before exp(): the maximum {0}, or 0 if the maximum
// is infinite.
inline constexpr const char* kFiniteShift = "(cutegen::is_inf({0}) ? 0.0f : {0})";
inline constexpr const char* kDifference = "{0} - {1}";
// A difference whose operands are rounded before the subtraction.
inline constexpr const char* kRoundedDifference = "cutegen::minus({0}, {1})";
// The code of a choice between two operands of cat(): {2} if the position {0} along the joined axis
// is below {1}.
inline constexpr const char* kPartOfJoin = "({0} < {1} ? {2} : {3})";
inline constexpr const char* kCount = "count";  // code of a constant: the length of the row
inline constexpr const char* kPlaces =
    "cutegen.places";  // tensor name of operands that are positions

enum class Level { row, element };
enum class InstKind { leaf, constant, position, pointwise, reduction, scan };
// total, largest and smallest are the sum, maximum and minimum of integers.
enum class ReduceKind { sum, product, max, min, argmax, argmin, total, largest, smallest };

struct Inst {
  InstKind kind = InstKind::leaf;
  Level level = Level::row;
  int depth = 0;            // number of reductions in the longest chain of inputs
  std::string name;         // suggested name of the value in a kernel (not unique)
  std::string code;         // C++ text; {0}, {1}, ... stand for `inputs`
  std::vector<int> inputs;  // indices of instructions
  ReduceKind reduce = ReduceKind::sum;
  bool boolean = false, integer = false;  // type of the value (both false: float)
  int operand = -1;                       // for a leaf, its index in Fused::inputs
  Scan scan = {};                         // only for InstKind::scan
};

struct Axis {
  int64_t size = 0;  // at the official shape
  bool reduced = false;
  std::string extent;      // the size as a plan expression
  std::string shown = {};  // size that an operator's arguments give, or ""
};

// Where a slice of a tensor begins along an axis, or how an index tensor selects elements along the
// axis.
struct Start {
  int64_t at = 0;          // at the official shape
  int64_t multiple = 0;    // if above 0: `at` divided by the slice's length
  int64_t from_end = 0;    // if above 0: elements from the slice's start to the axis' end
  bool to_end = false;     // the slice reaches to the end of the axis
  bool by_number = false;  // `at` is a constant of the module
  bool open_end = false;   // the slice's end depends on sizes in a way that is not known
  int64_t step = 1;        // distance of the slice's elements, in elements of the tensor
  int index = -1;          // index in Fused::inputs of the axis' index tensor, or -1
  bool wraps = false;      // a negative index counts from the end
  bool modulo = false;     // every index counts modulo the size of the axis
  bool nearest = false;    // an index outside the axis selects the nearest element
  // Index i selects element i + shift or, if i + shift is outside the axis, element i. The axis
  // still corresponds to an axis of the nest.
  bool moves = false;
  bool reflects = false;    // an index outside the axis selects its mirror image
  bool cyclic = false;      // an index (below twice the size) counts modulo the size
  bool reversed = false;    // index i selects element shift - i instead of shift + i
  std::string shift = {};   // plan expression; "" means 0, "@" the index tensor's length
  std::string from = {};    // `at` as a plan expression, if it depends on sizes
  std::string length = {};  // the slice's length as a plan expression; "": other rules give it
  // Returns the template argument of cutegen::place() and cutegen::take() for these flags.
  const char* rule() const {
    return moves      ? "6"
           : nearest  ? "3"
           : reflects ? "4"
           : cyclic   ? "5"
           : modulo   ? "2"
           : wraps    ? "true"
                      : "false";
  }
};

// Maps an axis of a scratch value to the axes that a reshape merged into it.
using MergedAxes = std::map<size_t, std::vector<Axis>>;

// The operands of cat() that one leaf reads (nest/joined_reads.h). Each vector of the leaf lies in
// one of the operands.
struct JoinedParts {
  std::vector<int> operands;      // indices in Fused::inputs, in the order of cat()
  std::vector<std::string> ends;  // kernel sizes: where each operand but the last ends
  int place = -1;                 // index in Fused::inputs of the positions along the joined axis
};

// A tensor that the loop nest reads or writes. `axes` maps the axes of the tensor to axes of the
// loop nest.
struct Operand {
  std::string tensor;
  DType dtype = DType::f32;
  Shape shape;            // shape in the task file; if `reshaped`, after the reshape
  std::vector<int> axes;  // axis of the nest for each axis; -1: broadcast
  bool reshaped = false;  // `shape` is a view of the whole contiguous tensor
  Shape original;         // shape of the whole tensor, not reshaped
  bool kept = false;      // a value in scratch memory, with the sizes `extents`
  std::vector<std::string> extents;
  MergedAxes parts;                // axes that a reshape merged into a scratch value's axes
  std::vector<Start> starts = {};  // by axis; empty: the whole tensor
  // The operand is not a tensor: each element is the sum of position * step over the axes. An empty
  // `steps` means one axis with step 1.
  bool counts = false;
  bool fixed_count = false;  // the module fixes the length: torch.arange(20)
  std::vector<int64_t> steps = {};
  WriteMode mode = WriteMode::store;  // only for outputs
  // If not empty, the operand stands for all operands of a cat(), and its other fields describe one
  // of these operands.
  JoinedParts joined = {};
  bool in_join = false;  // the operand is listed in JoinedParts::operands
  bool is_joined() const { return !joined.operands.empty(); }
  bool sliced() const { return !starts.empty(); }
  bool gathered() const {
    return std::any_of(starts.begin(), starts.end(), [](const Start& s) { return s.index >= 0; });
  }
};

struct FusedOutput {
  Operand operand;
  int inst = -1;
};

// A size that a kernel uses as a number: the kernel parameter's name, and the plan expression of
// its value.
using SizeParameter = std::pair<std::string, std::string>;

// A leaf that the kernel does not read, but computes: a convolution or pooling.
struct WindowLeaf {
  Window window;
  int inst = -1;
  Operand input, weight;
  int wgmma = 0;  // how many wgmma products replace one product; 0: no wgmma
};

struct Fused {
  std::map<std::string, std::string> names;  // tensor -> identifier in plans and kernels
  std::vector<SizeParameter> sizes;
  std::vector<Axis> axes;
  std::vector<Inst> insts;
  std::vector<Operand> inputs;
  std::vector<FusedOutput> outputs;
  std::optional<WindowLeaf> window;
  // If set, the outputs are the values and positions that a topk, sort or argsort returns.
  std::optional<Choice> choice = {};
  // If set, the outputs are the results of a recurrent layer (LSTM, GRU or RNN), over the axes
  // steps, batch and states.
  std::optional<Recurrence> recurrence = {};
  std::vector<std::string> demands = {};  // the plan's requirements on sizes
  std::string when = {};  // a plan expression; the stage runs only at shapes at which it is not 0
  bool spare = false;     // `when` is 0 at the official shape
  // The numbers of reduced elements at the shapes that the evaluator times, ascending and without
  // duplicates. The list is empty if all these shapes have the same number as the official shape,
  // or if a number is not known.
  std::vector<int64_t> lengths = {};
  // Returns whether the stage needs a special operator's kernel instead of a loop nest.
  bool special() const { return choice || recurrence; }
  bool reduces() const;
  bool scans() const;
  int max_depth() const;
};

// The values that earlier stages store in scratch memory, with the sizes of the values' axes as
// plan expressions.
using Kept = std::map<std::string, std::vector<std::string>>;

// For each axis of a value in scratch memory, the texts that name sizes equal to the axis' size at
// every shape (ties.h).
using SizeTexts = std::map<std::string, std::vector<std::set<std::string>>>;

// Pairs of plan expressions of sizes.
using EqualSizes = std::vector<std::pair<std::string, std::string>>;

struct Region {
  // The range of elements along one axis of an output that a Fused computes.
  struct Part {
    size_t axis = 0;
    int64_t length = 0;
    Start start;
    // The joined values whose elements precede the part along the axis. If their sizes are known,
    // the part begins at the sum of their sizes, and not at `start`.
    std::vector<std::string> before = {};
    // If the output goes to scratch: the size of the complete axis as a plan expression. This part
    // has only `length` elements.
    std::string whole = {};
  };
  struct Output {
    std::string tensor, value;
    DType dtype = DType::f32;
    bool kept = false;                // the tensor is scratch with the value's name
    std::optional<Part> part = {};    // nullopt: the whole output
    std::optional<Write> write = {};  // set if the value changes a mutated tensor
  };
  const Decomposed& source;
  std::map<std::string, std::string> names;  // tensor or scratch value -> identifier
  Kept kept;
  std::vector<Output> outputs;
  // For each value in `kept`, the axes that a reshape merged into its axes.
  std::map<std::string, MergedAxes> parts = {};
  SizeTexts same = {};
  // Sizes that are equal at every shape at which the program runs the region's stage.
  EqualSizes equal = {};
  // Whether operands may be slices of tensors. If false, an earlier stage copies slices.
  bool slices = false;
  // Whether products may read packed weights (graph/weights.h) themselves, without an earlier stage
  // that unpacks the weights.
  bool packed = false;
};
struct Attempt {
  Result<Fused> fused;
  // After an error, the value that an earlier stage should store; empty if that would not help.
  std::string cut;
  // If a common loop nest would be wrong at some shapes, `apart` has the groups of outputs (indices
  // of Region::outputs) that should have loop nests of their own, unless there is only one group.
  // `equal` then has the sizes that must be equal for the common nest to be right, unless plan
  // expressions cannot express these sizes.
  std::vector<std::vector<size_t>> apart = {};
  EqualSizes equal = {};
};

Attempt fuse(const Region& region);
// Returns the whole task as one Fused, or an error that says why one loop nest cannot compute it.
Result<Fused> fuse(const Task& task);
// The two steps of fuse(task): prepare() returns the task's graph without in-place operators, and
// fuse_graph() fuses this graph. A graph's placeholder that is not a tensor of the task becomes a
// leaf whose tensor has no entry in Fused::names.
Result<Graph> prepare(const Task& task);
Result<Fused> fuse_graph(const Task& task, const Graph& graph);
std::vector<Region::Output> outputs_of(const Task& task, const Graph& graph);
// Returns whether the operator needs a stage of its own, which may also do pointwise work after the
// operator.
bool has_own_stage(const Node& node);
// Returns whether an index tensor that varies along the reduced axes selects the operand's
// elements.
bool gathers_along(const Fused& fused, const Operand& operand);
// Returns the nodes on which `values` depend, in the graph's order, without nodes on which only the
// values in `kept` depend.
std::vector<const Node*> nodes_above(const Graph& graph, std::vector<std::string> values,
                                     const Kept& kept);

}  // namespace cutegen::recipes
