// SPDX-License-Identifier: Apache-2.0
// Tensors of the official shape that repeat an excerpt: which part is in memory, and its values.
//
// Contract: `full` is the official shape, `cut` the excerpt's. Along each cut dimension the tensor
// repeats the excerpt. If the first cut dimension of a large tensor is its outermost, only `held`
// rows are in memory, a whole number of excerpts and pages, and they are mapped repeatedly. All
// other tensors are whole. In repeatedly mapped outputs several blocks write at the same place; the
// truth there is the same.
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
  // Fills the held bytes (held_bytes) with copies of the excerpt.
  void fill(std::span<const std::byte> excerpt, std::span<std::byte> held_memory) const;
  // Calls f(origin) for each excerpt in the held part; the last excerpts may be incomplete.
  void each_tile(const std::function<void(const Shape& origin)>& f) const;
  // Calls f(at in the excerpt, at in what is held, count) for stretches of elements of one tile.
  void each_run(const Shape& origin,
                const std::function<void(int64_t excerpt, int64_t held, int64_t count)>& f) const;
};

}  // namespace cutegen::eval
