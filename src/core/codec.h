// SPDX-License-Identifier: Apache-2.0
// Helpers of core's JSON codecs: enumerations by name, arrays of objects, schema tags.
//
// Contract: every error names a JSON pointer. For an unknown enumeration name, the error suggests a
// near match or lists the known names. Private to core.
//
// Example: CG_TRY(auto role, enum_field(r, "role", kRoles));
#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace cutegen::codec {

template <class E, size_t N>
using Names = std::array<std::pair<E, const char*>, N>;

template <class E, size_t N>
const char* name_of(const Names<E, N>& names, E value) {
  for (const auto& [v, name] : names)
    if (v == value) return name;
  CG_ASSERT(false);
  return "";
}

template <class E, size_t N>
Result<E> value_of(const Names<E, N>& names, const std::string& name, const std::string& what,
                   const std::string& where = {}) {
  std::vector<std::string> known;
  for (const auto& [v, n] : names) {
    if (name == n) return v;
    known.emplace_back(n);
  }
  auto near = nearest(name, known);
  std::string list;
  for (const auto& k : known) list += (list.empty() ? "" : ", ") + k;
  return user_error(fmt::format("unknown {} '{}'", what, name), where,
                    near ? "did you mean '" + *near + "'?" : "one of " + list);
}

template <class E, size_t N>
Result<E> enum_field(ObjectReader& r, const std::string& key, const Names<E, N>& names) {
  CG_TRY(std::string name, r.string(key));
  return value_of(names, name, key, r.place(key));
}

// Sets `where` of an error that names no place.
template <class T>
Result<T> at(Result<T> result, const std::string& where) {
  if (!result && result.error().where.empty()) result.error().where = where;
  return result;
}

// Calls f(const Json& element, const std::string& where) -> Result<T> for each element of an array
// of at most `limit` elements.
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

// An array of integers >= `least`.
Result<std::vector<int64_t>> integers(const Json& json, const std::string& where, int64_t least,
                                      size_t limit);

// Refuses a value whose "schema" is not `expected` ("cutegen.task.v1").
Result<void> check_schema(ObjectReader& r, const std::string& expected);

template <class T>
Json array_of(const std::vector<T>& values, Json (*encode)(const T&)) {
  Json out = Json::array();
  for (const T& v : values) out.push_back(encode(v));
  return out;
}

}  // namespace cutegen::codec
