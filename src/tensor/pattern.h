// SPDX-License-Identifier: Apache-2.0
// Describes what the wrong elements of an output have in common: rows, columns, tiles, the tail.
//
// Contract: a description depends only on the positions of wrong elements, never on values of the
// truth (the result in float64). Columns are indices in the last dimension; rows are indices in all
// other dimensions together. The function describe_pattern() returns the most specific description
// that fits, or "scattered".
//
// Example: "columns from 96 on", "the last 3 elements".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/compare.h"

namespace cutegen {

std::string describe_pattern(const Judgement& judgement, const Shape& shape);
// Returns the coordinates of at most `most` wrong elements, in order of position.
std::vector<std::vector<int64_t>> first_wrong(const Judgement& judgement, const Shape& shape,
                                              size_t most);

}  // namespace cutegen
