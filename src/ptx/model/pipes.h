// SPDX-License-Identifier: Apache-2.0
// Estimates which execution pipe a PTX instruction uses, and how many machine instructions the PTX
// instruction becomes.
//
// Contract: usage_of() reads only the text of the instruction. Therefore, usage_of() also
// classifies opcodes that the simulator does not support. `issue` and `special` are estimates of
// the machine instructions that the assembler emits (about twenty for an integer division). All
// other fields of `Usage` are exact.
//
// Example: Usage u = usage_of("fma.rn.f32 %f3, %f1, %f2, %f3");  // u.pipe == Pipe::fma
#pragma once

#include <cstdint>
#include <string_view>

namespace cutegen::ptx {

// The execution pipes:
// - `fma` executes float32 additions, multiplications and fused multiply-adds.
// - `half` executes 16-bit float arithmetic.
// - `alu` executes integer arithmetic, logic, comparisons and selects.
// - `xu` executes special functions.
// - `convert` executes conversions to and from floats.
// - `lsu` executes loads, stores and shuffles.
// - Instructions of `other` (moves, parameters, barriers, fences) only take an issue slot.
enum class Pipe : uint8_t { fma, half, alu, xu, convert, fp64, tensor, lsu, branch, other, count_ };
const char* to_string(Pipe pipe);

enum class MmaType : uint8_t { none, fp64, tf32, fp16, bf16, int8, fp8, count_ };
const char* to_string(MmaType type);

struct Usage {
  Pipe pipe = Pipe::other;
  uint8_t issue = 1;    // machine instructions, estimated
  uint8_t special = 0;  // how many machine instructions use `xu`, not `pipe`
  MmaType tensor = MmaType::none;
  uint32_t tensor_flops = 0;  // per warp instruction
};

Usage usage_of(std::string_view instruction);

}  // namespace cutegen::ptx
