// SPDX-License-Identifier: Apache-2.0
// FieldRule: what base/fields.h must know about a field besides its name and type.
//
// Contract: `+` joins rules of a field. Of two bounds, the narrower one applies. A rule for a list
// also applies to its entries.
//
// Example: v("runs", x.runs, field::if_set + field::clamped(0, 1000));
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace cutegen {

struct FieldRule {
  bool may_lack = false;  // if the field is absent, the value stays as it is
  bool if_set = false;    // written only if not empty, false or zero
  bool written = true;
  bool or_null = false;  // an empty optional is written as null
  bool object = false;   // a field of type Json must be an object
  // true: moves numbers outside [low, high] to the nearer bound; false: refuses them.
  bool clamps = false;
  int64_t low = INT64_MIN, high = INT64_MAX;
  size_t most = SIZE_MAX;       // most entries of a list
  size_t most_keys = SIZE_MAX;  // most entries of a map
  size_t shown = 0;             // text is sanitized and cut at this many bytes; 0: unchanged
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

// Written only if `now`; the reader accepts that it is absent.
inline constexpr auto written_if = [](bool now) {
  return FieldRule{.may_lack = true, .written = now};
};
// At most n entries; an absent list is empty.
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
