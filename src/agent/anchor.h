// SPDX-License-Identifier: Apache-2.0
// Finds the text that an edit names in a file.
//
// Contract: first exactly; then line by line, blanks at both ends of the lines ignored, whole lines
// only. More than one place, or none, is a Reask that shows the places, or the lines most like it.
//
// Example: auto place = find_anchor(source, edit); source.replace(place->begin, place->size, ...)
#pragma once

#include "agent/reply.h"

namespace cutegen {

struct Place {
  size_t begin = 0, size = 0;
  bool whole_lines = false;  // found line by line: the replacement stands for whole lines
};
[[nodiscard]] tl::expected<Place, Reask> find_anchor(const std::string& text,
                                                     const SearchReplace& edit);
// Lines `first` to `last` (from 1) with their numbers, for messages.
[[nodiscard]] std::string numbered_lines(const std::string& text, int first, int last);

}  // namespace cutegen
