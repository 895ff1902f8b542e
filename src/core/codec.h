// SPDX-License-Identifier: Apache-2.0
// Helpers for the parser of plan.json: functions that read arrays of objects and add places to
// errors.
//
// Contract: every error names a JSON pointer. Only src/core includes this file. For all other JSON,
// cutegen uses base/fields.h.
//
// Example: CG_TRY(auto steps, codec::list<Step>(r, "steps", kMaxSteps, step_from));
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/json.h"

namespace cutegen::codec {

// If the result is an error without a place, sets the error's place to `where`.
template <class T>
Result<T> at(Result<T> result, const std::string& where) {
  if (!result && result.error().where.empty()) result.error().where = where;
  return result;
}

// Parses an array of at most `limit` elements: calls f(element, where), which returns Result<T>,
// for each element.
template <class T, class F>
Result<std::vector<T>> list(ObjectReader& r, const std::string& key, size_t limit, F f) {
  CG_TRY(Json array, r.array_or_empty(key));
  if (array.size() > limit)
    return user_error(fmt::format("{} entries; the limit is {}", array.size(), limit),
                      r.place(key));
  std::vector<T> out;
  out.reserve(array.size());
  for (size_t i = 0; i < array.size(); ++i) {
    CG_TRY(T value, f(array[i], fmt::format("{}/{}", r.place(key), i)));
    out.push_back(std::move(value));
  }
  return out;
}

template <class T>
Json array_of(const std::vector<T>& values, Json (*encode)(const T&)) {
  Json out = Json::array();
  for (const T& v : values) out.push_back(encode(v));
  return out;
}

}  // namespace cutegen::codec
