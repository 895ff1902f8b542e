// SPDX-License-Identifier: Apache-2.0
// Strong types for quantities. The compiler refuses, for example, a byte count in place of FLOPs.
//
// Contract: the types support +, -, comparison and scaling. No plain number converts implicitly to
// one of the types. Time limits have the type Nanoseconds (base/context.h); measured and modelled
// times are doubles in nanoseconds, named with the suffix _ns. JSON keys end with the unit: _ns,
// _bytes, _flops, _usd.
//
// Example: Bytes b{1024}; b += Bytes{16}; fmt::print("{}", human(b));  // "1.02 KB"
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace cutegen {

template <class Tag, class Rep>
struct Quantity {
  Rep value{};
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep v) : value(v) {}
  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity o) {
    value += o.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    value -= o.value;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, Rep k) { return Quantity{a.value * k}; }
};

using Bytes = Quantity<struct BytesTag, int64_t>;
using Flops = Quantity<struct FlopsTag, double>;
using Usd = Quantity<struct UsdTag, double>;

std::string human(Bytes bytes);   // "6.44 GB", with powers of 1000
std::string human(Flops flops);   // "1.61 GFLOP"
std::string human_ns(double ns);  // "1.27 ms"

}  // namespace cutegen
