// SPDX-License-Identifier: Apache-2.0
// Tensors of the official shape that repeat an excerpt (eval/sets/excerpts.h): which part of them
// is in memory, and its values.
//
// Contract: `full` is the official shape, `cut` the excerpt's shape. Along each cut dimension the
// tensor repeats the excerpt. If the first cut dimension of a large tensor is its outermost, memory
// holds only `held` rows (whole excerpts and whole pages), which are mapped repeatedly. All other
// tensors are in memory as a whole. In a repeatedly mapped output, several blocks write to the same
// place, but the truth there is the same for all of them.
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

  // How much of a tensor is in memory. Blocks that change a tensor in place need `all` of it,
  // because a second block would change the same bytes again.
  enum class Hold { little, more, all };
  // `unsupported` if the part in memory would be too large.
  static Result<Repeated> place(DType dtype, Shape full, Shape cut, Hold hold);
  // Fills held_bytes bytes with copies of the excerpt.
  void fill(std::span<const std::byte> excerpt, std::span<std::byte> held_memory) const;
  // Calls f(origin) for each excerpt in the held part. The last ones may be incomplete.
  void each_tile(const std::function<void(const Shape& origin)>& f) const;
  // Calls f(excerpt, held, count) for each contiguous stretch of a tile: its start in the excerpt
  // and in the held part, and its number of elements.
  void each_run(const Shape& origin,
                const std::function<void(int64_t excerpt, int64_t held, int64_t count)>& f) const;
};

}  // namespace cutegen::eval
