// SPDX-License-Identifier: Apache-2.0
// Where a kernel with a window finds the elements of its operands.
//
// Contract: element() is the text of an operand's element at the place (n, channel, p0, p1, p2). By
// place, `at`, a Place, holds where the channel `channel0` lies, and the text reads channel
// `channel_of` from there on. numbers() are the strides that the texts so far read, offsets() the
// members of Place with their values, requirements() what the plan must require of the strides.
//
// Example: Addresses a(fused, code, true); a.element(operand, "bias", "c"); a.offsets()
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "recipes/emit/emit.h"

namespace cutegen::recipes {

// Numbers that a kernel takes, with their plan expressions.
using Numbers = std::vector<std::pair<std::string, std::string>>;

// Whether an operand differs from place to place. One that does not, such as a bias, stays in the
// L1 cache, so it is not read ahead: that would take registers.
bool differs(const Operand& o);

class Addresses {
 public:
  Addresses(const Fused& fused, Code& code, bool by_place)
      : fused_(fused), code_(code), by_place_(by_place) {}
  std::string element(const Operand& o, const std::string& word, const char* channel_of);
  const Numbers& numbers() const { return numbers_; }
  const Numbers& offsets() const { return offsets_; }
  const std::vector<std::string>& requirements() const { return requirements_; }

 private:
  // Member of Place, and the stride of the channels or nothing.
  struct Address {
    std::string offset, channel;
  };
  std::string element_by_place(const Operand& o, const std::string& word, const char* channel_of);
  std::string axis_text(int axis, const char* channel) const;

  const Fused& fused_;
  Code& code_;
  bool by_place_;
  Numbers numbers_, offsets_;
  std::vector<std::string> requirements_;
  std::map<const Operand*, Address> found_;
};

}  // namespace cutegen::recipes
