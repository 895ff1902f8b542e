// SPDX-License-Identifier: Apache-2.0
// Repeated: a tensor of the official shape (the sizes in the task file) whose values repeat an
// excerpt (a small part of that shape, eval/sets/excerpts.h). Memory contains only a part of a
// large tensor.
//
// Contract: `full` is the tensor's shape, and `cut` its shape in the excerpt. The tensor repeats
// the excerpt along each dimension in which `full` and `cut` differ. If a large tensor's shapes
// differ in the outermost dimension, only a part of shape `held` is in memory (whole excerpts that
// fill whole pages), and the tensor maps this part repeatedly. All other tensors are in memory as a
// whole. In a repeatedly mapped output, several CTAs write to the same address, but the correct
// value at this address is the same for all these CTAs.
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

  // How much of a tensor is in memory. A tensor that CTAs change in place needs `all`, because a
  // second CTA would change the same bytes again.
  enum class Hold { little, more, all };
  // Returns an `unsupported` error if the part in memory would be too large.
  static Result<Repeated> place(DType dtype, Shape full, Shape cut, Hold hold);
  // Fills held_memory with copies of the excerpt.
  void fill(std::span<const std::byte> excerpt, std::span<std::byte> held_memory) const;
  // Calls f(origin) for each copy of the excerpt in the part in memory, including incomplete copies
  // at the end.
  void each_tile(const std::function<void(const Shape& origin)>& f) const;
  // Calls f(excerpt, held, count) for each contiguous run of elements in the copy at `origin`: the
  // run's offset in the excerpt, its offset in memory, and its number of elements.
  void each_run(const Shape& origin,
                const std::function<void(int64_t excerpt, int64_t held, int64_t count)>& f) const;
};

}  // namespace cutegen::eval
