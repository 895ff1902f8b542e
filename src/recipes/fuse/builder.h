// SPDX-License-Identifier: Apache-2.0
// Builder: goes through a graph from its outputs to its tensors and writes the instructions of a
// loop nest (`Fused`). A leaf is an instruction that reads an operand.
//
// Contract: value() returns the instruction that computes a value at one position of the loop nest.
// For each axis of the value, a `View` gives the corresponding axis of the loop nest, or -1 if the
// value does not vary along the axis. For a reshaped value, the View also has the shape of the
// whole contiguous value. Two calls with the same name and View return the same instruction. If one
// loop nest cannot compute the value, value() returns an error. cut() then names the intermediate
// value that an earlier stage of the program would have to store, or is empty if that would not
// help.
//
// Example: builder.value("relu", {{0, 1}, {}})
#pragma once

#include <map>
#include <string>
#include <vector>

#include "recipes/fuse/nest_sizes.h"
#include "recipes/fuse/nest_writer.h"

namespace cutegen::recipes {

class Builder {
 public:
  Builder(const Region& region, std::vector<Axis> axes)
      : nest_(region, std::move(axes)), sizes_(nest_) {}
  Builder(const Builder&) = delete;

  Result<int> value(const std::string& name, const View& view);
  // Makes `output` write the elements that `write` replaces in a mutated tensor.
  Result<void> aim(Operand& output, const Write& write);

  Fused& fused() { return nest_.fused(); }
  const std::string& cut() const { return nest_.cut(); }
  const std::string& unsized() const { return nest_.unsized(); }
  NestWriter& nest() { return nest_; }
  NestSizes& sizes() { return sizes_; }
  const NestSizes& sizes() const { return sizes_; }

 private:
  Result<int> build(const std::string& name, const Node* node, const View& view);
  Result<int> leaf(const std::string& name, const View& view);

  NestWriter nest_;
  NestSizes sizes_;
  std::map<std::string, int> built_;  // the instructions of values
};

}  // namespace cutegen::recipes
