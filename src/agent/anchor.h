// SPDX-License-Identifier: Apache-2.0
// Finds the place in a file that a SEARCH/REPLACE edit of a language model changes.
//
// Contract: find_anchor() first searches for the exact text, then compares whole lines without
// their leading and trailing blanks. If the file does not contain the SEARCH text, the returned
// Reask (a message to the model) shows the most similar lines. If the file contains the SEARCH text
// several times, the Reask shows the places.
//
// Example: auto place = find_anchor(source, edit); source.replace(place->begin, place->size, ...)
#pragma once

#include "agent/reply.h"

namespace cutegen::agent {

struct Place {
  size_t begin = 0, size = 0;
  // True if the search compared whole lines, so that the replacement must be whole lines, too.
  bool whole_lines = false;
};
tl::expected<Place, Reask> find_anchor(const std::string& text, const SearchReplace& edit);
// Returns lines `first` to `last` (counted from 1), each with its number, for messages.
std::string numbered_lines(const std::string& text, int first, int last);

}  // namespace cutegen::agent
