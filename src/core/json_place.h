// SPDX-License-Identifier: Apache-2.0
// Places in JSON text: from "plan.json#/steps/0/grid" to "plan.json:12:7".
//
// Contract: place_of returns line and column, from 1, of the value that a JSON pointer names ("" is
// the whole text). If the pointer's last field is missing, it returns the place of the object that
// lacks the field; if more is missing, nullopt. If the text is not valid JSON, the result is any
// place or nullopt. Never throws, never recurses on the text.
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
// The error with `where` changed from "NAME#POINTER" to "NAME:LINE:COL"; other errors stay as they
// are.
Error with_place(Error error, std::string_view text);

}  // namespace cutegen
