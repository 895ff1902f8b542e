// SPDX-License-Identifier: Apache-2.0
// Tensors of the official shape that repeat an excerpt: what of them lies in memory, and their
// values.
//
// Contract: `full` is the official shape, `cut` the excerpt's; along each dimension that is cut the
// tensor repeats it. A large tensor whose first cut dimension is its outermost lies in memory as
// `held`, some rows, which are mapped again and again: a whole number of excerpts and of pages. All
// others are held whole. Outputs that are mapped again and again take what several blocks write at
// the same place; the truth there is the same.
//
// Example: CG_TRY(Repeated r, Repeated::place(DType::f32, {4096, 32768}, {7, 32768}, true));
#pragma once

#include <functional>
#include <span>

#include "tensor/dtype.h"

namespace cutegen::eval {

struct Repeated {
  DType dtype = DType::f32;
  Shape full, cut, held;
  int64_t bytes = 0, held_bytes = 0;
  bool mapped_again() const { return held_bytes < bytes; }

  // `unsupported` where too much would lie in memory. With `roomy` as much as is sensible is held.
  static Result<Repeated> place(DType dtype, Shape full, Shape cut, bool roomy);
  // Fills what is held (held_bytes) with the excerpt again and again.
  void fill(std::span<const std::byte> excerpt, std::span<std::byte> held_memory) const;
  // Calls f(origin) for each excerpt in what is held; the last ones may be parts.
  void each_tile(const std::function<void(const Shape& origin)>& f) const;
  // Calls f(at in the excerpt, at in what is held, count) for stretches of elements of one tile.
  void each_run(const Shape& origin,
                const std::function<void(int64_t excerpt, int64_t held, int64_t count)>& f) const;
};

}  // namespace cutegen::eval
