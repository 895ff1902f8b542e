// SPDX-License-Identifier: Apache-2.0
// Parser of PTX modules.
//
// Contract: a malformed text is a user error that names the PTX line. An unknown directive is an
// `unsupported` error. Recursion and counts are bounded. The text must outlive the result.
//
// Example: CG_TRY(ParsedModule m, parse_module(text));
#pragma once

#include "base/result.h"
#include "ptx/text/ast.h"

namespace cutegen::ptx {

Result<ParsedModule> parse_module(std::string_view text);

}  // namespace cutegen::ptx
