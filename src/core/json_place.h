// SPDX-License-Identifier: Apache-2.0
// Finds the line and column of a JSON pointer: "plan.json#/steps/0/grid" becomes "plan.json:12:7".
//
// Contract: place_of() returns the line and column, counted from 1, of the value at a JSON pointer
// ("" is the whole text). If the text lacks only the last key of the pointer, it returns the place
// of the enclosing object. If the text lacks an earlier key, it returns nullopt. For invalid JSON,
// it returns nullopt or an arbitrary place. It neither throws nor recurses.
//
// Example: print(with_place(error, text).text());  // "plan.json:12:7: error: ..."
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace cutegen {

std::optional<std::pair<int, int>> place_of(std::string_view text, std::string_view pointer);
// Changes the error's `where` from "NAME#POINTER" to "NAME:LINE:COL". Returns an error with any
// other `where` unchanged.
Error with_place(Error error, std::string_view text);

}  // namespace cutegen
