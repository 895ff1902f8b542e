// SPDX-License-Identifier: Apache-2.0
// Parses PTX modules.
//
// Contract: for malformed text, parse_module() returns a user error that names the PTX line. For an
// unknown directive, parse_module() returns an `unsupported` error. The parser limits the nesting
// of blocks and the number of registers, scopes and bytes that a function declares. The text must
// outlive the ParsedModule.
//
// Example: CG_TRY(ParsedModule m, parse_module(text));
#pragma once

#include "base/result.h"
#include "ptx/text/ast.h"

namespace cutegen::ptx {

Result<ParsedModule> parse_module(std::string_view text);

}  // namespace cutegen::ptx
