// SPDX-License-Identifier: Apache-2.0
// Moves long texts of an event (sources, compiler logs) into blobs, which the store keeps once per
// hash.
//
// Contract: take_long_texts replaces every string of kLongText bytes or more by {"$blob": hash} and
// passes the text to `put`; restore_long_texts puts the text back. Data that already has the form
// {"$blob": ...} survives the round trip.
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
