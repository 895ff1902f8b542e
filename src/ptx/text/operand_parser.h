// SPDX-License-Identifier: Apache-2.0
// Parses the operands of a statement.
//
// Contract: depth bounds recursion: 0 for an operand of its own, 1 inside another one.
//
// Example: CG_TRY(Operand o, parse_operand(in, 0));
#pragma once

#include "ptx/text/reader.h"

namespace cutegen::ptx {

Result<Operand> parse_operand(Reader& in, int depth);
// (a, b): the arguments of a call.
Result<Operand> parse_parentheses(Reader& in);

}  // namespace cutegen::ptx
