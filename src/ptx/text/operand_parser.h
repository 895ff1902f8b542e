// SPDX-License-Identifier: Apache-2.0
// Parses the operands of a statement.
//
// Contract: `depth` limits the recursion. Pass 0 for an operand of a statement, and 1 for an
// operand inside another operand.
//
// Example: CG_TRY(Operand o, parse_operand(in, 0));
#pragma once

#include "ptx/text/reader.h"

namespace cutegen::ptx {

Result<Operand> parse_operand(Reader& in, int depth);
// Parses the arguments of a call: (a, b).
Result<Operand> parse_parentheses(Reader& in);

}  // namespace cutegen::ptx
