// SPDX-License-Identifier: Apache-2.0
// Describes what the wrong elements of an output have in common: rows, columns, tiles, the tail.
//
// Contract: uses positions only, never values of the truth. It views the shape as rows (all
// dimensions but the last) and columns. Returns the first description that fits, the most specific
// first; "scattered" if none fits. Example: "columns from 96 on", "the last 3 elements".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/compare.h"

namespace cutegen {

std::string describe_pattern(const Judgement& judgement, const Shape& shape);
// Coordinates of the first `most` wrong elements.
std::vector<std::vector<int64_t>> first_wrong(const Judgement& judgement, const Shape& shape,
                                              size_t most);

}  // namespace cutegen
