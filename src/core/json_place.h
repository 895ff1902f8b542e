// SPDX-License-Identifier: Apache-2.0
// Places in JSON text: from "plan.json#/steps/0/grid" to "plan.json:12:7".
//
// Contract: place_of gives line and column, from 1, of the value a JSON pointer names ("" is the
// whole text); where the last field is missing, of the object that lacks it; nothing if the pointer
// leads nowhere. The text should have parsed: for other text the answer is some place or nothing.
// Never throws, never recurses on the text.
//
// Example: print(with_place(error, text).text());  // "plan.json:12:7: error: ..."
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace cutegen {

[[nodiscard]] std::optional<std::pair<int, int>> place_of(std::string_view text,
                                                          std::string_view pointer);
// The error with its `where` turned from "NAME#POINTER" into "NAME:LINE:COL"; else unchanged.
[[nodiscard]] Error with_place(Error error, std::string_view text);

}  // namespace cutegen
