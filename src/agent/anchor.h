// SPDX-License-Identifier: Apache-2.0
// Finds the text that an edit names in a file.
//
// Contract: looks for the exact text first, then compares whole lines without the blanks at their
// ends. If the text occurs nowhere, the Reask shows the most similar lines; if it occurs several
// times, the Reask shows the places.
//
// Example: auto place = find_anchor(source, edit); source.replace(place->begin, place->size, ...)
#pragma once

#include "agent/reply.h"

namespace cutegen::agent {

struct Place {
  size_t begin = 0, size = 0;
  bool whole_lines = false;  // found line by line, so the replacement must be whole lines
};
tl::expected<Place, Reask> find_anchor(const std::string& text, const SearchReplace& edit);
// Lines `first` to `last` (from 1) with their numbers, for messages.
std::string numbered_lines(const std::string& text, int first, int last);

}  // namespace cutegen::agent
