// SPDX-License-Identifier: Apache-2.0
// Multiplies inputs and weights of a grouped convolution (kernels/windows/grouped.cu) on the tensor
// cores.
//
// Contract: a cell is 16 bytes of shared memory with eight 16-bit channels of one position. A step
// multiplies 16 positions by 8 output channels, for the channels of two cells (multiply_two) or of
// one cell (multiply_one). Lane l passes the address of the cell of position l % 16: the first of
// two cells if l < 16, otherwise the second. Lane l holds the weights of output channel l / 4 for
// the input channels 2 * (l % 4) and 2 * (l % 4) + 1 of a cell, packed in 32 bits. Sums 0 and 1 of
// lane l belong to position l / 4 and the output channels 2 * (l % 4) and 2 * (l % 4) + 1. Sums 2
// and 3 belong to position l / 4 + 8 and the same channels.
//
// Example: cutegen::multiply_two<bfloat16_t>(sums, &patch[at], weights[0], weights[1]);
#pragma once

#include <cutegen/vec.cuh>

namespace cutegen {

template <class T>
CUTE_DEVICE void multiply_two(float (&d)[4], const void* cell, uint32_t b0, uint32_t b1) {
  uint32_t a[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"(uint32_t(__cvta_generic_to_shared(cell)))
               : "memory");
  if constexpr (cute::is_same_v<T, cute::bfloat16_t>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <class T>
CUTE_DEVICE void multiply_one(float (&d)[4], const void* cell, uint32_t b0) {
  uint32_t a[2];
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(a[0]), "=r"(a[1])
               : "r"(uint32_t(__cvta_generic_to_shared(cell)))
               : "memory");
  if constexpr (cute::is_same_v<T, cute::bfloat16_t>)
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0));
}

}  // namespace cutegen
