// SPDX-License-Identifier: Apache-2.0
// Reads vectors of a row; a vector may lie outside the tensor.
//
// Contract: load_pack_if() returns V neighbouring elements, or zeros if `inside` is false. The
// address must be a multiple of the vector's size, which is at most 16 bytes. Unlike a load in a
// branch, the load is one predicated instruction, so a kernel can start several loads before it
// uses the first.
//
// Example: auto pack = cutegen::load_pack_if<4>(column < width, row + column);
#pragma once

#include <cutegen/vec.cuh>

namespace cutegen {

template <int V, class T>
CUTE_DEVICE Pack<T, V> load_pack_if(bool inside, T const* from) {
  constexpr int kBytes = int(sizeof(T)) * V, kWords = (kBytes + 3) / 4;
  static_assert(kBytes <= 16 && (kBytes == 2 || kBytes % 4 == 0));
  uint32_t w[kWords] = {};
  const size_t at = __cvta_generic_to_global(from);
  const unsigned on = inside;
  if constexpr (kBytes == 16) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.u32 p, %5, 0;\n"
        "@p ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
        : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(w[3])
        : "l"(at), "r"(on));
  } else if constexpr (kBytes == 8) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.u32 p, %3, 0;\n@p ld.global.v2.u32 {%0, %1}, [%2];\n}"
        : "+r"(w[0]), "+r"(w[1])
        : "l"(at), "r"(on));
  } else if constexpr (kBytes == 4) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %2, 0;\n@p ld.global.u32 %0, [%1];\n}"
                 : "+r"(w[0])
                 : "l"(at), "r"(on));
  } else {
    uint16_t element = 0;
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %2, 0;\n@p ld.global.u16 %0, [%1];\n}"
                 : "+h"(element)
                 : "l"(at), "r"(on));
    w[0] = element;
  }
  Pack<T, V> pack;
  memcpy(&pack, w, kBytes);
  return pack;
}

}  // namespace cutegen
