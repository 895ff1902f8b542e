// SPDX-License-Identifier: Apache-2.0
// Finds the SEARCH text of an edit in a file.
//
// Contract: first searches for the exact text, then compares whole lines without their leading and
// trailing blanks. If the text does not occur, the returned Reask (a message to the model) shows
// the most similar lines. If it occurs several times, the Reask shows the places.
//
// Example: auto place = find_anchor(source, edit); source.replace(place->begin, place->size, ...)
#pragma once

#include "agent/reply.h"

namespace cutegen::agent {

struct Place {
  size_t begin = 0, size = 0;
  // Whether the comparison of lines found the text. Then the replacement must be whole lines, too.
  bool whole_lines = false;
};
tl::expected<Place, Reask> find_anchor(const std::string& text, const SearchReplace& edit);
// Returns lines `first` to `last` (counted from 1), each with its number, for messages.
std::string numbered_lines(const std::string& text, int first, int last);

}  // namespace cutegen::agent
