// SPDX-License-Identifier: Apache-2.0
// Tensors of the official shape that repeat an excerpt: which part is in memory, and its values.
//
// Contract: `full` is the official shape, `cut` the excerpt's. Along each cut dimension the tensor
// repeats the excerpt. If the first cut dimension of a large tensor is its outermost, only `held`
// rows are in memory, a whole number of excerpts and of pages. They are mapped repeatedly. All
// other tensors are whole in memory. In a repeatedly mapped output, several blocks write to the
// same place, and the truth there is the same for all of them.
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

  // `unsupported` if too much would have to be in memory. `roomy` allows more memory for one
  // tensor.
  static Result<Repeated> place(DType dtype, Shape full, Shape cut, bool roomy);
  // Fills the held bytes (held_bytes) with copies of the excerpt.
  void fill(std::span<const std::byte> excerpt, std::span<std::byte> held_memory) const;
  // Calls f(origin) for each excerpt in the held part; the last excerpts may be incomplete.
  void each_tile(const std::function<void(const Shape& origin)>& f) const;
  // Calls f(excerpt, held, count) for stretches of elements of one tile: where the stretch begins
  // in the excerpt and in the held part, and its length.
  void each_run(const Shape& origin,
                const std::function<void(int64_t excerpt, int64_t held, int64_t count)>& f) const;
};

}  // namespace cutegen::eval
