// SPDX-License-Identifier: Apache-2.0
// FieldRule: how base/fields.h reads and writes one field of a struct. For example, a rule can set
// bounds for a number.
//
// Contract: `+` combines several rules for one field. If several rules set a bound, the narrowest
// bound applies. A rule for a list also applies to each entry of the list.
//
// Example: v("runs", x.runs, field::if_set + field::clamped(0, 1000));
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace cutegen {

struct FieldRule {
  bool may_lack = false;  // if the JSON lacks the field, reading keeps the struct's value
  bool if_set = false;    // writing omits the field if its value is empty, false or zero
  bool written = true;
  bool or_null = false;  // writing turns an empty optional into null
  bool object = false;   // a field of type Json must be an object
  // If true, reading replaces a number outside [low, high] by the nearer bound. If false, reading
  // refuses the number.
  bool clamps = false;
  int64_t low = INT64_MIN, high = INT64_MAX;
  size_t most = SIZE_MAX;       // largest number of entries of a list
  size_t most_keys = SIZE_MAX;  // largest number of entries of a map
  size_t shown = 0;             // if not 0, reading sanitizes text and cuts it at this many bytes
};

constexpr FieldRule operator+(const FieldRule& a, const FieldRule& b) {
  return {.may_lack = a.may_lack || b.may_lack,
          .if_set = a.if_set || b.if_set,
          .written = a.written && b.written,
          .or_null = a.or_null || b.or_null,
          .object = a.object || b.object,
          .clamps = a.clamps || b.clamps,
          .low = std::max(a.low, b.low),
          .high = std::min(a.high, b.high),
          .most = std::min(a.most, b.most),
          .most_keys = std::min(a.most_keys, b.most_keys),
          .shown = std::max(a.shown, b.shown)};
}

namespace field {

inline constexpr FieldRule may_lack{.may_lack = true};
inline constexpr FieldRule if_set{.may_lack = true, .if_set = true};
inline constexpr FieldRule or_null{.or_null = true};
inline constexpr FieldRule object{.object = true};

// Writing omits the field if `now` is false. Reading accepts JSON without the field.
inline constexpr auto written_if = [](bool now) {
  return FieldRule{.may_lack = true, .written = now};
};
// Reading accepts at most n entries, and keeps the struct's value if the JSON lacks the list.
inline constexpr auto list = [](size_t n) { return FieldRule{.may_lack = true, .most = n}; };
inline constexpr auto most = [](size_t entries) { return FieldRule{.most = entries}; };
inline constexpr auto most_keys = [](size_t keys) { return FieldRule{.most_keys = keys}; };
inline constexpr auto at_least = [](int64_t low) { return FieldRule{.low = low}; };
inline constexpr auto between = [](int64_t low, int64_t high) {
  return FieldRule{.low = low, .high = high};
};
inline constexpr auto clamped = [](int64_t low, int64_t high) {
  return FieldRule{.clamps = true, .low = low, .high = high};
};
inline constexpr auto shown = [](size_t bytes) { return FieldRule{.shown = bytes}; };

}  // namespace field
}  // namespace cutegen
