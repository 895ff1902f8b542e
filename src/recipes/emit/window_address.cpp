// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/window_address.h"

#include <fmt/format.h>

#include "base/text.h"
#include "recipes/nest/windowed.h"

namespace cutegen::recipes {

bool differs(const Operand& o) {
  for (int axis : o.axes)
    if (axis >= 0 && axis != 1) return true;
  return false;
}

// The element of an operand at the current place of the nest.
std::string Addresses::element(const Operand& o, const std::string& word, const char* channel_of) {
  if (by_place_) return element_by_place(o, word, channel_of);
  std::vector<std::string> terms;
  for (size_t i = 0; i < o.axes.size(); ++i) {
    if (o.axes[i] < 0) continue;
    const std::string stride = code_.word(fmt::format("{}_s{}", word, i));
    numbers_.emplace_back(stride, stride_text(fused_, o, i));
    terms.push_back(fmt::format("{} * {}", axis_text(o.axes[i], "channel"), stride));
  }
  return fmt::format("{}[{}]", fused_.names.at(o.tensor), terms.empty() ? "0" : join(terms, " + "));
}

// The same, where a Place knows where the tile's first channel lies.
std::string Addresses::element_by_place(const Operand& o, const std::string& word,
                                        const char* channel_of) {
  if (!found_.count(&o)) {
    Address address;
    std::vector<std::string> terms;
    for (size_t i = 0; i < o.axes.size(); ++i) {
      if (o.axes[i] < 0) continue;
      const std::string stride = code_.word(fmt::format("{}_s{}", word, i));
      numbers_.emplace_back(stride, stride_text(fused_, o, i));
      terms.push_back(fmt::format("{} * {}", axis_text(o.axes[i], "channel0"), stride));
      if (o.axes[i] != 1) continue;
      address.channel = stride;
      requirements_.push_back(fmt::format("{} <= 1000000000", stride_text(fused_, o, i)));
    }
    if (!terms.empty()) {
      address.offset = code_.word("at_" + word);
      offsets_.emplace_back(address.offset, join(terms, " + "));
    }
    found_[&o] = address;
  }
  const Address& address = found_.at(&o);
  if (address.offset.empty()) return fused_.names.at(o.tensor) + "[0]";
  if (address.channel.empty())
    return fmt::format("{}[at.{}]", fused_.names.at(o.tensor), address.offset);
  return fmt::format("cutegen::conv_channel({}, at.{}, {}, {})", fused_.names.at(o.tensor),
                     address.offset, channel_of, address.channel);
}

// Where the current place lies along an axis of the nest.
std::string Addresses::axis_text(int axis, const char* channel) const {
  if (axis == 0) return "n";
  if (axis == 1) return channel;
  return fmt::format("p{}", static_cast<size_t>(axis) + 1 - fused_.window->window.rank());
}

}  // namespace cutegen::recipes
