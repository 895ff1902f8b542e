// SPDX-License-Identifier: Apache-2.0
// Builder: goes through a graph from its outputs to its tensors and writes the instructions of a
// loop nest (`Fused`). A leaf is an instruction that reads an operand.
//
// Contract: value() returns the instruction that computes a value at one position of the loop nest.
// For each axis of the value, a `View` gives the corresponding axis of the loop nest, or -1 if the
// value does not vary along the axis. For a reshaped value, it also has the shape of the whole
// contiguous value. Two calls with the same name and View return the same instruction. If one loop
// nest cannot compute the value, value() returns an error. cut() then names the intermediate value
// that an earlier stage of the program would have to store, or is empty if that would not help.
//
// Example: builder.value("relu", {{0, 1}, {}})
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "recipes/graph/gathers.h"
#include "recipes/graph/pointwise.h"
#include "recipes/graph/reductions.h"
#include "recipes/nest/fused.h"
#include "recipes/views/slice_part.h"

namespace cutegen::recipes {

struct View {
  std::vector<int> axes;
  std::optional<Shape> reshaped;
  // Where a View that is a slice begins along each axis of the value; empty for other Views.
  std::vector<Start> starts = {};
};

// is_view() is true for operators that only change the shape or strides of a value. is_fill() is
// true for operators that fill a tensor with one constant.
bool is_view(const Node& node);
bool is_fill(const Node& node);
// Returns whether a fill takes its sizes from another value, like zeros_like(x).
bool is_like(const Node& node);
// Returns whether the operator returns parts of its input (slice, select, split, unbind).
bool is_slice(const Node& node);
// Returns whether the operator joins its operands along an existing axis (cat) or a new axis
// (stack).
bool is_join(const Node& node);
// The new axis along which an operator stacks tensors.
struct Stacked {
  size_t axis = 0;
  int64_t count = 0;  // tensors
};
// Returns nothing unless the operator stacks tensors along an axis behind another axis.
std::optional<Stacked> stacked(const Node& node);
// Returns the shape of stacked tensors after a reshape has merged the new axis with the axis
// before.
Shape merged_turns(const Stacked& turns, Shape shape);

class Builder {
 public:
  Builder(const Region& region, std::vector<Axis> axes);
  Result<int> value(const std::string& name, const View& view);
  // Makes the output write to the elements of a mutated tensor that `write` replaces.
  Result<void> aim(Operand& output, const Write& write);
  Fused& fused() { return fused_; }
  const std::string& cut() const { return cut_; }
  // A value whose sizes a fill takes, but which no expression gives yet; empty if there is none.
  const std::string& unsized() const { return unsized_; }

 private:
  Result<int> build(const std::string& name, const Node* node, const View& view);
  Result<int> size(const std::string& text);
  Result<int> size_of(const SizeArgument& size);
  Result<int> lifted(const Node& node);
  Result<int> leaf(const std::string& name, const View& view);
  Result<int> pointwise(const Node& node, const Pointwise& p, const View& view);
  Result<std::optional<int>> through_view(const Node& node, const View& view);
  Result<int> gathered(const Node& node, const Gather& gather, const View& view);
  Result<int> index(const Node& node, const std::string& name, const View& view);
  Shape index_shape(const Gather& gather) const;
  Shape shape_of(const std::string& name) const;
  Result<int> joined(const Node& node, const View& view);
  Result<int> sliced(const Node& node, size_t output, const View& view);
  Result<Start> start_of(const Node& node, size_t output, const SlicePart& part,
                         const std::string& from, int64_t length, int64_t along);
  std::string length_text(const Node& node, size_t item) const;
  std::string bound_text(const Node& node, size_t index) const;
  Result<int> interleaved(const Node& node, const std::string& from, const View& view);
  Result<int> reshape(const Node& node, const std::string& from, const View& view);
  Result<int> inside(const Node& node, const View& view);
  Result<int> shifted(const Node& node, const View& view);
  Result<int> counting(const Node& node, const View& view);
  Result<int> affine(const Node& node, const View& view);
  Result<int> filled(const Node& node, const View& view);
  Result<std::string> with_sizes(const std::string& value, std::string expression);
  void show_slice(const Node& node, const SlicePart& part, const std::string& from,
                  const View& view);
  Result<int> values(const Node& node, const View& view);
  // Adds a leaf with the value sum of position * step over the (axis, step) pairs in `terms`.
  int line(const std::vector<std::pair<int, int64_t>>& terms);
  std::string size_parameter(const std::string& expression);
  // If an argument of the node is a list of sizes, sets the sizes of the nest's axes from the list.
  void show_sizes(const Node& node, const View& view);
  Result<int> chosen(const Node& node, const View& view, size_t axis);
  std::optional<std::string> extent_of(const std::string& name, size_t axis) const;
  std::optional<std::string> shifted_extent(const Node& node, size_t axis) const;
  // Adds a leaf whose value is the position along the nest's axis `axis`.
  int places(int axis, const std::string& extent = "");
  int size_along(int axis, const std::string& expression);
  Result<int> reduction(const Node& node, const Reduction& r, const View& view);
  int picked(const Reduction& r, int index);
  View rows_view() const;
  Result<int> counted(const Node& node, const Reduction& r, int x);
  Result<int> scan(const Node& node, const Reduction& r, int input);
  Result<int> affine(const Reduction& r, const View& view, int normalized);
  bool takes_elements(const Reduction& r, const View& view) const;
  Result<void> check_axes(const Node& node, const Reduction& r, const View& view) const;
  View broadcast(const Shape& from, const Shape& to, const View& view) const;
  std::optional<View> broadcast_reshaped(const Shape& from, const Shape& to,
                                         const View& view) const;
  std::vector<int> as_numbers(const Node& node, const Pointwise& p, std::vector<int> inputs);
  // Returns the error for a use of `node` that requires an earlier stage to store the node's value.
  tl::unexpected<Error> cut_at(const Node& node, const std::string& why);
  // make(), reduce(), constant(), count(), position(): add an instruction and return its index.
  int make(const std::string& name, const std::string& code, std::vector<int> inputs,
           bool boolean = false, bool integer = false);
  int reduce(const std::string& name, ReduceKind kind, int input);
  int constant(const std::string& code);
  int count() { return constant(kCount); }
  int position();  // index of an element along the reduced axes
  // Adds an instruction for the reduction's result at the element `at`.
  int expanded(const Reduction& r, int x, int at);
  int norm(double order, int x);

  const Region& region_;
  const Graph& graph_;
  Fused fused_;
  std::string cut_, unsized_;
  std::map<std::string, int> built_;
};

}  // namespace cutegen::recipes
