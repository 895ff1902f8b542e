// SPDX-License-Identifier: Apache-2.0
// Moves long texts of an event (sources, compiler logs) into blobs. The store keeps only one copy
// of equal blobs.
//
// Contract: take_long_texts() replaces every string of kLongText bytes or more by {"$blob": hash}
// and passes the string to `put`. The function restore_long_texts() puts the strings back. Both
// functions also preserve data that already contains {"$blob": ...}.
//
// Example: Json lean = take_long_texts(data, [&](hash, text) { blobs[hash] = text; });
#pragma once

#include <functional>
#include <string>

#include "base/json.h"

namespace cutegen::store {

inline constexpr size_t kLongText = 4096;

Json take_long_texts(const Json& data,
                     const std::function<void(const std::string&, const std::string&)>& put);
Result<Json> restore_long_texts(const Json& data,
                                const std::function<Result<std::string>(const std::string&)>& get);

}  // namespace cutegen::store
