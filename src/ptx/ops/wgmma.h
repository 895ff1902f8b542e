// SPDX-License-Identifier: Apache-2.0
// wgmma.mma_async: computes one warp's part (16 of the 64 rows) of D = A * B + D.
//
// Contract: one wgmma.mma_async uses 32 bytes of each row of A and of each column of B, contiguous
// along k. K is 8, 16 or 32, depending on the type of the elements. The PTX ISA defines which
// register holds which accumulator ("Register Fragments for wgmma.mma_async.m64nNk16").
//
// Rounding: according to the paper MMA-Sim (arXiv:2511.10909; arXiv:2512.07004 agrees), Hopper
// computes an element of D by a "truncated fused dot-add". Products of two elements are exact. The
// exponent of a product is the sum of the exponents of its factors. The hardware aligns all terms,
// including the accumulator, to the largest exponent, and truncates them after kWgmmaFraction bits.
// The sum of the truncated terms is exact. The hardware truncates the sum of the terms to float32
// (for fp8 operands, to kWgmmaFp8Kept bits of mantissa), or rounds the sum to the nearest f16.
// Nobody has compared this rounding model with an H200 yet.
//
// Example: op.run({.a = rows, .b = columns, .columns = converted, .registers = w.registers, ...});
#pragma once

#include <cstddef>
#include <cstdint>

namespace cutegen::ptx {

enum class WgmmaType : uint8_t { f16, bf16, tf32, e4m3, e5m2, s8, u8 };
enum class WgmmaSum : uint8_t { f32, f16, s32 };

inline constexpr int kWgmmaRows = 16;           // per warp
inline constexpr int kWgmmaMostColumns = 256;   // N
inline constexpr size_t kWgmmaSliceBytes = 32;  // bytes of one row of A or one column of B

inline constexpr size_t kWgmmaColumnsBytes = size_t{65} << 10;  // aligned to 64

// The rounding of sums, as the comment at the top describes it.
inline constexpr int kWgmmaFraction = 25;     // f16, bf16, tf32
inline constexpr int kWgmmaFp8Fraction = 13;  // e4m3, e5m2
inline constexpr int kWgmmaKept = 23;
inline constexpr int kWgmmaFp8Kept = 13;
// The smallest exponent to which the hardware aligns the terms.
inline constexpr int kWgmmaLeastExponent = -126;

struct WgmmaProduct {
  const std::byte* a = nullptr;  // 16 rows of 32 bytes
  const std::byte* b = nullptr;  // n columns of 32 bytes
  // A buffer of kWgmmaColumnsBytes for the columns of B, converted for the host's arithmetic.
  // `has_columns` says whether the buffer already has the converted columns.
  std::byte* columns = nullptr;
  bool has_columns = false;
  std::byte* registers = nullptr;  // of the warp
  const int32_t* d = nullptr;      // register offsets of the accumulators
  int n = 0;
  bool clear = false;     // scale-d is false, so D = A * B
  bool negate = false;    // the instruction negates one of A and B, not both
  bool saturate = false;  // .satfinite
};
using WgmmaFn = void (*)(const WgmmaProduct&);

// A decoded wgmma.mma_async. Inst::list has the registers of D, then A (four registers or one
// descriptor), the descriptor of B, and the predicate scale-d.
struct WgmmaOp {
  WgmmaFn run = nullptr;
  int n = 0, d = 0;  // n: number of columns; d: registers of D per thread
  bool a_in_registers = false, a_mn_major = false, b_mn_major = false;
  bool negate = false, saturate = false;
  int a() const { return a_in_registers ? 4 : 1; }
  int b_slot() const { return d + a(); }  // in Inst::list
  int scale_slot() const { return d + a() + 1; }
};

// Values of Inst::sub for Op::wgmma. kMoreRegisters and kFewerRegisters are for setmaxnreg.
inline constexpr uint8_t kWgmmaMultiply = 0, kWgmmaFence = 1, kWgmmaCommit = 2, kWgmmaWait = 3,
                         kMoreRegisters = 4, kFewerRegisters = 5;

}  // namespace cutegen::ptx
