// SPDX-License-Identifier: Apache-2.0
// Finds the multiplications that the assembler merges with an addition or subtraction.
//
// Contract: ptxas merges `mul` and a later `add` or `sub` into one fused instruction if no rounding
// mode forbids it (mul.rn, add.rn), and then does not round the product. merged_products() returns
// the changed statements of a function by index: a fused statement instead of the addition, and
// nothing instead of the multiplication. merged_products() expects a merge if the product has no
// other use, and if both statements have the same type (f32 or f64), the same flags and no guard.
// In addition, no branch, no label and no change of the factors may lie between the statements. We
// derived this rule from the machine code of one kernel, and an H200 then confirmed the rule. ptxas
// may merge more.
//
// The opcode of a fused statement is "fma.rn", or an opcode that PTX does not have: "fma-c" for a *
// b - c, and "c-fma" for c - a * b, with the operands a, b and c.
//
// Example: mul.f32 %f3, %f1, %f2; sub.f32 %f5, %f3, %f4;  ->  fma-c.rn.f32 %f5, %f1, %f2, %f4
#pragma once

#include <optional>
#include <unordered_map>

#include "ptx/text/ast.h"

namespace cutegen::ptx {

// The new statement, or nullopt if the assembler drops the old statement.
using Replacement = std::optional<Statement>;
std::unordered_map<size_t, Replacement> merged_products(const Function& function);

}  // namespace cutegen::ptx
