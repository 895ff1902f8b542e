// SPDX-License-Identifier: Apache-2.0
#include "ptx/checks/lanes.h"

namespace cutegen::ptx {
namespace {

#ifdef CG_PTX_BASE_ONLY  // target_clones does not work with sanitizers
#define CG_PTX_CLONES
#else
#define CG_PTX_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif

// Returns the lanes whose address differs from the previous lane's. If both halves of the warp have
// the same addresses, returns lanes of the first half only.
CG_PTX_CLONES uint32_t changes(const uint64_t* at) {
  uint32_t low = 0, high = 0;
  uint64_t halves = 0;
  for (int i = 0; i < 16; ++i) low |= uint32_t(at[i + 1] != at[i]) << i;
  for (int i = 0; i < 16; ++i) high |= uint32_t(at[i + 15] != at[i + 14]) << i;
  for (int i = 0; i < 16; ++i) halves |= at[i] ^ at[i + 16];
  // bit i of low: lane i + 1 differs; bit i of high: lane i + 15 differs
  const uint32_t out = 1 | (low & 0x7fff) << 1 | high << 15;
  return halves == 0 ? out & 0xffff : out | uint32_t(at[31] != at[30]) << 31;
}

}  // namespace

uint32_t distinct_lanes(uint32_t mask, const AddressSummary& s, const uint64_t* at) {
  if (s.uniform) return mask & -mask;
  return mask == ~0u ? changes(at) : mask;
}

}  // namespace cutegen::ptx
