// SPDX-License-Identifier: Apache-2.0
// NestWriter: the loop nest (`Fused`) that a Builder writes, and functions that add instructions.
//
// Contract: a function that adds an instruction returns the instruction's index. Two calls with the
// same arguments return the same instruction, except for constants.
//
// Example: int total = nest.reduce("total", ReduceKind::sum, x);
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "recipes/fuse/fused.h"

namespace cutegen::recipes {

// Where the elements of a value lie in a loop nest (builder.h).
struct View {
  std::vector<int> axes;
  std::optional<Shape> reshaped;
  // Where a View that is a slice begins along each axis of the value; empty for other Views.
  std::vector<Start> starts = {};
};

class NestWriter {
 public:
  NestWriter(const Region& region, std::vector<Axis> axes);

  const Region& region() const { return region_; }
  const Graph& graph() const { return graph_; }
  Fused& fused() { return fused_; }
  Shape shape_of(const std::string& name) const;

  int make(const std::string& name, const std::string& code, std::vector<int> inputs,
           bool boolean = false, bool integer = false);
  int reduce(const std::string& name, ReduceKind kind, int input);
  int constant(const std::string& code);
  int count() { return constant(kCount); }
  int position();  // index of an element along the reduced axes
  // Adds a leaf whose value is the position along the nest's axis `axis`.
  int places(int axis, const std::string& extent = "");
  // Adds a leaf whose value is the sum of position * step over the (axis, step) pairs in `terms`.
  int line(const std::vector<std::pair<int, int64_t>>& terms);

  // Returns the value that an earlier stage must store, or "". The first call of cut_before() or
  // cut_at() sets this value.
  const std::string& cut() const { return cut_; }
  void set_cut(std::string name) { cut_ = std::move(name); }
  void cut_before(const std::string& name);
  // Returns the error for a use of `node` that requires an earlier stage to store the node's value.
  tl::unexpected<Error> cut_at(const Node& node, const std::string& why);
  // Returns a value from which a fill such as zeros_like(x) takes a size that has no plan
  // expression yet, or "".
  const std::string& unsized() const { return unsized_; }
  void set_unsized(std::string name) { unsized_ = std::move(name); }

 private:
  int add(Inst inst);

  const Region& region_;
  const Graph& graph_;
  Fused fused_;
  std::string cut_, unsized_;
  std::map<std::string, int> built_;
};

}  // namespace cutegen::recipes
