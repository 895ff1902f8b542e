// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace cutegen {
namespace {

std::string scaled(double value, const char* unit) {
  static constexpr std::array<const char*, 6> prefixes{"", "K", "M", "G", "T", "P"};
  size_t i = 0;
  while (std::abs(value) >= 1000 && i + 1 < prefixes.size()) value /= 1000, ++i;
  return i == 0 ? fmt::format("{:.0f} {}", value, unit)
                : fmt::format("{:.3g} {}{}", value, prefixes[i], unit);
}

}  // namespace

std::string human(Bytes bytes) {
  return scaled(double(bytes.value), "B");
}
std::string human(Flops flops) {
  return scaled(flops.value, "FLOP");
}

std::string human_ns(double ns) {
  if (std::abs(ns) < 1e3) return fmt::format("{:.0f} ns", ns);
  if (std::abs(ns) < 1e6) return fmt::format("{:.3g} us", ns / 1e3);
  if (std::abs(ns) < 1e9) return fmt::format("{:.3g} ms", ns / 1e6);
  return fmt::format("{:.3g} s", ns / 1e9);
}

}  // namespace cutegen
