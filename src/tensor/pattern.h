// SPDX-License-Identifier: Apache-2.0
// What the wrong elements of an output have in common: rows, columns, tiles, the tail.
//
// Contract: looks at positions only, never at values of a truth. The shape is seen as rows (all
// dimensions but the last) and columns. The first description that fits wins, from the most to the
// least telling; "scattered" when none does. Example: "columns from 96 on", "the last 3 elements".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/compare.h"

namespace cutegen {

[[nodiscard]] std::string describe_pattern(const Judgement& judgement, const Shape& shape);
// Coordinates of the first `most` wrong elements.
[[nodiscard]] std::vector<std::vector<int64_t>> first_wrong(const Judgement& judgement,
                                                            const Shape& shape, size_t most);

}  // namespace cutegen
