// SPDX-License-Identifier: Apache-2.0
// What all kernels of the windows recipe take: sizes and strides, and the text behind a window.
//
// Contract: geometry() lists the numbers of the input, the result and the weights, for three axes:
// missing ones come first and have size 1. Tail writes the device function `compute` for one
// element and the statements that call it at the place (n, channel, p0, p1, p2) with `window`. Many
// channels of a place share what `at`, a Place, holds: then the statements read element `c` of
// them.
//
// Example: Tail tail(fused); tail.compute(); tail.finish(); tail.numbers()
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "recipes/emit/emit.h"

namespace cutegen::recipes {

// Numbers that a kernel takes, with their plan expressions.
using Numbers = std::vector<std::pair<std::string, std::string>>;

Numbers geometry(const Fused& fused);
// The groups as a plan expression.
std::string groups_text(const Fused& fused);
// Channels of a group: output channels (official), and as plan expressions.
int64_t out_of_group(const Fused& fused);
std::string in_of_group_text(const Fused& fused);
std::string out_of_group_text(const Fused& fused);
// The largest offset of an element inside an image.
std::string last_of_image(const Fused& fused);
// Element `axis` of three, where `list` has only the last ones.
int64_t padded(const Shape& list, size_t axis, int64_t missing);
// Adds numbers to the arguments; returns their declarations.
std::string add_numbers(Json& args, const Numbers& numbers);

// Writes what follows the window, element by element, and the tensors of the kernel.
class Tail {
 public:
  enum class By { element, place };
  explicit Tail(const Fused& fused, By by = By::element);
  // The strides that finish() reads its operands by.
  const Numbers& numbers() const { return numbers_; }
  // Writes the device function for one element: from the window's result to the outputs.
  std::string compute();
  std::string finish();
  // By place, after finish(): the members of Place, and their values for the channel `channel0`.
  const Numbers& offsets() const { return offsets_; }
  // By place, after finish(), which computes one element only: the members of Reads and the
  // statements that read them; the members of Results and the statements that store them.
  const std::string& members() const { return members_; }
  const std::string& reads() const { return reads_; }
  const std::string& results() const { return results_of_place_; }
  const std::string& stores() const { return stores_; }
  // Channels to compute together: each keeps its operands in registers.
  int together() const { return leaves_.size() < 2 ? 8 : leaves_.size() < 3 ? 4 : 1; }
  // What the plan must require of the operands' strides.
  const std::vector<std::string>& requirements() const { return requirements_; }
  // Declares every tensor once: the window's operands, other inputs, outputs.
  std::string declare(Json& args) const;

 private:
  const Inst& at(int inst) const { return fused_.insts[static_cast<size_t>(inst)]; }
  const Operand& operand(int inst) const {
    return fused_.inputs[static_cast<size_t>(at(inst).operand)];
  }
  const std::string& name(const Operand& o) const { return fused_.names.at(o.tensor); }
  bool varies(const Operand& o) const;
  std::string element(const Operand& o, const std::string& word, const char* channel_of);

  const Fused& fused_;
  const WindowLeaf& leaf_;
  Code code_;
  By by_;
  std::vector<int> results_, leaves_;
  Numbers numbers_, offsets_;
  std::string members_, reads_, results_of_place_, stores_;
  std::vector<std::string> requirements_;
};

}  // namespace cutegen::recipes
