// SPDX-License-Identifier: Apache-2.0
// Converts enumerators to the names that JSON and messages use, and back.
//
// Contract: each enumeration E has one table of names, `Names<E> enum_names(E)` in E's namespace.
// The functions to_string() and from_name() use this table. The error for an unknown name suggests
// a similar name or lists the known names.
//
// Example:
//   Names<Status> enum_names(Status) {
//     static constexpr Name<Status> names[] = {{Status::correct, "correct"}, ...};
//     return names;
//   }
//   CG_TRY(Status status, from_name<Status>("correct", "status"));
#pragma once

#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"

namespace cutegen {

template <class E>
using Name = std::pair<E, const char*>;
template <class E>
using Names = std::span<const Name<E>>;
template <class E>
concept HasNames = std::is_enum_v<E> && requires(E e) { enum_names(e); };

tl::unexpected<Error> unknown_name(const std::string& name, const std::string& what,
                                   const std::string& where, const std::vector<std::string>& known);

template <HasNames E>
const char* to_string(E value) {
  for (const auto& [known, name] : enum_names(value))
    if (known == value) return name;
  CG_ASSERT(false);
  return "";
}

template <class E>
Result<E> from_name(const std::string& name, const std::string& what, const std::string& where,
                    Names<E> names) {
  std::vector<std::string> known;
  for (const auto& [value, text] : names) {
    if (name == text) return value;
    known.emplace_back(text);
  }
  return unknown_name(name, what, where, known);
}

template <HasNames E>
Result<E> from_name(const std::string& name, const std::string& what,
                    const std::string& where = {}) {
  return from_name<E>(name, what, where, enum_names(E{}));
}

}  // namespace cutegen
