// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/repeated.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/units.h"

namespace cutegen::eval {
namespace {

constexpr int64_t kHostPage = 4096;
constexpr int64_t kWhole = int64_t{8} << 20;  // tensors up to this size are in memory as a whole
constexpr int64_t kRoom = int64_t{64} << 20;  // the same limit for Hold::more
constexpr int64_t kMost = int64_t{256} << 20;
constexpr int64_t kMostWindows = 8192;

int64_t count_from(const Shape& shape, size_t dim) {
  int64_t n = 1;
  for (size_t d = dim; d < shape.size(); ++d) n *= shape[d];
  return n;
}

void expand(const Shape& cut, const Shape& held, size_t dim, const std::byte* from, std::byte* to,
            int64_t element) {
  if (std::equal(cut.begin() + int64_t(dim), cut.end(), held.begin() + int64_t(dim))) {
    std::memcpy(to, from, size_t(count_from(cut, dim) * element));
    return;
  }
  const int64_t step_from = count_from(cut, dim + 1) * element,
                step_to = count_from(held, dim + 1) * element;
  for (int64_t i = 0; i < held[dim]; ++i) {
    std::byte* at = to + i * step_to;
    if (i < cut[dim])
      expand(cut, held, dim + 1, from + i * step_from, at, element);
    else
      std::memcpy(at, at - cut[dim] * step_to, size_t(step_to));
  }
}

}  // namespace

Result<Repeated> Repeated::place(DType dtype, Shape full, Shape cut, Hold hold) {
  Repeated r{.dtype = dtype, .full = full, .cut = std::move(cut), .held = full};
  const auto element = int64_t(size_of(dtype));
  CG_TRY(int64_t count, element_count(r.full));
  if (__builtin_mul_overflow(count, element, &r.bytes))
    return unsupported_error("a tensor is too large to be addressed");
  r.held_bytes = r.bytes;
  size_t lead = 0;
  while (lead < r.full.size() && r.full[lead] == r.cut[lead]) ++lead;
  const int64_t whole = hold == Hold::little ? kWhole : kRoom;
  const bool outermost = lead < r.full.size() && count_from(r.full, lead) == count;
  if (r.bytes > whole && outermost && hold != Hold::all) {
    const int64_t row = count_from(r.full, lead + 1) * element, excerpt = r.cut[lead] * row;
    const int64_t step =
        excerpt * (kHostPage / std::gcd(kHostPage, excerpt));  // a multiple of both
    const int64_t wanted = std::max(whole, r.bytes / kMostWindows);
    const int64_t held = step * std::max<int64_t>(1, wanted / step);
    if (held < r.bytes) r.held[lead] = held / row, r.held_bytes = held;
  }
  if (r.held_bytes > kMost)
    return unsupported_error(fmt::format("{} of {} would have to be in memory",
                                         human(Bytes{r.held_bytes}), human(Bytes{r.bytes})));
  return r;
}

void Repeated::fill(std::span<const std::byte> excerpt, std::span<std::byte> memory) const {
  CG_ASSERT(int64_t(memory.size()) == held_bytes);
  if (held_bytes > 0) expand(cut, held, 0, excerpt.data(), memory.data(), int64_t(size_of(dtype)));
}

void Repeated::each_tile(const std::function<void(const Shape&)>& f) const {
  if (held_bytes == 0) return;
  Shape origin(held.size(), 0);
  for (;;) {
    f(origin);
    size_t d = held.size();
    while (d > 0) {
      --d;
      origin[d] += cut[d];
      if (origin[d] < held[d]) break;
      origin[d] = 0;
      if (d == 0) return;
    }
    if (held.empty()) return;
  }
}

void Repeated::each_run(const Shape& origin,
                        const std::function<void(int64_t, int64_t, int64_t)>& f) const {
  if (held.empty()) return f(0, 0, 1);
  const size_t last = held.size() - 1;
  const int64_t run = std::min(cut[last], held[last] - origin[last]);
  Shape at(held.size(), 0);
  for (;;) {
    int64_t in_cut = 0, in_held = 0;
    for (size_t d = 0; d <= last; ++d) {
      in_cut = in_cut * cut[d] + at[d];
      in_held = in_held * held[d] + origin[d] + at[d];
    }
    f(in_cut, in_held, run);
    size_t d = last;
    while (d > 0) {
      --d;
      if (++at[d] < cut[d] && origin[d] + at[d] < held[d]) break;
      at[d] = 0;
      if (d == 0) return;
    }
    if (last == 0) return;
  }
}

}  // namespace cutegen::eval
